// Documents that the program writes as JSON, and checks that apply to each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/rehearse.h"

namespace rehearse::test {

using Json = nlohmann::json;

/// The output of a run with `--format json`; fails the test if it ended with another code.
Json document(const Ran& ran, int code = 0);

/// Runs the program with these arguments and `--format json`, and returns its document.
Json json_of(std::vector<std::string> arguments, int code = 0);

/// The same, with the document checked by check_values.
Json checked_json_of(std::vector<std::string> arguments, int code = 0);

/// The number of a {value, unit}.
double value(const Json& json);

/// Checks that there is no null (JSON's only way to write NaN and infinity) except at keys named in
/// `may_lack`, that every value has its unit, and that every prediction is {value, low, high, unit,
/// provenance} with low <= value <= high.
void check_values(const Json& json, std::string_view may_lack = "");

/// Checks that a path such as "ranks[].steps[].name" exists in every element of each list on the
/// way, and that each such list has at least one element.
void check_has(const Json& json, std::string_view path);

}  // namespace rehearse::test
