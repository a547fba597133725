#include "models/memory/memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "models/workload/adapters.h"
#include "sim/base/check.h"

namespace rehearse::memory {
namespace {

using workload::Layer, workload::Pass, workload::SavedActivation, workload::Slot, workload::Stage;

/// Galvatron's profiles, in units of a layer's activations: the additional memory of backward
/// beyond saved activations, and a recomputed layer with its gradients.
constexpr double kBackwardTransient = 0.45;
constexpr double kRecomputed = 1.8;

/// The CUDA context (A100, H100: 0.45 to 0.55 GiB). Buffers of a communicator of NCCL: about 10 MiB a
/// connection and channel for its three protocols, with up to 24 channels inside a node. With 0.25
/// GiB each, a rank of BigScience's three-dimensional plans has the 1.3 to 1.6 GiB in all that their
/// authors state.
constexpr double kContextMibPerMultiprocessor = 4.27;
constexpr double kNcclGib = 0.25, kNcclUncertainty = 0.5;
/// Errors of the allocator's reserve, as shares of allocated memory: with them, the rule of
/// docs/concepts/intervals.md gives the interval of reserved and device memory as it is.
constexpr double kReserveBelow = 0.13, kReserveAbove = 0.155;
/// The errors of the other parts together, relative to their sum in squares, by the same rule: each is
/// stated for itself, and they rarely add up.
constexpr double kPartsBelow = 0.34, kPartsAbove = 0.77;

/// PyTorch gives cuBLAS a workspace for each thread that launches products, forward's and
/// autograd's; TransformerEngine has one more. Bytes allocated between steps of Megatron-LM on H100
/// show 96 MiB of them, and 29 on A100 with 9 of messages.
constexpr double kWorkspacesMib = 2 * 8.125 + 4, kWorkspacesSinceHopperMib = 3 * 32;

/// Masks, tokens, statistics of norms, and larger workspaces of deterministic runs.
constexpr double kSmallMib = 64;

constexpr double kHeadroom = 0.05;

/// Where held blocks would more than double the memory, most measured runs of nanotron's sweep do
/// not hold them.
constexpr double kMostForHeld = 2;
/// Forwards that the first stages of a pipeline run without waiting for each other.
constexpr double kForwardsAtOnce = 2;
/// Blocks of a Llama model whose forwards fit into the queue of launches: 1,100, of 49 each
/// (docs/concepts/host.md).
constexpr double kQueuedBlocks = 1100.0 / 49;

/// The memory of a moment beyond the states and the activations of the microbatches in flight.
struct Load {
  double activations = 0;  // below zero: gone already
  double loss = 0;
  double transient = 0;
  double gathered = 0;
  double sum() const { return activations + loss + transient + gathered; }
};

/// A chunk for one microbatch: everything that it keeps, and its moments at their worst.
struct ChunkLoads {
  double saved = 0;
  Load forward;               // at the end
  std::optional<Load> head;   // backward of the layer that made the logits, which are gone
  std::optional<Load> layer;  // backward of any other
};

double loss_of(const Layer& layer) {
  double bytes = 0;
  for (const SavedActivation& k : layer.saved)
    if (k.transient) bytes += k.bytes.b();
  return bytes;
}

/// What a layer keeps with a share of what may be held.
double kept_by(const Layer& layer, double held) {
  const Bytes surely = surely_saved(layer);
  return (surely + (layer.saved_bytes() - surely) * held).b();
}

/// The weights of a layer as ranks gather them whole. `each`: bytes of one that is not in 4 bits.
double gathered_weights(const Layer& layer, double each) {
  double bytes = 0;
  for (const workload::Weights& w : layer.weights)
    bytes += w.count * (w.nf4 ? std::min(workload::kNf4Sharded, each) : each);
  return bytes;
}

ChunkLoads loads_of(const workload::Chunk& chunk, const workload::Gathering& gathering,
                    double held) {
  ChunkLoads loads;
  for (const Layer& layer : chunk.layers) loads.saved += layer.count * kept_by(layer, held);
  double gone = 0;  // kept by layers whose backward has ended
  for (std::size_t i = chunk.layers.size(); i-- > 0;) {
    const Layer& layer = chunk.layers[i];
    const double each = gathering.weights;
    const double now =
        layer.gathered_at_once ? *layer.gathered_at_once * each : gathered_weights(layer, each);
    const double ahead = layer.count > 1 ? now
                         : i > 0         ? gathered_weights(chunk.layers[i - 1], each)
                                         : 0;
    const double weights = now + gathering.ahead * ahead;
    const double gradient =
        gathering.gradient * layer.gathered_at_once.value_or(layer.trained_parameters());
    const double loss = loss_of(layer), saved = kept_by(layer, held);
    if (i + 1 == chunk.layers.size()) loads.forward.gathered = weights;
    loads.forward.loss += loss;
    const Load backward = {.activations = -gone,
                           .transient = backward_transient(layer).b(),
                           .gathered = weights + gradient};
    if (loss > 0)
      loads.head = backward;
    else if (!loads.layer || backward.sum() > loads.layer->sum())
      loads.layer = backward;
    gone += layer.count * saved;
  }
  return loads;
}

/// The most forwards whose backward has not ended.
double most_in_flight(const Stage& stage) {
  double in_flight = 0, most = 1;
  for (const Slot& slot : stage.order) {
    if (slot.pass == Pass::kForward) most = std::max(most, ++in_flight);
    if (slot.pass == Pass::kBackward) --in_flight;
  }
  return most;
}

/// The share of what may be held that a host holds which is so far ahead.
double held_share(const Stage& stage, RunAhead ahead) {
  if (ahead == RunAhead::kNone) return 0;
  double blocks = 0;
  for (const workload::Chunk& chunk : stage.chunks)
    for (const Layer& layer : chunk.layers) blocks += layer.count * layer.host_work;
  const double most = most_in_flight(stage);
  blocks *= most / static_cast<double>(stage.chunks.size());
  const double waiting = ahead == RunAhead::kAll ? 1 : std::max(0.0, 1 - kForwardsAtOnce / most);
  return std::min(waiting, blocks > 0 ? kQueuedBlocks / blocks : 1);
}

bool splits_backward(const Stage& stage) {
  return std::ranges::any_of(stage.order,
                             [](const Slot& s) { return s.pass == Pass::kBackwardWeights; });
}

class Curve {
 public:
  Curve(const workload::Layout& layout, const Stage& stage, const Device& device,
        const Assumptions& assumptions, double held)
      : stage_(stage), assumptions_(assumptions) {
    const double parameters = stage.parameters();
    base_.weights = Bytes::b(parameters * stage.states.weights);
    base_.gradients = Bytes::b(parameters * stage.states.gradient);
    base_.optimizer = Bytes::b(parameters * stage.states.optimizer);
    base_.gathered = device.workspaces;
    base_.context =
        context_of(device, communicators_of(layout.ranks(), stage.degrees, layout.stages.size()));
    running_ = base_;
    if (!assumptions.gradients_stay && layout.microbatches <= 1) running_.gradients = Bytes::b(0);
    running_.gathered += stage.gathered;
    for (const workload::Chunk& chunk : stage.chunks)
      chunks_.push_back(loads_of(chunk, stage.gathering, held));
  }

  std::vector<Moment> moments() {
    std::vector<Moment> moments;
    each([&](std::string_view phase, std::optional<std::size_t> slot, double activations,
             const Load& load) { moments.push_back(moment(phase, slot, activations, load)); });
    moments.push_back(optimizer());
    return moments;
  }

  /// The first of those with the most, without the others.
  Moment peak() {
    struct {
      std::string_view phase = {};
      std::optional<std::size_t> slot = {};
      double activations = 0;
      const Load* load = nullptr;
      double sum = -1;
    } most;
    each([&](std::string_view phase, std::optional<std::size_t> slot, double activations,
             const Load& load) {
      const double sum = std::max(0.0, activations + load.activations) + load.loss +
                         load.transient + load.gathered;
      if (sum > most.sum) most = {phase, slot, activations, &load, sum};
    });
    Moment update = optimizer();
    if (most.load == nullptr) return update;
    Moment running = moment(most.phase, most.slot, most.activations, *most.load);
    return running.parts.total() < update.parts.total() ? update : running;
  }

 private:
  /// Every moment except that of the optimizer.
  template <class Take>
  void each(Take take) {
    const Pass frees = splits_backward(stage_) ? Pass::kBackwardWeights : Pass::kBackward;
    std::vector<std::uint32_t> held(chunks_.size(), 0);
    double activations = 0;
    for (std::size_t i = 0; i < stage_.order.size(); ++i) {
      const Slot& slot = stage_.order[i];
      REHEARSE_CHECK(slot.chunk < chunks_.size(), "slot of chunk {} of {}", slot.chunk,
                     chunks_.size());
      const ChunkLoads& chunk = chunks_[slot.chunk];
      if (slot.pass == Pass::kForward) {
        ++held[slot.chunk];
        activations += chunk.saved;
        take("forward", i, activations, chunk.forward);
      } else if (slot.pass != Pass::kRecompute) {
        if (chunk.head && slot.pass == Pass::kBackward)
          take("head backward", i, activations, *chunk.head);
        if (chunk.layer) take("layer backward", i, activations, *chunk.layer);
      }
      if (slot.pass == frees && held[slot.chunk] > 0) {
        --held[slot.chunk];
        activations -= chunk.saved;
      }
    }
  }

  Moment moment(std::string_view phase, std::optional<std::size_t> slot, double activations,
                const Load& load) const {
    Parts parts = running_;
    parts.activations = Bytes::b(std::max(0.0, activations + load.activations));
    parts.loss = Bytes::b(load.loss);
    parts.transient = Bytes::b(load.transient);
    parts.gathered += Bytes::b(load.gathered);
    return with_reserve(phase, slot, parts);
  }
  /// Gradients are unscaled or clipped, and the update has temporaries: a copy of them.
  Moment optimizer() const {
    Parts update = base_;
    update.transient = stage_.states.update ? flat_update() : base_.gradients;
    return with_reserve("optimizer", std::nullopt, update);
  }
  Moment with_reserve(std::string_view phase, std::optional<std::size_t> slot, Parts parts) const {
    parts.reserve = (parts.total() - parts.context) * (assumptions_.reserve - 1);
    if (slot) parts.reserve += flat_update();
    return {phase, slot, parts};
  }

  /// An optimizer that updates a shard copies its gradients into tensors as large as the shard.
  /// Freed blocks of activations are smaller, so the allocator reserves these besides.
  Bytes flat_update() const {
    return Bytes::b(stage_.parameters() * stage_.states.update.value_or(0));
  }

  const Stage& stage_;
  const Assumptions& assumptions_;
  Parts base_{}, running_{};
  std::vector<ChunkLoads> chunks_ = {};
};

/// A rank without and with everything that may be held, and what its interval depends on.
struct Cases {
  Parts least, likely, most;
  Assumptions assumptions;
  std::uint32_t communicators;
  bool routed;  ///< experts are on other ranks too

  Fit fit(Bytes usable) const {
    if (most.total() <= usable * (1 - kHeadroom)) return Fit::kFits;
    return least.total() <= usable * (1 + kHeadroom) ? Fit::kBorderline : Fit::kDoesNotFit;
  }

  /// The 90 % interval around what is `counted` of the parts. Errors of parts are independent.
  Estimate<Bytes> interval(Bytes (*counted)(const Parts&), double nccl, double reserve) const {
    const auto width = [&](const Parts& parts, double implementation, double scale,
                           double reserved) {
      const double errors[] = {
          scale * 0.02 * parts.states().b(),
          implementation * (parts.activations + parts.loss).b(),
          scale * 0.50 * (parts.gathered + parts.transient).b(),
          scale * Bytes::mib(kSmallMib).b(),
          reserve * reserved * parts.allocated().b(),
          nccl * kNcclUncertainty * kNcclGib * communicators * Bytes::gib(1).b()};
      double sum = 0;
      for (const double e : errors) sum += e * e;
      return Bytes::b(std::sqrt(sum));
    };
    const auto [below, above] = implementation_error();
    return {counted(likely),
            std::max(Bytes::b(0), counted(least) - width(least, below, kPartsBelow, kReserveBelow)),
            counted(most) + width(most, above, kPartsAbove, kReserveAbove),
            assumptions.implementation == Knowledge::kMeasured ? Provenance::kInterpolated
                                                               : Provenance::kExtrapolated};
  }

  /// Of activations and loss. What a model of a layer leaves out adds memory, and so does a rank
  /// whose experts get more than their share of tokens.
  std::pair<double, double> implementation_error() const {
    if (assumptions.implementation == Knowledge::kUnknown) return {0.30, 0.30};
    const double known = assumptions.implementation == Knowledge::kMeasured ? 0.05 : 0.08;
    return {kPartsBelow * known, kPartsAbove * (routed ? 0.25 : 1.5 * known)};
  }
};

/// With this share of what may be held; where the device has no room for it, with what has room.
template <class Peak>
Moment likely_peak(Bytes least, const Moment& most, double held, Bytes usable, const Peak& peak) {
  const Bytes more = most.parts.total() - least;
  if (more * held > least * (kMostForHeld - 1)) held = 0;
  if (least + more * held > usable) held = std::max(0.0, (usable - least) / more);
  return held == 1 || more == Bytes::b(0) ? most : peak(held);
}

}  // namespace

Bytes Parts::total() const {
  Bytes sum = Bytes::b(0);
  for (const NamedPart& part : kParts) sum += this->*part.bytes;
  return sum;
}

namespace {

Bytes workspaces_of(const cluster::Gpu& gpu) {
  if (gpu.vendor != "nvidia") return Bytes::b(0);
  const bool recent =
      gpu.architecture.starts_with("hopper") || gpu.architecture.starts_with("blackwell");
  return Bytes::mib(recent ? kWorkspacesSinceHopperMib : kWorkspacesMib);
}

}  // namespace

Device device_of(const cluster::Gpu& gpu) {
  const Bytes workspaces = workspaces_of(gpu);
  if (!gpu.partition_of.empty()) return {gpu.memory, gpu.multiprocessors, gpu.name, workspaces};
  const bool corrected = gpu.memory_type.starts_with("GDDR") &&
                         gpu.form_factor.find("consumer") == std::string::npos &&
                         gpu.form_factor.find("workstation") == std::string::npos;
  const double named = gpu.memory.b() / 1e9;
  return {Bytes::gib(named * (corrected ? 15.0 / 16 : 0.99)), gpu.multiprocessors, gpu.name,
          workspaces};
}

std::uint32_t communicators_of(std::uint32_t ranks, const workload::Degrees& d,
                               std::size_t stages) {
  const bool parts[] = {ranks > 1,     d.data > 1,   d.tensor > 1,
                        d.context > 1, d.expert > 1, stages > 1};
  return static_cast<std::uint32_t>(std::ranges::count(parts, true));
}

Bytes context_of(const Device& device, std::uint32_t communicators) {
  return Bytes::mib(kContextMibPerMultiprocessor * device.multiprocessors) +
         Bytes::gib(kNcclGib) * communicators;
}

bool may_hold(const Stage& stage) {
  for (const workload::Chunk& chunk : stage.chunks)
    for (const Layer& layer : chunk.layers)
      for (const SavedActivation& k : layer.saved)
        if (k.unsure > Bytes::b(0)) return true;
  return false;
}

Bytes surely_saved(const Layer& layer) {
  Bytes sum = layer.saved_bytes();
  for (const SavedActivation& k : layer.saved) sum = sum - k.unsure;
  return sum;
}

Bytes backward_transient(const Layer& layer) {
  return surely_saved(layer) * kBackwardTransient + layer.recomputed * kRecomputed + layer.whole;
}

std::vector<Moment> memory_curve(const workload::Layout& layout, const Stage& stage,
                                 const Device& device, const Assumptions& assumptions) {
  return Curve(layout, stage, device, assumptions, held_share(stage, assumptions.ahead)).moments();
}

StageMemory memory_of(const workload::Layout& layout, const Stage& stage, const Device& device,
                      const Assumptions& assumptions) {
  const auto peak = [&](double held) {
    return Curve(layout, stage, device, assumptions, held).peak();
  };
  const double all = held_share(stage, RunAhead::kAll);
  const Moment most = peak(all), least = may_hold(stage) ? peak(0) : most;
  const double held = held_share(stage, assumptions.ahead) / all;
  const Moment likely = likely_peak(least.parts.total(), most, held, device.usable,
                                    [&](double share) { return peak(share * all); });
  const Cases cases = {least.parts,
                       likely.parts,
                       most.parts,
                       assumptions,
                       communicators_of(layout.ranks(), stage.degrees, layout.stages.size()),
                       stage.degrees.expert > 1};
  return {.peak = cases.interval([](const Parts& p) { return p.total(); }, 1, 1),
          .reserved = cases.interval([](const Parts& p) { return p.total() - p.context; }, 0, 1),
          .allocated = cases.interval([](const Parts& p) { return p.allocated(); }, 0, 0),
          .parts = likely.parts,
          .phase = likely.phase,
          .device = device,
          .fit = cases.fit(device.usable)};
}

std::vector<StageMemory> memory_of(const workload::Layout& layout, const Device& device,
                                   const Assumptions& assumptions) {
  std::vector<StageMemory> memory;
  for (const Stage& stage : layout.stages)
    memory.push_back(memory_of(layout, stage, device, assumptions));
  return memory;
}

const StageMemory& fullest(const std::vector<StageMemory>& memory) {
  REHEARSE_CHECK(!memory.empty(), "a layout without stages");
  return *std::ranges::max_element(memory, {}, &StageMemory::share);
}

std::vector<std::string> remedies(const std::vector<StageMemory>& memory,
                                  const std::vector<Trial>& trials) {
  const StageMemory& now = fullest(memory);
  if (now.fit == Fit::kFits) return {};
  struct Gain {
    const Trial* trial;
    StageMemory after;
  };
  std::vector<Gain> gains;
  for (const Trial& trial : trials)
    if (const StageMemory& after = fullest(trial.memory); after.share() < now.share())
      gains.push_back({&trial, after});
  std::ranges::stable_sort(
      gains, [](const Gain& a, const Gain& b) { return a.after.share() < b.after.share(); });
  std::vector<std::string> lines;
  for (const Gain& gain : gains)
    // The fullest stage may then be on a larger device.
    lines.push_back(now.device.usable == gain.after.device.usable
                        ? fmt::format("{}: {} less, {} in all; {}", gain.trial->change,
                                      to_string(now.peak.value - gain.after.peak.value),
                                      to_string(gain.after.peak.value),
                                      kFitNames[static_cast<int>(gain.after.fit)])
                        : fmt::format("{}: {} of {} on {}; {}", gain.trial->change,
                                      to_string(gain.after.peak.value),
                                      to_string(gain.after.device.usable), gain.after.device.name,
                                      kFitNames[static_cast<int>(gain.after.fit)]));
  return lines;
}

}  // namespace rehearse::memory
