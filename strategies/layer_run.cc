#include "strategies/layer_run.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::strategies {

using workload::Issue, workload::Layer, workload::Op, workload::Pass;

namespace {

bool takes_part(const Op& op, TakesPart which) {
  return which == TakesPart::kAll || op.weight_gradient == (which == TakesPart::kWeights);
}

const std::vector<Op>& phase_of(const Layer& layer, LayerPhase phase) {
  switch (phase) {
    case LayerPhase::kForward: return layer.forward;
    case LayerPhase::kBackward: return layer.backward;
    case LayerPhase::kRecompute: return layer.recompute;
    case LayerPhase::kOptimizer: break;
  }
  return layer.step;
}

bool multiplies_matrices(workload::OpKind kind) {
  using workload::OpKind;
  return kind == OpKind::kGemm || kind == OpKind::kConvolution || kind == OpKind::kAttention;
}

/// Adds ops of a phase, from the `first` on, to a run.
Status add_phase(LayerRun& run, const Layer& layer, LayerPhase phase, TakesPart which,
                 const Price& price, Seconds host_per_kernel, std::size_t first = 0) {
  const std::vector<Op>& ops = phase_of(layer, phase);
  Seconds all = Seconds::s(0), sum = Seconds::s(0);  // of ops, and of kernels among them
  double kernels = 0;
  struct OnDevice {
    std::size_t piece;
    Seconds time = Seconds::s(0), matrix = Seconds::s(0);
  };
  std::vector<OnDevice> times;  // of pieces that compute on the device
  std::uint32_t overlaps = 0;   // number of the next ops that overlap communication
  bool open = false;            // the last piece may go on
  for (std::size_t i = first; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (!takes_part(op, which)) continue;
    if (op.communicates()) {
      run.pieces.push_back({.communication = &op});
      run.prefetches = run.prefetches || op.issue == Issue::kPrefetched;
      overlaps = op.issue == Issue::kOverlapNext ? op.alongside : 0;
      open = false;
      continue;
    }
    const Seconds time = price(op);
    all += time;
    TRY(check_length(all));
    const bool goes_on = open && run.pieces.back().host == op.host;
    if (run.pieces.empty()) overlaps = op.alongside;
    open = overlaps != 1;
    if (overlaps > 0) --overlaps;
    if (!goes_on) {
      run.pieces.push_back(
          {.host = op.host,
           .ops = {.phase = phase, .which = which, .first = static_cast<std::uint32_t>(i)}});
    }
    PieceOps& made_of = run.pieces.back().ops;
    made_of.count = static_cast<std::uint32_t>(i) + 1 - made_of.first;
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
  run.launches += kernels;
  const Seconds least = kernels * host_per_kernel;
  const double longer = sum > Seconds::s(0) && sum < least ? least / sum : 1;
  for (const OnDevice& on : times) {
    LayerPiece& piece = run.pieces[on.piece];
    piece.time = Picoseconds::from(sum > Seconds::s(0) ? on.time * longer
                                                       : least / static_cast<double>(times.size()));
    piece.device.kernels = Picoseconds::from(on.time);
    piece.device.matrix = Picoseconds::from(on.matrix);
  }
  return {};
}

double kernels_of(const std::vector<Op>& ops, TakesPart which) {
  double kernels = 0;
  for (const Op& op : ops)
    if (!op.communicates() && !op.host && takes_part(op, which)) kernels += op.kernels;
  return kernels;
}

double share_of_backward(const Layer& layer, TakesPart which) {
  if (which == TakesPart::kAll || layer.host_work == 0) return 1;
  const double all = kernels_of(layer.backward, TakesPart::kAll);
  return all > 0 ? kernels_of(layer.backward, which) / all : 0;
}

}  // namespace

std::vector<const Op*> ops_of(const Layer& layer, const PieceOps& ops) {
  std::vector<const Op*> list;
  const std::vector<Op>& phase = phase_of(layer, ops.phase);
  for (std::size_t i = ops.first; i < std::size_t{ops.first} + ops.count; ++i)
    if (takes_part(phase[i], ops.which)) list.push_back(&phase[i]);
  return list;
}

Picoseconds LayerRun::computing() const {
  Picoseconds sum(0);
  for (const LayerPiece& piece : pieces)
    if (piece.communication == nullptr) sum += piece.time;
  return sum;
}

LaunchTimes launch_times(const Layer& layer, const host::BlockTimes& block) {
  if (layer.host_work == 0) return {};
  LaunchTimes times{block.forward * layer.host_work, block.backward * layer.host_work};
  const double forward = kernels_of(layer.forward, TakesPart::kAll);
  if (!layer.recompute.empty() && forward > 0)
    times.recompute = times.forward * (kernels_of(layer.recompute, TakesPart::kAll) / forward);
  return times;
}

Status check_length(Seconds step) {
  if (step <= kLongestStep) return {};
  return fail(fmt::format("a step would last {} or longer", to_string(step)),
              "at most " + to_string(kLongestStep));
}

Result<Picoseconds> step_part(Seconds time) {
  TRY(check_length(time));
  return Picoseconds::from(time);
}

Result<LayerRun> layer_run(const Layer& layer, Pass pass, Split split, const Price& price,
                           const HostTimes& host) {
  LayerRun run;
  const auto add = [&](LayerPhase phase, TakesPart which) {
    return add_phase(run, layer, phase, which, price, host.per_kernel);
  };
  const LaunchTimes launches = launch_times(layer, host.block);
  Seconds least = Seconds::s(0);
  switch (pass) {
    case Pass::kForward:
      TRY(add(LayerPhase::kForward, TakesPart::kAll));
      least = launches.forward;
      break;
    case Pass::kBackward: {
      if (!split.recompute) {
        TRY(add(LayerPhase::kRecompute, TakesPart::kAll));
        least = launches.recompute;
      }
      const TakesPart which = split.weights ? TakesPart::kWithoutWeights : TakesPart::kAll;
      TRY(add(LayerPhase::kBackward, which));
      least += launches.backward * share_of_backward(layer, which);
      break;
    }
    case Pass::kBackwardWeights:
      TRY(add(LayerPhase::kBackward, TakesPart::kWeights));
      least = launches.backward * share_of_backward(layer, TakesPart::kWeights);
      break;
    case Pass::kRecompute:
      TRY(add(LayerPhase::kRecompute, TakesPart::kAll));
      least = launches.recompute;
      break;
  }
  if (host.blocking && least > Seconds::s(0))
    run.pieces.insert(run.pieces.begin(), {.host = true, .time = Picoseconds::from(least)});
  else
    run.host = layer.host_work > 0 ? Picoseconds::from(least) : run.computing();
  return run;
}

Result<LayerStep> layer_step(const Layer& layer, const Price& price, Seconds host_per_kernel) {
  const auto rest = std::ranges::find_if(
      layer.step, [](const Op& op) { return !op.communicates() || op.issue != Issue::kDeferred; });
  LayerStep step;
  for (auto op = layer.step.begin(); op != rest; ++op)
    step.deferred.pieces.push_back({.communication = &*op});
  TRY(add_phase(step.rest, layer, LayerPhase::kOptimizer, TakesPart::kAll, price, host_per_kernel,
                static_cast<std::size_t>(rest - layer.step.begin())));
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
  std::ranges::stable_sort(chain, [&](const ChunkPlace& a, const ChunkPlace& b) {
    return layout.stages[a.stage].chunks[a.chunk].first_layer <
           layout.stages[b.stage].chunks[b.chunk].first_layer;
  });
  return chain;
}

}  // namespace rehearse::strategies
