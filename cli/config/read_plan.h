// The sections `training` and `plan` of a job file (docs/formats/job.md).
#pragma once

#include <optional>

#include "sim/base/yaml.h"
#include "strategies/plan.h"

namespace rehearse::cli {

/// Nothing where something is wrong, which the file's status then says. What the section does not
/// say is as in `training`.
std::optional<strategies::Training> read_training(const YamlMap& map,
                                                  strategies::Training training = {});
std::optional<strategies::Plan> read_plan(const YamlMap& map);

}  // namespace rehearse::cli
