#include "cli/commands/step_report.h"

#include "cli/report/memory_curves.h"
#include "cli/report/roofline.h"

namespace rehearse::cli {

Status try_changes(PredictedJob& job, const Globals& globals) {
  Result<std::vector<SingleChange>> changes =
      single_changes(job.file.spec, job.file.cluster, job.file.input, job.step, job.fidelity,
                     globals.progress_of("trying changes"));
  if (!changes) return forward(changes);
  job.changes = std::move(*changes);
  return {};
}

ReportDetails step_details(const PredictedJob& job, const std::filesystem::path& job_file) {
  const step::Step& step = job.step;
  std::vector<std::string> suites = {"memory/galvatron measured, peak", "withheld/all"};
  for (const step::DeviceUse& use : step.devices) suites.push_back("withheld/" + use.name);
  return ReportDetails{.inputs = {job_file},
                       .suites = std::move(suites),
                       .memory = memory_curves(job.file.spec, job.file.cluster, step),
                       .roofline = roofline_of(job.file.spec, job.file.cluster, step),
                       .gains = changes_json(job.changes, step.time.value)};
}

}  // namespace rehearse::cli
