// The report: its rows of accuracy, its packed timeline, and that no text of the data
// can leave its element.
#include "cli/report/report.h"

#include <catch2/catch.hpp>

#include "cli/output/json.h"
#include "cli/report/timeline_sheet.h"
#include "sim/base/file.h"
#include "tests/support/data.h"

namespace rehearse::cli {
namespace {

/// What a key leads to; null where it leads nowhere.
const Value& at(const Value& fields, std::string_view key) {
  static const Value kNone;
  for (const Entry& field : fields.fields())
    if (field.key == key) return field.value;
  return kNone;
}

double number_at(const Value& fields, std::string_view key) {
  const Value& value = at(fields, key);
  if (const auto* n = std::get_if<std::uint64_t>(&value.content())) return static_cast<double>(*n);
  if (const auto* n = std::get_if<std::int64_t>(&value.content())) return static_cast<double>(*n);
  return std::get<double>(value.content());
}

std::string text_at(const Value& fields, std::string_view key) {
  const auto* text = std::get_if<std::string>(&at(fields, key).content());
  return text ? *text : "";
}

const Value::Array& list_at(const Value& fields, std::string_view key) {
  return at(fields, key).list();
}

TEST_CASE("rows of accuracy are those of the requested suites") {
  constexpr std::string_view kPage =
      "# Accuracy\n\n| suite | rows | median error |\n|---|---:|---:|\n| replay | 171 | 0.00 % |\n"
      "| jobs/mpt | 81 | 2.87 % |\n| jobs/nemo | 17 | 5.10 % |\n\ntext | with | bars\n";
  const Json rows = accuracy_in(kPage, {"jobs/"});
  REQUIRE(rows.list().size() == 2);
  const Json& first = rows.list().front();
  CHECK(text_at(first, "suite") == "jobs/mpt");
  CHECK(text_at(first, "median error") == "2.87 %");
  CHECK(accuracy_in(kPage, {}).list().empty());
}

TEST_CASE("the accuracy that ships has the suites that reports show") {
  for (const char* suite : {"replay", "withheld/all", "memory/galvatron measured, peak",
                            "collectives/one node", "collectives/several nodes"}) {
    INFO(suite);
    const Json rows = accuracy_of({suite});
    REQUIRE_FALSE(rows.list().empty());
    CHECK_FALSE(text_at(rows.list().front(), "median error").empty());
  }
}

/// The integers of a packed timeline.
std::vector<std::uint64_t> unpacked(const std::string& text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint64_t> values;
  std::uint64_t value = 0;
  int shift = 0;
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(c));
    have += 6;
    if (have < 8) continue;
    have -= 8;
    const std::uint32_t byte = bits >> have & 255;
    value |= std::uint64_t{byte & 127} << shift;
    shift += 7;
    if (byte & 128) continue;
    values.push_back(value);
    value = 0;
    shift = 0;
  }
  return values;
}

struct Run {
  graph::Timeline timeline;
  TimelineSheet sheet;
};

/// Ops 0 and 2 are drawn; 1, between them, is not. Names as in the pool of a graph.
Run two_spans() {
  const auto us = [](int n) { return Picoseconds(n * 1'000'000LL); };
  Run run;
  run.timeline.ops = {
      {us(0), us(2), std::nullopt}, {us(2), us(3), OpId(0)}, {us(3), us(5), OpId(1)}};
  run.sheet.process(1, "rank 0");
  run.sheet.thread(1, 1, "compute");
  run.sheet.thread(1, 2, "host");
  run.sheet.thread(1, 3, "nothing runs here");
  run.sheet.span({"a", graph::Category::kHost, 1, 2, Seconds::us(0), Seconds::us(2), OpId(0)});
  run.sheet.span({"b", graph::Category::kCompute, 1, 1, Seconds::us(3), Seconds::us(2), OpId(2)});
  return run;
}

TEST_CASE("a timeline is packed with the predecessor of each span") {
  const Run run = two_spans();
  const Json json = run.sheet.json(run.timeline, {{OpId(2), Picoseconds(0), Picoseconds(1)}});
  const Json::Array& lanes = list_at(json, "lanes");
  REQUIRE(lanes.size() == 2);
  CHECK(text_at(lanes[0], "name") == "compute");
  CHECK(number_at(json, "left_out") == 0);
  CHECK(number_at(json, "end_s") == Approx(5e-6));
  // compute: from 3 us for 2 us, name 0, category 0, critical; waited through op 1 for the second
  // span, one further: zigzag(1) + 1. host: at 0 for 2 us, name 1, category 3, nothing before it.
  CHECK(unpacked(text_at(json, "packed")) ==
        std::vector<std::uint64_t>{3000, 2000, 1, 3, 0, 2000, 32 + 6, 0});
}

TEST_CASE("the shortest spans are omitted, with a message") {
  graph::Timeline timeline;
  TimelineSheet sheet;
  sheet.process(1, "rank 0");
  sheet.thread(1, 1, "compute");
  for (int i = 0; i < 10; ++i)
    sheet.span(
        {"op", graph::Category::kCompute, 1, 1, Seconds::us(20 * i), Seconds::us(i + 1), {}});
  const Json json = sheet.json(timeline, {}, 4);
  CHECK(number_at(json, "spans") == 4);
  CHECK(number_at(json, "left_out") == 6);
  CHECK(number_at(json, "shortest_s") == Approx(7e-6));
  CHECK(number_at(list_at(json, "lanes")[0], "spans") == 4);
  CHECK(unpacked(text_at(json, "packed")).size() == 16);
  CHECK(number_at(json, "end_s") == Approx(190e-6));  // of all
}

TEST_CASE("as many spans of one length are kept as there is room for") {
  TimelineSheet sheet;
  sheet.process(1, "rank 0");
  sheet.thread(1, 1, "compute");
  for (int i = 0; i < 9; ++i)
    sheet.span({"op", graph::Category::kCompute, 1, 1, Seconds::us(2 * i), Seconds::us(1), {}});
  CHECK(number_at(list_at(sheet.json({}, {}, 5), "lanes")[0], "spans") == 5);
}

TEST_CASE("a timeline without spans is omitted") {
  CHECK(std::holds_alternative<std::nullptr_t>(TimelineSheet().json({}, {}).content()));
}

TEST_CASE("a timeline of many long names stays below its room") {
  TimelineSheet sheet;
  std::vector<std::string> names;
  for (int i = 0; i < 40'000; ++i) names.push_back(std::string(400, 'x') + std::to_string(i));
  sheet.process(1, "rank 0");
  sheet.thread(1, 1, "compute");
  for (std::size_t i = 0; i < names.size(); ++i)
    sheet.span({names[i],
                graph::Category::kCompute,
                1,
                1,
                Seconds::us(static_cast<double>(i)),
                Seconds::ns(static_cast<double>(100 + i % 800)),
                {}});
  const Json json = sheet.json({}, {});
  CHECK(json_text(json).size() < 1'500'000);
  CHECK(number_at(json, "left_out") > 0);
  CHECK(number_at(json, "spans") + number_at(json, "left_out") == 40'000);
}

TEST_CASE("no text of a document can end the element that contains it") {
  const std::filesystem::path path = test::scratch_folder() / "report.html";
  const std::string hostile = "</script><!--<script>\\\"  \\</ScRiPt>";
  Globals globals;
  globals.report = path;
  REQUIRE(write_report(globals, {.command = "simulate", .content = {{"name", hostile}}}));
  const std::string page = *read_file(path);
  const std::size_t data = page.find("id=\"data\">");
  REQUIRE(data != std::string::npos);
  const std::size_t end = page.find("</script>", data);
  const std::string json = page.substr(data, end - data);
  CHECK(json.find('<') == std::string::npos);
  CHECK(json.find("\\u003c/script>\\u003c!--\\u003cscript>\\\\\\\"  \\\\\\u003c/ScRiPt>") !=
        std::string::npos);
  CHECK(page.find("@DATA@") == std::string::npos);
  CHECK(page.find("default-src 'none'") != std::string::npos);
}

TEST_CASE("no page is asked for by an empty path") {
  CHECK(write_report({}, {.command = "simulate"}));
  CHECK(check_writable({""}));
  CHECK_FALSE(check_writable({"", "/no/such/folder/report.html"}));
}

}  // namespace
}  // namespace rehearse::cli
