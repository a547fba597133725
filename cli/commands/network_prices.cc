#include "cli/commands/network_prices.h"

#include <memory>

#include "models/comm/framework_timing.h"
#include "models/comm/placement.h"
#include "models/comm/schedule.h"
#include "models/job/interval.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"

namespace rehearse::cli {

Result<PriceOfSize> closed_prices(const Scope& scope, CollectiveKind kind,
                                  const comm::NcclOverrides& overrides, bool in_framework) {
  const Result<comm::CollectiveCost> cost = comm::CollectiveCost::resolve(
      *scope.calibrated,
      {.kind = kind, .ranks = scope.ranks, .nodes = scope.nodes, .network = scope.network},
      overrides);
  if (!cost) return forward(cost);
  return [cost = *cost, in_framework](Bytes size) -> Result<CollectivePrice> {
    comm::Price price = cost.at(size);
    if (in_framework) price = comm::in_framework(price, comm::framework_timing());
    return CollectivePrice{.time = price.time,
                           .algorithm = std::string(to_string(price.algorithm)),
                           .protocol = std::string(to_string(price.protocol)),
                           .channels = price.channels};
  };
}

Result<PriceOfSize> message_prices(const Scope& scope, CollectiveKind kind,
                                   std::optional<comm::Algorithm> algorithm, Fidelity fidelity) {
  if (!scope.cluster)
    return fail("messages need links to travel on", "--cluster FILE",
                "--fidelity closed prices a device by its calibration");
  const bool to_all = kind == CollectiveKind::kAllToAll;
  const comm::Algorithm chosen =
      algorithm.value_or(to_all ? comm::Algorithm::kPairwise : comm::Algorithm::kRing);
  Result<comm::Schedule> schedule =
      comm::schedule(kind, chosen, {.ranks = scope.ranks, .per_node = scope.ranks / scope.nodes});
  if (!schedule) return forward(schedule);

  graph::GraphBuilder builder;
  comm::Placement placement(*scope.cluster, builder);
  const auto ways = placement.ways(*schedule->lanes, scope.devices);
  std::vector<OpId> members;
  for (std::uint32_t r = 0; r < scope.ranks; ++r)
    members.push_back(builder.add(graph::Op{.name = builder.intern(to_string(kind)),
                                            .category = graph::Category::kCommunication,
                                            .duration = Picoseconds(0)}));
  return [builder, lanes = schedule->lanes, ways, members, chosen,
          fidelity](Bytes size) -> Result<CollectivePrice> {
    graph::GraphBuilder sized = builder;
    sized.add(graph::Transfer{lanes, ways, members, size.b()});
    const Result<graph::Graph> whole = std::move(sized).build();
    if (!whole) return forward(whole);
    const Result<graph::Timeline> timeline =
        fidelity == Fidelity::kSimgrid ? engine::run_on_simgrid(*whole) : engine::run(*whole);
    if (!timeline) return forward(timeline);
    return CollectivePrice{.time = job::on_datasheet_links(timeline->makespan().seconds()),
                           .algorithm = std::string(to_string(chosen)),
                           .protocol = "",
                           .channels = {}};
  };
}

}  // namespace rehearse::cli
