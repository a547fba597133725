// The sections `training` and `plan` of a job file (docs/formats/job.md), by the tables of
// strategies/plan_fields.h.
#pragma once

#include <optional>

#include "sim/base/yaml.h"
#include "strategies/plan.h"
#include "strategies/search/space.h"

namespace rehearse::cli {

/// Nothing where something is wrong, which the file's status then says. What the section does not
/// say is as in `training`.
std::optional<strategies::Training> read_training(const YamlMap& map,
                                                  strategies::Training training = {});
std::optional<strategies::Plan> read_plan(const YamlMap& map);

/// A search keeps what both sections of the file give: `candidate` is what was read of them.
void keep_given(const YamlMap& root, const strategies::Candidate& candidate,
                strategies::Axes& axes);

}  // namespace rehearse::cli
