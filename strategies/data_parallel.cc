#include "strategies/data_parallel.h"

namespace rehearse::strategies {
namespace {

using graph::Category;
using graph::CollectiveOp;
using graph::Demand;
using graph::Gradient;
using graph::GradientStep;
using graph::GraphBuilder;
using graph::Op;

/// Consecutive gradients that travel together.
struct Bucket {
  Bytes size = Bytes::b(0);
  std::vector<OpId> ready;
};

std::vector<Bucket> fill_buckets(const std::vector<Gradient>& gradients, Bytes at_least) {
  std::vector<Bucket> buckets;
  for (const Gradient& gradient : gradients) {
    if (buckets.empty() || buckets.back().size >= at_least) buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.size += gradient.size;
    if (bucket.ready.empty() || bucket.ready.back() != gradient.ready)
      bucket.ready.push_back(gradient.ready);
  }
  return buckets;
}

}  // namespace

Result<DataParallelGraph> data_parallel(const graph::Graph& graph,
                                        const std::vector<GradientStep>& steps,
                                        const DataParallelPlan& plan) {
  if (plan.ranks == 0) return fail("0 ranks", "1 or more");
  std::size_t gradients = 0;
  for (const GradientStep& step : steps) gradients += step.gradients.size();
  if (gradients == 0) return fail("there are no gradients to sum");
  if (plan.ranks == 1) return DataParallelGraph{graph, {}};

  GraphBuilder builder(graph);
  DataParallelGraph result{graph::Graph(), {}};
  const NameId name = builder.intern("all_reduce of gradients");
  const DemandId stream = builder.add(
      Demand{.server = builder.add(graph::Server{.name = builder.intern("communication")})});
  const auto add = [&](Bytes size, DemandId demand) {
    const OpId op = builder.add(Op{.name = name,
                                   .category = Category::kCommunication,
                                   .duration = Picoseconds(0),
                                   .demand = demand});
    result.collectives.push_back({op, CollectiveKind::kAllReduce, size, plan.ranks});
    return op;
  };
  for (const GradientStep& step : steps) {
    if (!plan.overlap) {
      // On the thread itself: between the op that completes the gradient and all that comes after.
      for (const Gradient& gradient : step.gradients) {
        const OpId sum = add(gradient.size, graph.demand_id(gradient.ready));
        for (const OpId next : graph.successors(gradient.ready)) builder.add_edge(sum, next);
        builder.add_edge(gradient.ready, sum);
      }
      continue;
    }
    for (const Bucket& bucket : fill_buckets(step.gradients, plan.bucket)) {
      const OpId sum = add(bucket.size, stream);
      for (const OpId ready : bucket.ready) builder.add_edge(ready, sum);
      for (const OpId user : step.users) builder.add_edge(sum, user);
    }
  }
  Result<graph::Graph> built = std::move(builder).build();
  if (!built) return forward(std::move(built));
  result.graph = std::move(*built);
  return result;
}

}  // namespace rehearse::strategies
