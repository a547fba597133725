#include "strategies/layer_run.h"

#include <algorithm>
#include <span>
#include <utility>

namespace rehearse::strategies {

using workload::Issue;
using workload::Layer;
using workload::Op;
using workload::Pass;

namespace {

enum class Which : std::uint8_t { kAll, kWithoutWeights, kWeights };

bool takes_part(const Op& op, Which which) {
  return which == Which::kAll || op.weight_gradient == (which == Which::kWeights);
}

bool multiplies_matrices(workload::OpKind kind) {
  using workload::OpKind;
  return kind == OpKind::kGemm || kind == OpKind::kConvolution || kind == OpKind::kAttention;
}

/// Adds ops of a phase to a run.
void add_phase(LayerRun& run, std::span<const Op> ops, Which which, const Price& price,
               Seconds host_per_kernel) {
  Seconds sum = Seconds::s(0);  // of kernels
  double kernels = 0;
  struct OnDevice {
    std::size_t piece;
    Seconds time = Seconds::s(0), matrix = Seconds::s(0);
  };
  std::vector<OnDevice> times;  // of pieces that compute on the device
  bool beside = false;
  bool open = false;  // the last piece may go on
  for (const Op& op : ops) {
    if (!takes_part(op, which)) continue;
    if (op.communicates()) {
      run.pieces.push_back({.communication = &op});
      run.prefetches = run.prefetches || op.issue == Issue::kPrefetched;
      beside = op.issue == Issue::kBeside;
      open = false;
      continue;
    }
    const Seconds time = price(op);
    const bool goes_on = open && run.pieces.back().host == op.host;
    if (!goes_on) {
      open = !beside && !run.pieces.empty();
      beside = false;
      run.pieces.push_back({.host = op.host});
    }
    if (op.host) {
      run.pieces.back().time += Picoseconds::from(time);
      continue;
    }
    sum += time;
    kernels += op.kernels;
    if (!goes_on) times.push_back({run.pieces.size() - 1});
    times.back().time += time;
    if (multiplies_matrices(op.kind)) times.back().matrix += time;
    run.pieces.back().device.bytes += bytes_of(op);
  }
  const Seconds least = kernels * host_per_kernel;
  const double longer = sum > Seconds::s(0) && sum < least ? least / sum : 1;
  for (const OnDevice& on : times) {
    LayerPiece& piece = run.pieces[on.piece];
    piece.time = Picoseconds::from(sum > Seconds::s(0) ? on.time * longer
                                                       : least / static_cast<double>(times.size()));
    piece.device.kernels = Picoseconds::from(on.time);
    piece.device.matrix = Picoseconds::from(on.matrix);
  }
}

}  // namespace

LayerRun layer_run(const Layer& layer, Pass pass, Split split, const Price& price,
                   Seconds host_per_kernel) {
  LayerRun run;
  switch (pass) {
    case Pass::kForward:
      add_phase(run, layer.forward, Which::kAll, price, host_per_kernel);
      break;
    case Pass::kBackward:
      if (!split.recompute) add_phase(run, layer.recompute, Which::kAll, price, host_per_kernel);
      add_phase(run, layer.backward, split.weights ? Which::kWithoutWeights : Which::kAll, price,
                host_per_kernel);
      break;
    case Pass::kBackwardWeights:
      add_phase(run, layer.backward, Which::kWeights, price, host_per_kernel);
      break;
    case Pass::kRecompute:
      add_phase(run, layer.recompute, Which::kAll, price, host_per_kernel);
      break;
  }
  return run;
}

LayerStep layer_step(const Layer& layer, const Price& price, Seconds host_per_kernel) {
  const auto rest = std::find_if(layer.step.begin(), layer.step.end(), [](const Op& op) {
    return !op.communicates() || op.issue != Issue::kDeferred;
  });
  LayerStep step;
  for (auto op = layer.step.begin(); op != rest; ++op)
    step.deferred.pieces.push_back({.communication = &*op});
  add_phase(step.rest, std::span<const Op>(rest, layer.step.end()), Which::kAll, price,
            host_per_kernel);
  return step;
}

Split split_of(const workload::Stage& stage) {
  Split split;
  for (const workload::Slot& slot : stage.order) {
    split.weights = split.weights || slot.pass == Pass::kBackwardWeights;
    split.recompute = split.recompute || slot.pass == Pass::kRecompute;
  }
  return split;
}

std::vector<ChunkPlace> chain_of(const workload::Layout& layout) {
  std::vector<ChunkPlace> chain;
  for (std::uint32_t s = 0; s < layout.stages.size(); ++s)
    for (std::uint32_t c = 0; c < layout.stages[s].chunks.size(); ++c) chain.push_back({s, c});
  std::stable_sort(chain.begin(), chain.end(), [&](const ChunkPlace& a, const ChunkPlace& b) {
    return layout.stages[a.stage].chunks[a.chunk].first_layer <
           layout.stages[b.stage].chunks[b.chunk].first_layer;
  });
  return chain;
}

}  // namespace rehearse::strategies
