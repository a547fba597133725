#include "cli/config/job_outline.h"

#include <algorithm>

#include "cli/config/job_file.h"
#include "cli/config/job_input.h"
#include "models/job/program_ops.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

Result<JobOutline> outline_of(const std::filesystem::path& path) {
  const JobFile file = TRY(load_job(path));
  step::Step step =
      TRY(in_file(path, step::predict(file.spec, file.cluster, {.counterfactuals = false})));
  if (file.input) TRY(in_file(path, feed(input::Feed(*file.input), file.cluster, step)));
  return JobOutline{.step = step.time.value,
                    .exposed = step.communication,
                    .hidden = hidden_communication(step),
                    .memory = memory::fullest(step.memory).peak.value,
                    .ranks = static_cast<std::uint32_t>(step.layout.ranks())};
}

Seconds hidden_communication(const step::Step& step) {
  Seconds most = Seconds::s(0);
  const job::LoweredJob& lowered = step.lowered;
  std::vector<Seconds> by_rank(lowered.ranks.size(), Seconds::s(0));
  for (const job::Collective& collective : lowered.collectives) {
    const Seconds time = job::time_of(collective, step.timeline);
    for (const OpId member : collective.members) {
      const auto after =
          std::ranges::upper_bound(lowered.first_op, static_cast<std::uint32_t>(member.index()));
      const auto rank = static_cast<std::size_t>(after - lowered.first_op.begin()) - 1;
      if (rank < by_rank.size()) most = std::max(most, by_rank[rank] += time);
    }
  }
  const Seconds exposed = step.communication;
  return std::clamp(most - exposed, Seconds::s(0), step.time.value - exposed);
}

}  // namespace rehearse::cli
