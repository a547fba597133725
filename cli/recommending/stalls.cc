#include "cli/recommending/stalls.h"

#include <algorithm>

#include "sim/cluster/ideal_links.h"

namespace rehearse::cli {

Result<cost::Stalls> stalls_of(const step::Spec& spec, const cluster::Cluster& cluster,
                               const step::Step& step, step::Fidelity fidelity) {
  const auto time_with = [&](cluster::LinkPart part) -> Result<Seconds> {
    const Result<step::Step> other =
        step::predict(spec, cluster::with_ideal_links(cluster, part),
                      {.fidelity = fidelity, .unfold = false, .counterfactuals = false});
    if (!other) return forward(other);
    return std::min(other->time.value, step.time.value);
  };
  if (step.layout.ranks() == 1)
    return cost::Stalls{.interconnect = Seconds::s(0), .network = Seconds::s(0)};
  const Result<Seconds> within = time_with(cluster::LinkPart::kWithinNodes);
  if (!within) return forward(within);
  if (cluster.nodes().size() == 1)
    return cost::Stalls{.interconnect = step.time.value - *within, .network = Seconds::s(0)};
  const Result<Seconds> all = time_with(cluster::LinkPart::kAll);
  if (!all) return forward(all);
  const Seconds least = std::min(*all, *within);
  return cost::Stalls{.interconnect = step.time.value - *within, .network = *within - least};
}

}  // namespace rehearse::cli
