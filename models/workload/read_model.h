// The `workload:` section of a job, or the same mapping elsewhere (docs/formats/model.md).
#pragma once

#include <filesystem>
#include <optional>

#include "models/workload/description.h"
#include "sim/base/yaml.h"

namespace rehearse::workload {

/// One of
///   model: a name of the zoo, with dimensions that differ from it
///   kind: transformer, resnet, ... with all its dimensions
///   hugging_face: the path of a config.json, from `folder`, with dimensions that differ from it
///   layers: a list of layers with measured times
/// and, for all but the last, how it is computed: attention, elementwise, dropout, loss,
/// expanded_keys; what is not given is as in `how`.
///
/// Nothing after an error, which is recorded in the map's file. Every permitted key is requested;
/// the caller handles its own keys and no_other_keys().
/// The dimensions of what read_model would make; nothing for a list of layers, and where something
/// is wrong.
std::optional<Description> read_model_description(const YamlMap& map,
                                                  const std::filesystem::path& folder = {});

std::optional<Workload> read_model(const YamlMap& map, Implementation how,
                                   const std::filesystem::path& folder = {});

}  // namespace rehearse::workload
