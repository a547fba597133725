// The tables of fields in docs/formats/job.md, and what frameworks call them in
// docs/concepts/planning.md, are those of strategies/plan_fields.h.
// REHEARSE_UPDATE_GOLDEN=1 writes them anew.
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

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

}  // namespace

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
