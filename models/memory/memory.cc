#include "models/memory/memory.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::memory {
namespace {

using workload::Layer;
using workload::Pass;
using workload::SavedActivation;
using workload::Slot;
using workload::Stage;

/// Galvatron's profiles, in units of a layer's activations: the additional memory of backward
/// beyond saved activations, and a recomputed layer with its gradients.
constexpr double kBackwardTransient = 0.45;
constexpr double kRecomputed = 1.8;

/// The CUDA context (A100, H100: 0.45 to 0.55 GiB), and NCCL, which was not measured: 0.3 to 0.5
/// GiB.
constexpr double kContextMibPerMultiprocessor = 4.27;
constexpr double kNcclGib = 0.4, kNcclUncertaintyGib = 0.1;

constexpr double kHeadroom = 0.05;

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

ChunkLoads loads_of(const workload::Chunk& chunk, const workload::Gathering& gathering) {
  ChunkLoads loads;
  for (const Layer& layer : chunk.layers) loads.saved += layer.count * layer.saved_bytes().b();
  double gone = 0;  // kept by layers whose backward has ended
  for (std::size_t i = chunk.layers.size(); i-- > 0;) {
    const Layer& layer = chunk.layers[i];
    const double parameters = layer.parameters();
    const double ahead = layer.count > 1 ? parameters
                         : i > 0         ? chunk.layers[i - 1].parameters()
                                         : 0;
    const double weights = gathering.weights * (parameters + gathering.ahead * ahead);
    const double gradient = gathering.gradient * parameters;
    const double loss = loss_of(layer), saved = layer.saved_bytes().b();
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

bool splits_backward(const Stage& stage) {
  return std::any_of(stage.order.begin(), stage.order.end(),
                     [](const Slot& s) { return s.pass == Pass::kBackwardWeights; });
}

class Curve {
 public:
  Curve(const workload::Layout& layout, const Stage& stage, const Device& device,
        const Assumptions& assumptions)
      : stage_(stage), assumptions_(assumptions) {
    const double parameters = stage.parameters();
    base_.weights = Bytes::b(parameters * stage.states.weights);
    base_.gradients = Bytes::b(parameters * stage.states.gradient);
    base_.optimizer = Bytes::b(parameters * stage.states.optimizer);
    base_.context = context_of(device, layout.ranks() > 1);
    running_ = base_;
    if (!assumptions.gradients_stay && layout.microbatches <= 1) running_.gradients = Bytes::b(0);
    running_.gathered = stage.gathered;
    for (const workload::Chunk& chunk : stage.chunks)
      chunks_.push_back(loads_of(chunk, stage.gathering));
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
    update.transient = base_.gradients;
    return with_reserve("optimizer", std::nullopt, update);
  }
  Moment with_reserve(std::string_view phase, std::optional<std::size_t> slot, Parts parts) const {
    parts.reserve = (parts.total() - parts.context) * (assumptions_.reserve - 1);
    return {phase, slot, parts};
  }

  const Stage& stage_;
  const Assumptions& assumptions_;
  Parts base_{}, running_{};
  std::vector<ChunkLoads> chunks_ = {};
};

/// Half the width of the 90 % interval. The errors of parts are independent.
Bytes half_width(const Parts& parts, const Assumptions& assumptions, bool communicates) {
  const double implementation = assumptions.implementation == Knowledge::kUnknown    ? 0.30
                                : assumptions.implementation == Knowledge::kMeasured ? 0.05
                                                                                     : 0.08;
  const double errors[] = {
      0.02 * parts.states().b(), implementation * (parts.activations + parts.loss).b(),
      0.50 * (parts.gathered + parts.transient).b(), 0.03 * parts.allocated().b(),
      communicates ? Bytes::gib(kNcclUncertaintyGib).b() : 0};
  double sum = 0;
  for (const double e : errors) sum += e * e;
  return Bytes::b(std::sqrt(sum));
}

Fit fit_of(Bytes peak, Bytes usable) {
  if (peak <= usable * (1 - kHeadroom)) return Fit::kFits;
  return peak <= usable * (1 + kHeadroom) ? Fit::kBorderline : Fit::kDoesNotFit;
}

}  // namespace

Bytes Parts::total() const {
  return weights + gradients + optimizer + activations + loss + gathered + transient + context +
         reserve;
}

Device device_of(const cluster::Gpu& gpu) {
  if (!gpu.partition_of.empty()) return {gpu.memory, gpu.multiprocessors, gpu.name};
  const bool corrected = gpu.memory_type.starts_with("GDDR") &&
                         gpu.form_factor.find("consumer") == std::string::npos &&
                         gpu.form_factor.find("workstation") == std::string::npos;
  const double named = gpu.memory.b() / 1e9;
  return {Bytes::gib(named * (corrected ? 15.0 / 16 : 0.99)), gpu.multiprocessors, gpu.name};
}

Bytes context_of(const Device& device, bool communicates) {
  const Bytes driver = Bytes::mib(kContextMibPerMultiprocessor * device.multiprocessors);
  return communicates ? driver + Bytes::gib(kNcclGib) : driver;
}

Bytes backward_transient(const Layer& layer) {
  return layer.saved_bytes() * kBackwardTransient + layer.recomputed * kRecomputed;
}

std::vector<Moment> memory_curve(const workload::Layout& layout, const Stage& stage,
                                 const Device& device, const Assumptions& assumptions) {
  return Curve(layout, stage, device, assumptions).moments();
}

StageMemory memory_of(const workload::Layout& layout, const Stage& stage, const Device& device,
                      const Assumptions& assumptions) {
  const Moment peak = Curve(layout, stage, device, assumptions).peak();
  const Bytes total = peak.parts.total();
  const Bytes half = half_width(peak.parts, assumptions, layout.ranks() > 1);
  const Provenance provenance = assumptions.implementation == Knowledge::kMeasured
                                    ? Provenance::kInterpolated
                                    : Provenance::kExtrapolated;
  return {.peak = {total, total - half, total + half, provenance},
          .parts = peak.parts,
          .phase = peak.phase,
          .device = device,
          .fit = fit_of(total, device.usable)};
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
  return *std::max_element(
      memory.begin(), memory.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.share() < b.share(); });
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
  std::stable_sort(gains.begin(), gains.end(),
                   [](const Gain& a, const Gain& b) { return a.after.share() < b.after.share(); });
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
