// The memory of a rank of a layout: how much at which moment of the step, and whether it fits.
// Formulas, their sources and errors: docs/concepts/memory.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::memory {

/// At the peak.
struct Parts {
  Bytes weights = Bytes::b(0);
  Bytes gradients = Bytes::b(0);
  Bytes optimizer = Bytes::b(0);
  Bytes activations = Bytes::b(0);
  Bytes loss = Bytes::b(0);      ///< logits and their copies
  Bytes gathered = Bytes::b(0);  ///< shards of other ranks, gathered; communication buffers
  Bytes transient = Bytes::b(0);
  Bytes context = Bytes::b(0);  ///< of the driver and NCCL, outside the allocator
  Bytes reserve = Bytes::b(0);  ///< of the allocator, above what is allocated
  Bytes total() const;
};

enum class Fit : std::uint8_t { kFits, kBorderline, kDoesNotFit };
inline constexpr std::string_view kFitNames[] = {"fits", "borderline", "does not fit"};

struct Device {
  Bytes usable;
  std::uint32_t multiprocessors;  ///< the context grows with them
};

struct StageMemory {
  Estimate<Bytes> peak;
  Parts parts;
  std::string_view phase;  ///< in which the peak stands: "forward", "head backward", …
  Fit fit;
};

/// By stage.
std::vector<StageMemory> memory_of(const workload::Layout& layout, const Device& device);

/// What would make it fit, most effective first, one line each; empty where it fits.
std::vector<std::string> remedies(const workload::Layout& layout,
                                  const std::vector<StageMemory>& memory);

}  // namespace rehearse::memory
