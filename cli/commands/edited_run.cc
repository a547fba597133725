#include "cli/commands/edited_run.h"

#include <algorithm>

#include "profiler/replay/interval.h"

namespace rehearse::cli {

Result<ReplayRun> run_at(const ReplayJob& job, const std::vector<Edit>& edits, Bound bound) {
  replay::RecordedProgram program = job.recorded.graph.program;
  for (const Edit& edit : edits) program = TRY(edit.apply(std::move(program), bound));
  return run_program(job, std::move(program), bound);
}

Estimate<Seconds> EditedRun::step(const ReplayJob& job, double further_error) const {
  const Estimate<Seconds> step = replay::estimate_step(
      job.recorded.comparison, run.comparison.step_time.simulated, further_error);
  if (!assumed || !(step.value > Seconds::s(0))) return step;
  return {step.value, assumed->low * (step.low / step.value),
          assumed->high * (step.high / step.value), Provenance::kExtrapolated};
}

Result<EditedRun> run_edited(const ReplayJob& job, const std::vector<Edit>& edits) {
  ReplayRun run = TRY(run_at(job, edits, Bound::kValue));
  EditedRun edited{std::move(run), {}};
  std::vector<std::string>& assumptions = edited.assumptions;
  for (const Edit& edit : edits)
    if (!edit.assumption.empty() &&
        std::ranges::find(assumptions, edit.assumption) == assumptions.end())
      assumptions.push_back(edit.assumption);
  if (assumptions.empty()) return edited;
  const Seconds value = edited.run.comparison.step_time.simulated;
  edited.assumed = {value, value};
  for (const Bound bound : {Bound::kLow, Bound::kHigh}) {
    const ReplayRun at = TRY(run_at(job, edits, bound));
    const Seconds step = at.comparison.step_time.simulated;
    edited.assumed->low = std::min(edited.assumed->low, step);
    edited.assumed->high = std::max(edited.assumed->high, step);
  }
  return edited;
}

}  // namespace rehearse::cli
