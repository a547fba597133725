// docs/schemas are the schemas that the program writes; the files of the examples and studies are valid by
// them, and with a mistyped key they are not.
// REHEARSE_UPDATE_GOLDEN=1 writes them anew.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The YAML value as JSON has it.
Json json_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map: {
      Json object = Json::object();
      for (const auto& entry : node) object[entry.first.Scalar()] = json_of(entry.second);
      return object;
    }
    case YAML::NodeType::Sequence: {
      Json array = Json::array();
      for (const auto& each : node) array.push_back(json_of(each));
      return array;
    }
    case YAML::NodeType::Scalar: {
      const std::string& text = node.Scalar();
      if (node.Tag() == "!") return text;  // quoted
      if (text == "true" || text == "false") return text == "true";
      char* end = nullptr;
      const double number = std::strtod(text.c_str(), &end);
      return !text.empty() && *end == '\0' ? Json(number) : Json(text);
    }
    default: return nullptr;
  }
}

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer")
    return value.is_number() && value.get<double>() == std::floor(value.get<double>());
  return type == "number" && value.is_number();
}

/// Why a value is not valid, with its place; empty if it is. The words of JSON Schema that the schemas
/// use.
std::string fault(const Json& schema, const Json& value, const std::string& at) {
  if (schema.contains("anyOf")) {
    std::string first;
    for (const Json& each : schema["anyOf"]) {
      const std::string wrong = fault(each, value, at);
      if (wrong.empty()) return "";
      if (first.empty()) first = wrong;
    }
    return first;
  }
  if (schema.contains("type")) {
    const Json& type = schema["type"];
    bool any = false;
    for (const Json& each : type.is_array() ? type : Json::array({type}))
      any = any || is_of_type(value, each);
    if (!any) return fmt::format("{}: {} is not {}", at, value.dump(), type.dump());
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(),
                value.is_string() ? value : Json(value.dump())) == schema["enum"].end())
    return fmt::format("{}: {} is none of {}", at, value.dump(), schema["enum"].dump());
  if (value.is_number()) {
    const double n = value;
    if ((schema.contains("minimum") && n < schema["minimum"]) ||
        (schema.contains("exclusiveMinimum") && n <= schema["exclusiveMinimum"]) ||
        (schema.contains("maximum") && n > schema["maximum"]))
      return fmt::format("{}: {} is out of range", at, value.dump());
  }
  if (value.is_array() && schema.contains("items"))
    for (std::size_t i = 0; i < value.size(); ++i)
      if (std::string wrong = fault(schema["items"], value[i], fmt::format("{}[{}]", at, i));
          !wrong.empty())
        return wrong;
  if (!value.is_object()) return "";
  for (const Json& key : schema.value("required", Json::array()))
    if (!value.contains(key)) return fmt::format("{}.{} is missing", at, std::string(key));
  for (const auto& [key, inner] : value.items()) {
    const std::string path = fmt::format("{}.{}", at, key);
    std::string wrong;
    if (schema.contains("properties") && schema["properties"].contains(key))
      wrong = fault(schema["properties"][key], inner, path);
    else if (const Json other = schema.value("additionalProperties", Json(true)); other.is_object())
      wrong = fault(other, inner, path);
    else if (!other.get<bool>())
      wrong = path + " is unknown";
    if (!wrong.empty()) return wrong;
  }
  return "";
}

/// By name.
std::map<std::string, Json> schemas_in(const fs::path& folder) {
  std::map<std::string, Json> all;
  for (const std::string& name : test::names_in(folder))
    all[fs::path(name).stem()] = Json::parse(test::text_of(folder / name));
  return all;
}

/// The YAML files of each kind in the examples and studies.
std::vector<std::pair<std::string, fs::path>> files() {
  std::vector<std::pair<std::string, fs::path>> all;
  const std::pair<const char*, const char*> folders[] = {{"job", "examples/jobs"},
                                                         {"cluster", "examples/clusters"},
                                                         {"pipeline", "examples/pipelines"},
                                                         {"shapes", "examples/shapes"},
                                                         {"study", "studies"},
                                                         {"dataflow", "examples/dataflows"}};
  for (const auto& [kind, folder] : folders)
    for (const fs::directory_entry& entry : fs::directory_iterator(test::source_file(folder)))
      if (entry.path().extension() == ".yaml") all.emplace_back(kind, entry.path());
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(test::source_file("examples")))
    if (entry.path().filename() == "pair.yaml") all.emplace_back("pair", entry.path());
  all.emplace_back("budget", test::source_file("examples/ci/budget.yaml"));
  all.emplace_back("pack", test::source_file("examples/fleets/pack.yaml"));
  return all;
}

TEST_CASE("the schemas on the pages are those that the program writes") {
  const fs::path folder = test::source_file("docs/schemas"),
                 written = test::scratch_folder() / "schemas";
  const test::Ran ran = test::rehearse({"init", "--schemas", written.string()});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  const std::map<std::string, Json> schemas = schemas_in(written);
  for (const auto& [name, schema] : schemas) {
    INFO(name);
    const fs::path path = folder / (name + ".json");
    if (std::getenv("REHEARSE_UPDATE_GOLDEN"))
      std::ofstream(path, std::ios::binary) << schema.dump(2) << "\n";
    else
      CHECK(Json::parse(test::text_of(path)) == schema);
  }
  CHECK(test::names_in(folder).size() == schemas.size());
}

/// The keys without a meaning; a quantity has at least the text on its unit.
void add_undescribed(const Json& schema, const std::string& at, std::vector<std::string>& keys) {
  for (const auto& [word, inner] : schema.items()) {
    if (word == "properties" && inner.is_object())
      for (const auto& [key, property] : inner.items()) {
        const std::string path = fmt::format("{}.{}", at, key),
                          meaning = property.value("description", "");
        if (meaning.empty() || meaning.starts_with("with its unit")) keys.push_back(path);
        add_undescribed(property, path, keys);
      }
    else if (inner.is_structured())
      add_undescribed(inner, at, keys);
  }
}

TEST_CASE("keys have the meanings of their pages") {
  std::map<std::string, Json> schemas = schemas_in(test::source_file("docs/schemas"));
  const Json& job = schemas.at("job")["properties"];
  CHECK(job["serve"]["properties"]["load"]["properties"]["warmup"]["description"] ==
        "number of requests that end before the measured ones begin");
  CHECK(job["sustained"]["properties"]["overlap_penalty"]["description"] ==
        "overlap takes max(a, b) + penalty · min(a, b)");
  CHECK(schemas.at("pipeline")["properties"]["seed"]["description"] == "random seed (1)");
  CHECK(job["serve"]["properties"]["flags"]["properties"]["disable_radix_cache"]["description"] ==
        "whether prompts compute equal prefixes anew");
  for (const auto& [name, schema] : schemas) {
    INFO(name << ": describe these keys in a table of docs/formats");
    std::vector<std::string> undescribed;
    add_undescribed(schema, "", undescribed);
    CHECK_THAT(undescribed, Catch::Equals(std::vector<std::string>{}));
  }
}

TEST_CASE("the files of examples and studies are valid, and a mistyped key is not") {
  const std::map<std::string, Json> schemas = schemas_in(test::source_file("docs/schemas"));
  std::size_t seen = 0;
  for (const auto& [kind, path] : files()) {
    INFO(kind << " " << path);
    const auto schema = schemas.find(kind);
    REQUIRE(schema != schemas.end());
    ++seen;
    Json value = json_of(YAML::LoadFile(path.string()));
    CHECK_THAT(fault(schema->second, value, ""), Catch::Equals(""));
    value["mistyped"] = 1;
    CHECK(fault(schema->second, value, "").find("mistyped") != std::string::npos);
  }
  CHECK(seen > 60);
}

}  // namespace
}  // namespace rehearse
