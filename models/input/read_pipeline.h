// Pipelines from YAML: docs/formats/input-pipeline.md.
#pragma once

#include <filesystem>

#include "models/input/pipeline.h"
#include "sim/base/yaml.h"

namespace rehearse::input {

/// Errors are recorded in the map's file; the result is then meaningless. Files of recorded
/// keys are relative to `folder`.
Pipeline read_pipeline(const YamlMap& map, const std::filesystem::path& folder = {});

/// Fails with every mistake of the file, one line each.
Result<Pipeline> load_pipeline(const std::filesystem::path& path);

}  // namespace rehearse::input
