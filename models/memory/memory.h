// The memory of a rank of a layout over a step, and whether it fits. Formulas, their sources and
// errors are in docs/concepts/memory.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"
#include "sim/cluster/catalog.h"

namespace rehearse::memory {

struct Parts {
  Bytes weights = Bytes::b(0);
  Bytes gradients = Bytes::b(0);
  Bytes optimizer = Bytes::b(0);
  Bytes activations = Bytes::b(0);
  Bytes loss = Bytes::b(0);  ///< logits and their copies
  /// Shards of other ranks, gathered; communication buffers; workspaces of libraries.
  Bytes gathered = Bytes::b(0);
  Bytes transient = Bytes::b(0);
  Bytes context = Bytes::b(0);  ///< driver and NCCL, outside the allocator
  Bytes reserve = Bytes::b(0);  ///< the allocator's reserve beyond allocated memory
  Bytes total() const;
  Bytes states() const { return weights + gradients + optimizer; }
  Bytes allocated() const { return total() - context - reserve; }
};
/// The parts by name, in the order in which they are added up.
struct NamedPart {
  const char* name;
  Bytes Parts::*bytes;
};
inline constexpr NamedPart kParts[] = {
    {"weights", &Parts::weights},     {"gradients", &Parts::gradients},
    {"optimizer", &Parts::optimizer}, {"activations", &Parts::activations},
    {"loss", &Parts::loss},           {"gathered", &Parts::gathered},
    {"transient", &Parts::transient}, {"context", &Parts::context},
    {"reserve", &Parts::reserve}};

enum class Fit : std::uint8_t { kFits, kBorderline, kDoesNotFit };
inline constexpr std::string_view kFitNames[] = {"fits", "borderline", "does not fit"};

struct Device {
  Bytes usable;
  std::uint32_t multiprocessors;  ///< the context grows with them
  std::string name = {};          ///< in the catalog; for people
  /// Workspaces of cuBLAS for the threads of forward and backward, and of TransformerEngine.
  Bytes workspaces = Bytes::b(0);
};

/// Usable memory of a GPU, by its name: "80 GB" is 80 GiB less 1 % (A100
/// 79.2, H100 79.6), and less a sixteenth for GDDR with error correction (A10G 22.5 of 24).
Device device_of(const cluster::Gpu& gpu);

/// The memory outside the allocator: the driver's context, and NCCL's buffers of each communicator.
Bytes context_of(const Device& device, std::uint32_t communicators);
/// The number of communicators of a rank: one of all ranks, one per kind of group, one for stages.
std::uint32_t communicators_of(std::uint32_t ranks, const workload::Degrees& degrees,
                               std::size_t stages);
/// The activations that a layer saves in any case: without what may be held (GatheredInputs).
Bytes surely_saved(const workload::Layer& layer);
/// Whether the memory of a stage depends on RunAhead.
bool may_hold(const workload::Stage& stage);
/// Additional memory of a layer's backward beyond saved activations.
Bytes backward_transient(const workload::Layer& layer);

/// Knowledge of the framework's saved activations.
enum class Knowledge : std::uint8_t {
  kUnknown,   ///< ±30 % of activations and loss
  kKnown,     ///< −8 % to +12 %: the implementation that the workload was built for
  kMeasured,  ///< −5 % to +7.5 %: saved activations of another run of the same implementation
};

/// How far the host of a rank is ahead of its device. PyTorch's allocator (before 2.8) keeps a freed
/// block that a collective used until the host sees that the device has finished it.
enum class RunAhead : std::uint8_t {
  kNone,    ///< the host waits for the device at each message, as in runs that stall
  kWarmUp,  ///< of a pipeline: two forwards run at once, the others wait for the next stage
  kAll,     ///< all forwards that it has begun
};

/// Assumptions that are not part of a layout.
struct Assumptions {
  Knowledge implementation = Knowledge::kKnown;
  /// Reserved by a caching allocator ÷ allocated. Inferred from torchtitan's Llama 3, where it
  /// trades with the bytes per logit.
  double reserve = 1.05;
  /// Gradients take memory from the first microbatch to the last, as in separate buffers
  /// (Megatron) and in an allocator that keeps its memory. Otherwise forward and backward of a step
  /// with one microbatch do not need it.
  bool gradients_stay = true;
  RunAhead ahead = RunAhead::kAll;
};

/// A moment of the step of a rank. `slot` counts in Stage::order; the optimizer has none.
struct Moment {
  std::string_view phase;  ///< "forward", "head backward", "layer backward", "optimizer"
  std::optional<std::size_t> slot;
  Parts parts;
};

/// The memory over the step: a moment per slot (two where the head turns round), then the
/// optimizer.
std::vector<Moment> memory_curve(const workload::Layout& layout, const workload::Stage& stage,
                                 const Device& device, const Assumptions& assumptions = {});

struct StageMemory {
  Estimate<Bytes> peak;       ///< of the device
  Estimate<Bytes> reserved;   ///< by the allocator: without the context
  Estimate<Bytes> allocated;  ///< without what the allocator reserves beyond
  Parts parts;                ///< at the peak
  std::string_view phase;     ///< phase of the peak
  Device device;
  Fit fit;
  double share() const { return peak.value / device.usable; }  ///< relative to the usable memory
};

/// A rank of a stage on a device. Within 5 % of the usable memory the answer is "borderline".
/// Blocks that may be held (GatheredInputs::kUnknown) count as `ahead` says, but not beyond the usable
/// memory, where the allocator waits for the device, and not if they would more than double the
/// memory. The interval holds the cases with none and with all of them.
StageMemory memory_of(const workload::Layout& layout, const workload::Stage& stage,
                      const Device& device, const Assumptions& assumptions = {});
/// By stage, if all ranks are on one kind of device.
std::vector<StageMemory> memory_of(const workload::Layout& layout, const Device& device,
                                   const Assumptions& assumptions = {});

/// The stage that needs the largest share of its device. REQUIRES: not empty.
const StageMemory& fullest(const std::vector<StageMemory>& memory);

/// A change that was tried.
struct Trial {
  std::string change;  ///< "full recomputation"
  std::vector<StageMemory> memory;
};

/// Changes that would make it fit, most effective first, one line each with its bytes; changes
/// without effect are omitted. Empty if it fits.
std::vector<std::string> remedies(const std::vector<StageMemory>& memory,
                                  const std::vector<Trial>& trials);

}  // namespace rehearse::memory
