// Reads a dataflow file (docs/formats/dataflow.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/dataflow/dataflow.h"
#include "models/dataflow/run.h"
#include "sim/base/yaml.h"

namespace rehearse::dataflow {

struct DataflowJob {
  Dataflow flow;  ///< after its passes
  std::string device;
  Host host = {};
  std::vector<std::pair<std::string, double>> symbols = {};  ///< without those of layers
  std::vector<std::string> passes = {};
};

/// Fails with every mistake, one line each. A file under `dataflow` is relative to `folder`; the keys
/// of the mapping replace those of that file, and its symbols are added to those of that file.
Result<DataflowJob> read_dataflow(const YamlMap& map, const std::filesystem::path& folder);

/// The same of a file.
Result<DataflowJob> load_dataflow(const std::filesystem::path& path);

/// Whether a file is a dataflow.
bool is_dataflow_file(const std::filesystem::path& path);

}  // namespace rehearse::dataflow
