// Layers known only by their measured times, such as a profile per layer.
#pragma once

#include <optional>
#include <string>

#include "models/workload/workload.h"
#include "sim/base/yaml.h"

namespace rehearse::workload {

/// The list at `layers`: each with name, forward, backward, parameters, output, kept, count and
/// inputs (names of earlier layers). Times are those of `samples` samples, as is the
/// workload. Nothing after an error, which is recorded.
std::optional<Workload> read_measured_layers(const YamlMap& map);

}  // namespace rehearse::workload
