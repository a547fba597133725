// The sections `training` and `plan` of a job file (docs/formats/job.md), by the tables of
// strategies/plan_fields.h.
#pragma once

#include <optional>

#include "sim/base/yaml.h"
#include "strategies/plan.h"
#include "strategies/search/space.h"

namespace rehearse::cli {

/// Returns nothing on a mistake, which is in the file's status. Settings that the section omits are
/// taken from `training`.
std::optional<strategies::Training> read_training(const YamlMap& map,
                                                  strategies::Training training = {});
std::optional<strategies::Plan> read_plan(const YamlMap& map);

/// Makes a search keep the settings that both sections of the file give; `candidate` is what was
/// read from them.
void keep_given(const YamlMap& root, const strategies::Candidate& candidate,
                strategies::Axes& axes);

}  // namespace rehearse::cli
