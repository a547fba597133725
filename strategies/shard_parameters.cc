#include <algorithm>
#include <cstddef>
#include <iterator>

#include "strategies/transforms.h"

namespace rehearse::strategies {
namespace {

using workload::Chunk, workload::Issue, workload::Layer, workload::Layout, workload::Op,
    workload::Stage;

void put_first(std::vector<Op>& ops, const std::vector<Op>& added) {
  ops.insert(ops.begin(), added.begin(), added.end());
}

void by_layer(Layer& layer, const workload::Degrees& degrees, double weights, double gradient,
              bool overlap) {
  const Parameters parameters = parameters_of(layer);
  std::vector<Op> gather;
  add_collectives(gather, "gather weights", CollectiveKind::kAllGather,
                  parameters.gathered(weights), weights, degrees,
                  overlap ? Issue::kPrefetched : Issue::kInline);
  put_first(layer.forward, gather);
  if (!layer.backward.empty())
    put_first(layer.recompute.empty() ? layer.backward : layer.recompute, gather);
  add_collectives(layer.backward, "sum and scatter gradients", CollectiveKind::kReduceScatter,
                  parameters, gradient, degrees, overlap ? Issue::kDeferred : Issue::kInline);
}

/// The host's time for a collective of DeepSpeed in 2021, whose operand is a list with a view of
/// every rank's share. The device has nothing else to do. Making a view and copying it are an
/// operator each, at 6.5 us (3.5 to 10, docs/concepts/host.md). On eight ranks the call took 130 us
/// to prepare and 250 us to launch (DeepSpeed's tracker, 1069); the views explain 104 of them.
Op list_of_shares(double ranks) {
  constexpr double kRecord = 6.5e-6, kLeast = 3.5e-6, kMost = 10e-6, kCall = 276e-6;
  const auto time = [&](double record) {
    return Seconds::s(kCall * record / kRecord + 2 * ranks * record);
  };
  Op op = traffic("list shares", 0);
  op.host = true;
  op.measured = {time(kRecord), time(kLeast), time(kMost), Provenance::kExtrapolated};
  return op;
}

struct GatheredMatrix {
  double elements;
  std::vector<Op> gather;
};

/// Each gather goes in front of the op that reads the matrix; after the one before it if no op is
/// known to. `matrices` are in the order of the pass.
void gather_before_use(std::vector<Op>& pass, const std::vector<GatheredMatrix>& matrices) {
  std::ptrdiff_t at = 0;
  for (const GatheredMatrix& matrix : matrices) {
    const auto reader = std::find_if(pass.begin() + at, pass.end(), [&](const Op& op) {
      const double operand =
          op.kind == workload::OpKind::kGather ? op.k * op.n : op.batch * op.n * op.k;
      return !op.core && !op.communicates() && operand == matrix.elements;
    });
    const bool read = reader != pass.end();
    if (read) at = reader - pass.begin();
    pass.insert(pass.begin() + at, matrix.gather.begin(), matrix.gather.end());
    at += std::ssize(matrix.gather) + (read ? 1 : 0);
  }
}

/// Every matrix is gathered in front of its first use in a pass and released after the last, and its
/// gradient is scattered at once. Vectors (a bias of each matrix, two of each norm) stay whole: they
/// are below the default threshold. Their gradients are scattered one by one too.
void by_tensor(Layer& layer, const workload::Degrees& degrees, double weights, double gradient) {
  const auto add = [&](std::vector<Op>& ops, std::string_view name, CollectiveKind kind,
                       const Parameters& tensor, double bytes) {
    const std::uint32_t ranks = degrees.sharers(tensor.expert > 0);
    if (ranks > 1) ops.push_back(list_of_shares(ranks));
    add_collectives(ops, name, kind, tensor, bytes, degrees, Issue::kInline);
  };
  std::vector<Op> backward;
  const auto scatter = [&](const Parameters& tensor) {
    add(backward, "sum and scatter gradients", CollectiveKind::kReduceScatter, tensor, gradient);
  };
  Parameters left = parameters_of(layer);
  double vectors = 0, largest = 0;
  for (const Op& op : layer.forward)
    if (op.kind == workload::OpKind::kNorm) vectors += 2;
  std::vector<GatheredMatrix> matrices;  // in the order of backward
  for (const Op& op : layer.backward) {
    backward.push_back(op);
    if (!op.weight_gradient || op.kind == workload::OpKind::kElementwise) continue;
    double Parameters::*kind = op.expert ? &Parameters::expert : &Parameters::dense;
    const double elements =
        op.kind == workload::OpKind::kGather ? op.k * op.n : op.batch * op.m * op.n;
    Parameters matrix;
    matrix.*kind = std::min(left.*kind, elements);
    if (matrix.summed() == 0) continue;
    left.*kind -= matrix.*kind;
    largest = std::max(largest, matrix.summed());
    vectors += 1;
    std::vector<Op> gather;
    add(gather, "gather weights", CollectiveKind::kAllGather, matrix, weights);
    matrices.push_back({elements, std::move(gather)});
    scatter(matrix);
  }
  for (double i = 0; i < vectors && left.dense > 0; ++i) scatter({.dense = left.dense / vectors});
  layer.gathered_at_once = largest + left.dense;
  if (!backward.empty()) gather_before_use(backward, matrices);
  std::ranges::reverse(matrices);
  for (std::vector<Op>* pass : {&layer.forward, &layer.recompute})
    if (!pass->empty()) gather_before_use(*pass, matrices);
  layer.backward = std::move(backward);
}

void by_step(Layer& layer, const workload::Degrees& degrees, double weights, double gradient,
             bool overlap) {
  const Parameters parameters = parameters_of(layer);
  const Issue issue = overlap ? Issue::kDeferred : Issue::kInline;
  std::vector<Op> sums;
  add_collectives(sums, "sum and scatter gradients", CollectiveKind::kReduceScatter, parameters,
                  gradient, degrees, issue);
  put_first(layer.step, sums);
  add_collectives(layer.step, "gather weights", CollectiveKind::kAllGather,
                  parameters.gathered(weights), weights, degrees, issue);
}

/// The message buffers of PyTorch's pipeline: a buffer for every activation and gradient that a
/// stage receives in a step (activations in flight count as its layers' inputs), and its sent data
/// until the gradient of that data comes back.
Bytes messages_of(const Layout& layout, std::size_t s) {
  const std::size_t stages = layout.stages.size();
  const double all = layout.microbatches;
  const double in_flight = std::min(all, static_cast<double>(stages - s));
  Bytes bytes = Bytes::b(0);
  if (s > 0) bytes += layout.stages[s - 1].chunks.back().layers.back().output * (all - in_flight);
  if (s + 1 < stages)
    bytes += layout.stages[s].chunks.back().layers.back().output * (all + in_flight);
  return bytes;
}

}  // namespace

Result<Layout> shard_parameters(Layout layout, const JobSetting& setting) {
  const Plan& plan = *setting.plan;
  const ParameterTraffic moves =
      traffic_of(*setting.training, plan, layout.stages.size(), layout.microbatches);
  const double weights = moves.weights, gradient = moves.gradient;
  const double each = summed_bytes(*setting.training, plan);
  const bool pipeline = moves.when != ParameterTraffic::When::kLayerByLayer;
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    Stage& stage = layout.stages[s];
    for (Chunk& chunk : stage.chunks)
      for (Layer& layer : chunk.layers) {
        add_update(layer, updated(plan, parameters_of(layer), stage.degrees), layout.microbatches,
                   setting);
        add_row_gradients(layer, gradient, layout.microbatches, stage.degrees,
                          plan.overlap_gradients ? Issue::kDeferred : Issue::kInline);
        if (stage.degrees.sharers(false) <= 1) continue;
        if (pipeline)
          by_step(layer, stage.degrees, weights, gradient, plan.overlap_gradients);
        else if (plan.gather_weights == GatherWeights::kByTensor)
          by_tensor(layer, stage.degrees, weights, gradient);
        else
          by_layer(layer, stage.degrees, weights, gradient, plan.overlap_gradients);
      }
    if (stage.degrees.sharers(false) <= 1) continue;
    // Gradients as backward leaves them, and the copy that is summed and scattered.
    stage.gathering.gradient = weights + each;
    if (pipeline) {
      const Parameters held = parameters_of(stage);
      stage.gathered += Bytes::b(held.gathered(weights).summed() * weights + held.summed() * each) +
                        messages_of(layout, s);
    } else {
      stage.gathering.weights = weights;
      stage.gathering.ahead = plan.gather_weights == GatherWeights::kByLayer ? 1 : 0;
    }
  }
  return layout;
}

}  // namespace rehearse::strategies
