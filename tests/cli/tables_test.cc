// CSV and Markdown: every row has as many cells as the heading, whatever the names of ops hold.
#include <optional>

#include <catch2/catch.hpp>

#include "sim/base/text.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Rows = std::vector<std::vector<std::string>>;
using test::Ran;

const std::string kName = "at::f<a, b>(\"x\" | 'y')";
const std::string kNameInJson = "at::f<a, b>(\\\"x\\\" | 'y')";

/// By RFC 4180; nothing if a quote is in the wrong place.
std::optional<Rows> parse_csv(const std::string& text) {
  Rows rows;
  std::vector<std::string> row;
  std::string cell;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      for (++at;; ++at) {
        if (at >= text.size()) return std::nullopt;
        if (text[at] == '"' && (at + 1 == text.size() || text[at + 1] != '"')) break;
        if (text[at] == '"') ++at;
        cell += text[at];
      }
      ++at;
    } else {
      while (at < text.size() && text[at] != ',' && text[at] != '\n') {
        if (text[at] == '"') return std::nullopt;
        cell += text[at++];
      }
    }
    if (at >= text.size() || (text[at] != ',' && text[at] != '\n')) return std::nullopt;
    row.push_back(std::exchange(cell, ""));
    if (text[at++] == '\n') rows.push_back(std::exchange(row, {}));
  }
  return rows;
}

/// The cells of the lines of a table, with escaped bars as they were; the rule is left out. Of a
/// comment, the table that it folds.
std::optional<Rows> parse_markdown(const std::string& text) {
  Rows rows;
  std::string_view rest = text;
  if (const std::size_t folded = rest.find("</summary>"); folded != std::string_view::npos) {
    rest.remove_prefix(folded + 10);
    rest = rest.substr(0, rest.find("</details>"));
  }
  for (const std::string_view line : split(trim(rest), '\n')) {
    if (line.size() < 2 || line.front() != '|' || line.back() != '|') return std::nullopt;
    std::vector<std::string> row(1);
    for (std::size_t at = 1; at + 1 < line.size(); ++at) {
      if (line[at] == '\\' && line[at + 1] == '|') {
        row.back() += line[++at];
      } else if (line[at] == '|') {
        row.emplace_back();
      } else {
        row.back() += line[at];
      }
    }
    for (std::string& cell : row) cell = trim(cell);
    rows.push_back(std::move(row));
  }
  if (rows.size() < 2) return std::nullopt;
  for (const std::string& cell : rows[1])
    if (cell.find_first_not_of("-:") != std::string::npos) return std::nullopt;
  rows.erase(rows.begin() + 1);
  return rows;
}

std::vector<std::vector<std::string>> commands(const std::string& input) {
  return {{"import", input, "-o", (test::scratch_folder() / "a.rehearse").string()},
          {"inspect", input},
          {"replay", input},
          {"whatif", input, "--scale", "host:0.5"}};
}

void check_rectangular(const std::optional<Rows>& rows) {
  REQUIRE(rows);
  REQUIRE_FALSE(rows->empty());
  CHECK(rows->front().size() > 1);
  for (const std::vector<std::string>& row : *rows) CHECK(row.size() == rows->front().size());
}

TEST_CASE("tables are whole in every format") {
  // A record without a thread makes import list a problem whose place quotes the input.
  std::string text = test::kineto_recording(3, kNameInJson);
  text.replace(text.find("\"dur\": 400"), 10, "\"dur\": -40");
  const std::string input = test::write_scratch("a,b\"c.json", text).string();
  for (std::vector<std::string> arguments : commands(input)) {
    INFO(arguments.front());
    arguments.insert(arguments.end(), {"--quiet", "--format", "csv"});
    const Ran csv = test::rehearse(arguments);
    REQUIRE(csv.code == 0);
    check_rectangular(parse_csv(csv.out));
    arguments.back() = "markdown";
    const Ran markdown = test::rehearse(arguments);
    REQUIRE(markdown.code == 0);
    check_rectangular(parse_markdown(markdown.out));
    CHECK(parse_markdown(markdown.out)->front() == parse_csv(csv.out)->front());
  }
}

TEST_CASE("names survive quoting") {
  const std::string input =
      test::write_scratch("a.json", test::kineto_recording(3, kNameInJson)).string();
  const auto csv = parse_csv(test::rehearse({"inspect", input, "--format", "csv"}).out);
  const auto markdown =
      parse_markdown(test::rehearse({"inspect", input, "--format", "markdown"}).out);
  const std::string in_markdown = "at::f&lt;a, b&gt;(\"x\" | 'y')";  // no tag is made of it
  for (const auto& [rows, name] : {std::pair(csv, kName), std::pair(markdown, in_markdown)}) {
    REQUIRE(rows);
    const std::vector<std::string> expected = {"host", name, "3", "1.200", "400.0"};
    CHECK(std::count(rows->begin(), rows->end(), expected) == 1);
  }
}

TEST_CASE("control characters in names reach no terminal and no table") {
  const std::string input =
      test::write_scratch("a.json", test::kineto_recording(3, "a\\n\\u001b[31m\\u0000b")).string();
  const std::string table = test::rehearse({"inspect", input}).out;
  CHECK(table.find("host  a  [31m b ") != std::string::npos);
  CHECK(table.find('\033') == std::string::npos);
  check_rectangular(parse_markdown(test::rehearse({"inspect", input, "--format", "markdown"}).out));
  const auto csv = parse_csv(test::rehearse({"inspect", input, "--format", "csv"}).out);
  check_rectangular(csv);
  CHECK(std::count_if(csv->begin(), csv->end(),
                      [](const auto& row) { return row[1] == "a  [31m b"; }) == 1);
  // JSON keeps what was recorded.
  const std::string json = test::rehearse({"inspect", input, "--format", "json"}).out;
  CHECK(json.find(R"("a\n\u001b[31m\u0000b")") != std::string::npos);
}

TEST_CASE("validate gives a row per prediction") {
  const auto rows = parse_csv(test::rehearse({"validate", test::kExample, "--format", "csv"}).out);
  check_rectangular(rows);
  // After the heading: three steps by host and by device, and by the limits of their host and of
  // all devices together.
  CHECK(rows->size() == 1 + 3 * 2 + 3 + 1);
  CHECK(rows->at(1).front() == "replay");
}

TEST_CASE("output for programs and files has no colour") {
  for (const char* format : {"table", "csv", "markdown", "json"})
    CHECK(test::rehearse({"replay", test::kExample, "--format", format}).out.find('\033') ==
          std::string::npos);
}

}  // namespace
}  // namespace rehearse
