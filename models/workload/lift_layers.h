// The layer that each unit of a step belongs to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/workload/lift_units.h"

namespace rehearse::workload::lifting {

enum class LayerSource {
  kModules,    ///< calls of nn.Module
  kRanges,     ///< ranges of the program: record_function, NVTX
  kOperators,  ///< each operator with parameters begins one
};
std::string_view to_string(LayerSource source);

struct Layers {
  LayerSource source;
  std::vector<std::string> names;
  std::vector<std::uint32_t> chunks;  ///< by layer: the chunk of the pipeline stage
  /// By unit; nothing for the optimizer, and for units that belong to none.
  std::vector<std::optional<std::size_t>> of_unit;
};

/// Layers are in the order of the forward pass. A unit without its own layer (an activation, an
/// addition between two modules) belongs to the previous layer of its chunk, or to the first.
Layers find_layers(const Recording& recording, const StepUnits& step);

}  // namespace rehearse::workload::lifting
