// Changes of single values in the text of a YAML file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.h"

namespace rehearse {

/// A path of keys ("plan.tensor"), and its new value; an empty value removes the last key.
using YamlChange = std::pair<std::string, std::string>;

/// The text with these changes, applied in order. Missing mappings on a path are added. The order and
/// the form of other values stay; comments do not. Without changes the text is the same. Fails if the
/// text is not YAML, and if a path leads through something other than a mapping.
Result<std::string> with_changes(const std::string& text, const std::vector<YamlChange>& changes);

}  // namespace rehearse
