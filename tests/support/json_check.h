// What must hold of every JSON document that the program writes.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace rehearse::test {

using Json = nlohmann::json;

/// Checks that there is no null (JSON's only way to write NaN and infinity) but where `may_lack`
/// names the key, that every value has its unit, and that every prediction is
/// {value, low, high, unit, provenance} with low <= value <= high.
void check_values(const Json& json, std::string_view may_lack = "");

/// Checks that a path such as "ranks[].steps[].name" leads to something: in every element of each
/// list on the way, of which there must be one at least.
void check_has(const Json& json, std::string_view path);

}  // namespace rehearse::test
