// Models by name, as shipped in models/workload/zoo (each with its source), and families: models
// whose dimensions the caller gives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/workload/description.h"

namespace rehearse::workload {

struct ZooModel {
  std::string name;
  std::string source;  ///< source of its dimensions
  bool family;         ///< dimensions are to be given
  Description description = {};
};

/// In the order of the files.
const std::vector<ZooModel>& zoo();
std::vector<std::string_view> zoo_names();

/// Fails with the nearest name.
Result<Description> find_description(std::string_view name);
}  // namespace rehearse::workload
