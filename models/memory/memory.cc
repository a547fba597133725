#include "models/memory/memory.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::memory {
namespace {

using workload::Kept;
using workload::Layer;
using workload::Pass;
using workload::Slot;
using workload::Stage;

/// Galvatron's profiles, in layers' worth of activations: what a backward needs beside what was
/// kept, and a layer that is computed again with its gradients.
constexpr double kBackwardTransient = 0.45;
constexpr double kRecomputed = 1.8;

/// Of the CUDA context (A100, H100: 0.45 to 0.55 GiB), and of NCCL, which nobody measured: 0.3 to
/// 0.5 GiB.
constexpr double kContextMibPerMultiprocessor = 4.27;
constexpr double kNcclGib = 0.4, kNcclUncertaintyGib = 0.1;

constexpr double kHeadroom = 0.05;

/// What a chunk holds for a microbatch, and what its layers need while they run.
struct ChunkBytes {
  double kept = 0;
  double loss = 0;
  double transient = 0;  // the most of one layer
};

ChunkBytes bytes_of(const workload::Chunk& chunk) {
  ChunkBytes sum;
  for (const Layer& layer : chunk.layers) {
    const double kept = layer.kept_bytes().b();
    double passing = 0;
    for (const Kept& k : layer.kept)
      if (k.transient) passing += k.bytes.b();
    sum.kept += layer.count * kept;
    // What a layer drops and computes again is held by one layer at a time; the logits of a head
    // are not computed again.
    if (layer.recompute.empty()) {
      sum.loss += passing;
      sum.transient = std::max(sum.transient, kBackwardTransient * kept);
    } else {
      sum.transient = std::max(sum.transient, kRecomputed * passing);
    }
  }
  return sum;
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
    base_.context = Bytes::mib(kContextMibPerMultiprocessor * device.multiprocessors);
    if (layout.ranks() > 1) base_.context += Bytes::gib(kNcclGib);
    base_.gathered = stage.gathered;
    running_ = base_;
    if (!assumptions.gradients_stay && layout.stages.size() == 1 && layout.microbatches <= 1)
      running_.gradients = Bytes::b(0);
    for (const workload::Chunk& chunk : stage.chunks) chunks_.push_back(bytes_of(chunk));
  }

  std::vector<Moment> moments() {
    const Pass frees = splits_backward(stage_) ? Pass::kBackwardWeights : Pass::kBackward;
    std::vector<std::uint32_t> held(chunks_.size(), 0);
    double activations = 0;
    for (std::size_t i = 0; i < stage_.order.size(); ++i) {
      const Slot& slot = stage_.order[i];
      REHEARSE_CHECK(slot.chunk < chunks_.size(), "slot of chunk {} of {}", slot.chunk,
                     chunks_.size());
      const ChunkBytes& chunk = chunks_[slot.chunk];
      if (slot.pass == Pass::kForward) {
        ++held[slot.chunk];
        activations += chunk.kept;
        add("forward", i, activations, chunk.loss, 0);
      } else {
        if (chunk.loss > 0 && slot.pass == Pass::kBackward)
          add("head backward", i, activations, chunk.loss, 0);
        add("layer backward", i, activations, 0, chunk.transient);
      }
      if (slot.pass == frees && held[slot.chunk] > 0) {
        --held[slot.chunk];
        activations -= chunk.kept;
      }
    }
    // Gradients are unscaled or clipped, and the update has temporaries: a copy of them.
    Parts update = base_;
    update.gathered = Bytes::b(0);
    update.transient = base_.gradients;
    push("optimizer", std::nullopt, update);
    return std::move(moments_);
  }

 private:
  void add(std::string_view phase, std::size_t slot, double activations, double loss,
           double transient) {
    const double factor = assumptions_.activation_factor;
    Parts parts = running_;
    parts.activations = Bytes::b(std::max(0.0, activations) * factor);
    parts.loss = Bytes::b(loss * factor);
    parts.transient = Bytes::b(transient * factor);
    push(phase, slot, parts);
  }
  void push(std::string_view phase, std::optional<std::size_t> slot, Parts parts) {
    parts.reserve = (parts.total() - parts.context) * (assumptions_.reserve - 1);
    moments_.push_back({phase, slot, parts});
  }

  const Stage& stage_;
  const Assumptions& assumptions_;
  Parts base_{}, running_{};
  std::vector<ChunkBytes> chunks_ = {};
  std::vector<Moment> moments_ = {};
};

/// Half the width of the 90 % interval. Parts err apart from each other.
Bytes half_width(const Parts& parts, const Assumptions& assumptions, bool communicates) {
  const double implementation = assumptions.implementation == Knowledge::kUnknown    ? 0.30
                                : assumptions.implementation == Knowledge::kMeasured ? 0.05
                                                                                     : 0.08;
  const double errors[] = {
      0.02 * parts.states().b(), implementation * (parts.activations + parts.loss).b(),
      0.30 * (parts.gathered + parts.transient).b(), 0.03 * parts.allocated().b(),
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
  const bool corrected = gpu.memory_type.starts_with("GDDR") &&
                         gpu.form_factor.find("consumer") == std::string::npos &&
                         gpu.form_factor.find("workstation") == std::string::npos;
  const double named = gpu.memory.b() / 1e9;
  return {Bytes::gib(named * (corrected ? 15.0 / 16 : 0.99)), gpu.multiprocessors};
}

std::vector<Moment> memory_curve(const workload::Layout& layout, const Stage& stage,
                                 const Device& device, const Assumptions& assumptions) {
  return Curve(layout, stage, device, assumptions).moments();
}

std::vector<StageMemory> memory_of(const workload::Layout& layout, const Device& device,
                                   const Assumptions& assumptions) {
  std::vector<StageMemory> memory;
  for (const Stage& stage : layout.stages) {
    const std::vector<Moment> moments = memory_curve(layout, stage, device, assumptions);
    const Moment& peak = *std::max_element(
        moments.begin(), moments.end(),
        [](const Moment& a, const Moment& b) { return a.parts.total() < b.parts.total(); });
    const Bytes total = peak.parts.total();
    const Bytes half = half_width(peak.parts, assumptions, layout.ranks() > 1);
    const Provenance provenance = assumptions.implementation == Knowledge::kMeasured
                                      ? Provenance::kInterpolated
                                      : Provenance::kExtrapolated;
    memory.push_back({.peak = {total, total - half, total + half, provenance},
                      .parts = peak.parts,
                      .phase = peak.phase,
                      .fit = fit_of(total, device.usable)});
  }
  return memory;
}

const StageMemory& fullest(const std::vector<StageMemory>& memory) {
  REHEARSE_CHECK(!memory.empty(), "a layout without stages");
  return *std::max_element(
      memory.begin(), memory.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.peak.value < b.peak.value; });
}

std::optional<Assumptions> calibrate(const StageMemory& predicted, Bytes measured_reserved,
                                     Assumptions assumptions) {
  const Parts& parts = predicted.parts;
  const bool optimizer = predicted.phase == "optimizer";
  const Bytes scaled = parts.activations + parts.loss + (optimizer ? Bytes::b(0) : parts.transient);
  const Bytes fixed = parts.allocated() - scaled;
  const Bytes measured = measured_reserved / assumptions.reserve - fixed;
  if (!(scaled > Bytes::b(0)) || !(measured > Bytes::b(0))) return std::nullopt;
  assumptions.activation_factor *= measured / scaled;
  assumptions.implementation = Knowledge::kMeasured;
  return assumptions;
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
    if (const StageMemory& after = fullest(trial.memory); after.peak.value < now.peak.value)
      gains.push_back({&trial, after});
  std::stable_sort(gains.begin(), gains.end(), [](const Gain& a, const Gain& b) {
    return a.after.peak.value < b.after.peak.value;
  });
  std::vector<std::string> lines;
  for (const Gain& gain : gains)
    lines.push_back(fmt::format("{}: {} less, {} in all; {}", gain.trial->change,
                                to_string(now.peak.value - gain.after.peak.value),
                                to_string(gain.after.peak.value),
                                kFitNames[static_cast<int>(gain.after.fit)]));
  return lines;
}

}  // namespace rehearse::memory
