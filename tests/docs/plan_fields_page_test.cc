// The tables of fields in docs/formats/job.md, and what frameworks call them in
// docs/concepts/planning.md, are those of strategies/plan_fields.h, and so is the schema of job files.
// REHEARSE_UPDATE_GOLDEN=1 writes them anew.
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/text.h"
#include "strategies/plan_fields.h"
#include "tests/support/data.h"
#include "tests/support/pages.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using namespace strategies;

std::string code(std::string_view text) { return fmt::format("`{}`", text); }

/// "131,072", "1e9".
std::string number(double value) {
  if (value != std::floor(value) || value >= 1e8) {
    std::string text = fmt::format("{:g}", value);
    if (const std::size_t zeros = text.find("e+0"); zeros != std::string::npos)
      text.erase(zeros + 1, 2);
    return text;
  }
  std::string text = grouped(static_cast<std::uint64_t>(value));
  std::replace(text.begin(), text.end(), ' ', ',');
  return text;
}

template <class Record>
std::string values_of(const Field<Record>& field) {
  std::string names;
  switch (field.at.kind) {
    case FieldKind::kFlag: return "true, false";
    case FieldKind::kChoice:
      for (const std::string_view name : field.at.choices)
        names += (names.empty() ? "" : ", ") + code(name);
      return names;
    case FieldKind::kSize:
      return fmt::format("{} to {}", to_string(Bytes::b(field.range.least)),
                         to_string(Bytes::b(field.range.most)));
    default:
      return fmt::format("{}{} to {}", field.range.above ? "above " : "", number(field.range.least),
                         number(field.range.most));
  }
}

template <class Record>
std::string default_of(const Field<Record>& field) {
  if (!field.usual.empty()) return std::string(field.usual);
  const std::string words = value_words(field, *field.at.get(Record{}));
  return field.at.kind == FieldKind::kChoice ? code(words) : words;
}

template <class Record>
std::vector<std::string> table_of(std::span<const Field<Record>> fields, Section section) {
  std::vector<std::string> lines = {"| key | values | default | searched | meaning |",
                                    "|---|---|---|---|---|"};
  for (const Field<Record>& field : fields)
    if (field.at.section == section)
      lines.push_back(fmt::format("| {} | {} | {} | {} | {} |", code(field.name), values_of(field),
                                  default_of(field), field.axis.keep ? "yes" : "", field.meaning));
  return lines;
}

std::vector<std::string> launch_table() {
  std::vector<std::string> lines = {"| field | Megatron-LM | DeepSpeed | torchtitan |",
                                    "|---|---|---|---|"};
  for (const Field<Candidate>& field : plan_fields()) {
    std::string line = fmt::format("| {} |", code(field.name));
    for (const std::string_view key : field.launch)
      line += key.empty()         ? " refused |"
              : key == kUnwritten ? " – |"
                                  : fmt::format(" {} |", code(key));
    lines.push_back(line);
  }
  return lines;
}

/// The first table after a heading holds these lines.
void check_table(const char* page, const std::string& heading,
                 const std::vector<std::string>& expected) {
  INFO(page << ": " << heading);
  const fs::path path = test::source_file(page);
  const std::string text = test::text_of(path);
  const std::size_t section = text.find("\n" + heading + "\n");
  REQUIRE(section != std::string::npos);
  const std::size_t begin = text.find("\n| ", section) + 1;
  REQUIRE(begin != 0);
  std::size_t end = begin;
  while (end < text.size() && text[end] == '|') end = text.find('\n', end) + 1;
  const std::string table = test::join_lines(expected);
  if (std::getenv("REHEARSE_UPDATE_GOLDEN"))
    std::ofstream(path, std::ios::binary) << text.substr(0, begin) << table << text.substr(end);
  else
    CHECK(text.substr(begin, end - begin) == table);
}

using Schema = nlohmann::ordered_json;

template <class Record>
Schema schema_of(const Field<Record>& field) {
  Schema schema = {{"description", field.meaning}};
  switch (field.at.kind) {
    case FieldKind::kFlag:
      schema["type"] = "boolean";
      return schema;
    case FieldKind::kChoice:
      schema["enum"] = field.at.choices;
      return schema;
    case FieldKind::kSize:
      schema["type"] = "string";  // with its unit
      return schema;
    case FieldKind::kCount:
      schema["type"] = "integer";
      break;
    case FieldKind::kNumber:
      schema["type"] = "number";
      break;
  }
  schema[field.range.above ? "exclusiveMinimum" : "minimum"] = field.range.least;
  schema["maximum"] = field.range.most;
  return schema;
}

/// A mapping that has these fields and no other keys.
template <class Record>
Schema mapping_of(std::span<const Field<Record>> fields, Section section) {
  Schema properties = Schema::object();
  for (const Field<Record>& field : fields)
    if (field.at.section == section) properties[std::string(field.name)] = schema_of(field);
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

Schema job_schema() {
  Schema training = mapping_of(plan_fields(), Section::kTraining);
  training["required"] = {"global_batch"};
  Schema plan = mapping_of(plan_fields(), Section::kPlan);
  for (const auto& [section, key] : kMappingsOfPlan)
    plan["properties"][std::string(key)] = mapping_of(plan_fields(), section);
  Schema stage = mapping_of(stage_fields(), Section::kStage);
  stage["properties"]["name"] = {{"type", "string"}};
  plan["properties"]["stages"] = {{"type", "array"}, {"items", stage}};
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "Job file of rehearse: training and plan"},
          {"type", "object"},
          {"properties", {{"training", training}, {"plan", plan}}}};
}

}  // namespace

TEST_CASE("the schema of job files is that of their reader") {
  const fs::path path = test::source_file("docs/schemas/job.json");
  const std::string schema = job_schema().dump(2) + "\n";
  if (std::getenv("REHEARSE_UPDATE_GOLDEN"))
    std::ofstream(path, std::ios::binary) << schema;
  else
    CHECK(test::text_of(path) == schema);
}

TEST_CASE("the tables of job fields are those of the program") {
  const char* page = "docs/formats/job.md";
  check_table(page, "## training", table_of(plan_fields(), Section::kTraining));
  check_table(page, "## plan", table_of(plan_fields(), Section::kPlan));
  check_table(page, "### plan.parameter_server",
              table_of(plan_fields(), Section::kParameterServer));
  check_table(page, "### plan.collectives", table_of(plan_fields(), Section::kCollectives));
  check_table(page, "### plan.stages", table_of(stage_fields(), Section::kStage));
}

TEST_CASE("the table of launch keys is the one that writes launch files") {
  check_table("docs/concepts/planning.md", "### What frameworks call a field", launch_table());
}

}  // namespace rehearse
