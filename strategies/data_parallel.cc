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
  std::size_t last = 0;  ///< position of its last gradient in the step
};

std::vector<Bucket> fill_buckets(const std::vector<Gradient>& gradients, Bytes at_least) {
  std::vector<Bucket> buckets;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const Gradient& gradient = gradients[k];
    if (buckets.empty() || buckets.back().size >= at_least) buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.size += gradient.size;
    bucket.last = k;
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
  const NameId slowest = builder.intern("the slowest rank's gradient");
  /// What the all-reduce of these ops waits for: them, or the slowest rank's.
  const auto wait_for = [&](const std::vector<OpId>& ready, std::size_t position, OpId sum) {
    const bool late = position < plan.lateness.size() && plan.lateness[position] > Seconds::s(0);
    OpId target = sum;
    if (late) {
      target = builder.add(Op{.name = slowest,
                              .category = Category::kCommunication,
                              .duration = Picoseconds::from(plan.lateness[position])});
      builder.add_edge(target, sum);
    }
    for (const OpId op : ready) builder.add_edge(op, target);
  };
  for (const GradientStep& step : steps) {
    if (!plan.overlap) {
      // On the thread itself: between the op that completes the gradient and all that comes after.
      for (std::size_t k = 0; k < step.gradients.size(); ++k) {
        const Gradient& gradient = step.gradients[k];
        const OpId sum = add(gradient.size, graph.demand_id(gradient.ready));
        for (const OpId next : graph.successors(gradient.ready)) builder.add_edge(sum, next);
        wait_for({gradient.ready}, k, sum);
      }
      continue;
    }
    for (const Bucket& bucket : fill_buckets(step.gradients, plan.bucket)) {
      const OpId sum = add(bucket.size, stream);
      wait_for(bucket.ready, bucket.last, sum);
      for (const OpId user : step.users) builder.add_edge(sum, user);
    }
  }
  Result<graph::Graph> built = std::move(builder).build();
  if (!built) return forward(std::move(built));
  result.graph = std::move(*built);
  return result;
}

}  // namespace rehearse::strategies
