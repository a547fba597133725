#include "tests/support/json_check.h"

#include <set>
#include <string>

#include <catch2/catch.hpp>

namespace rehearse::test {
namespace {

void check_quantity(const Json& json) {
  INFO(json.dump());
  CHECK(json.contains("unit"));
  if (!json.contains("low") && !json.contains("high")) return;
  static const std::set<std::string> kProvenances = {"recorded", "interpolated", "extrapolated",
                                                     "datasheet"};
  REQUIRE(json.contains("low"));
  REQUIRE(json.contains("high"));
  REQUIRE(json.contains("provenance"));
  CHECK(json["low"] <= json["value"]);
  CHECK(json["value"] <= json["high"]);
  CHECK(kProvenances.contains(json["provenance"].get<std::string>()));
}

}  // namespace

Json document(const Ran& ran, int code) {
  INFO(ran.errors);
  REQUIRE(ran.code == code);
  Json json = Json::parse(ran.out);
  CHECK(json["schema"] == "rehearse/1");
  return json;
}

Json json_of(std::vector<std::string> arguments, int code) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const std::string command = arguments.front();
  Json json = document(rehearse(std::move(arguments)), code);
  CHECK(json["command"] == command);
  return json;
}

Json checked_json_of(std::vector<std::string> arguments, int code) {
  Json json = json_of(std::move(arguments), code);
  check_values(json);
  return json;
}

double value(const Json& json) { return json["value"].get<double>(); }

void check_values(const Json& json, std::string_view may_lack) {
  if (json.is_object() && json.contains("value")) check_quantity(json);
  for (const auto& [key, value] : json.items()) {
    INFO(key);
    if (value.is_null()) CHECK(key == may_lack);
    if (value.is_structured()) check_values(value, may_lack);
  }
}

void check_has(const Json& json, std::string_view path) {
  if (path.empty()) return;
  if (path.starts_with("[]")) {
    REQUIRE(json.is_array());
    REQUIRE_FALSE(json.empty());
    path.remove_prefix(path.starts_with("[].") ? 3 : 2);
    for (const Json& element : json) check_has(element, path);
    return;
  }
  const std::size_t end = path.find_first_of(".[");
  const std::string key(path.substr(0, end));
  INFO(key << " in " << json.dump());
  REQUIRE(json.is_object());
  REQUIRE(json.contains(key));
  if (end == std::string_view::npos) return;
  path.remove_prefix(path[end] == '.' ? end + 1 : end);
  check_has(json[key], path);
}

}  // namespace rehearse::test
