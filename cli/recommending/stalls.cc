#include "cli/recommending/stalls.h"

#include <algorithm>

#include "cli/config/job_input.h"
#include "models/input/feed.h"
#include "sim/cluster/ideal_links.h"

namespace rehearse::cli {

Result<cost::Stalls> stalls_of(const step::Spec& spec, const cluster::Cluster& cluster,
                               const step::Step& step, step::Fidelity fidelity) {
  const Seconds alone = step.time.value - step.breakdown.input;
  const auto time_with = [&](cluster::LinkPart part) -> Result<Seconds> {
    const Result<step::Step> other =
        step::predict(spec, cluster::with_ideal_links(cluster, part),
                      {.fidelity = fidelity, .unfold = false, .counterfactuals = false});
    if (!other) return forward(other);
    return std::min(other->time.value, alone);
  };
  if (step.layout.ranks() == 1)
    return cost::Stalls{.interconnect = Seconds::s(0), .network = Seconds::s(0)};
  const Result<Seconds> within = time_with(cluster::LinkPart::kWithinNodes);
  if (!within) return forward(within);
  if (cluster.nodes().size() == 1)
    return cost::Stalls{.interconnect = alone - *within, .network = Seconds::s(0)};
  const Result<Seconds> all = time_with(cluster::LinkPart::kAll);
  if (!all) return forward(all);
  const Seconds least = std::min(*all, *within);
  return cost::Stalls{.interconnect = alone - *within, .network = *within - least};
}

Status add_input_stalls(const input::Pipeline& pipeline, const cluster::Cluster& cluster,
                        const step::Step& step, cost::Stalls& stalls) {
  const Seconds alone = step.time.value - step.breakdown.input;
  stalls.input = step.breakdown.input;
  stalls.fetch = Seconds::s(0);
  if (!(*stalls.input > Seconds::s(0))) return {};
  const Result<Seconds> with_free_reads =
      fed_time(input::with_free_storage(pipeline), cluster, step.layout, alone);
  if (!with_free_reads) return forward(with_free_reads);
  stalls.fetch = std::max(Seconds::s(0), step.time.value - *with_free_reads);
  return {};
}

}  // namespace rehearse::cli
