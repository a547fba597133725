// The report: its sentence, its rows of accuracy, its packed timeline, and that no text of the data
// can leave the element that it stands in.
#include "cli/report/report.h"

#include <catch2/catch.hpp>

#include "cli/output/json.h"
#include "cli/output/waterfall.h"
#include "cli/report/accuracy.h"
#include "cli/report/answer.h"
#include "cli/report/markdown.h"
#include "cli/report/read_json.h"
#include "cli/report/timeline_sheet.h"
#include "sim/base/file.h"
#include "tests/support/data.h"

namespace rehearse::cli {
namespace {

Json predicted(double value, double low, double high, const char* unit) {
  return json_predicted(Estimate<double>{value, low, high, Provenance::kRecorded}, unit);
}

Json simulated(const std::string& workload) {
  Json json = json_root("simulate");
  json["job"] = {{"workload", workload}, {"ranks", 128}, {"devices", Json::array()}};
  json["job"]["devices"].push_back({{"device", "a100_sxm4_40"}, {"ranks", 128}});
  json["step_time"] = predicted(1.94, 1.86, 2.03, "s");
  json["breakdown"] = {{"compute", predicted(1.2, 1.1, 1.3, "s")},
                       {"exposed_communication", predicted(0.74, 0.7, 0.8, "s")}};
  return json;
}

TEST_CASE("paths of keys lead to what a document holds") {
  Json json = {{"a", Json{{"b", 3}, {"none", nullptr}, {"text", "x"}}}};
  json["list"].push_back(1);
  CHECK(number_at(json, "a.b") == 3);
  CHECK(text_at(json, "a.text") == "x");
  CHECK(list_at(json, "list").size() == 1);
  CHECK(at(json, "a.none") == nullptr);
  CHECK(at(json, "a.b.c") == nullptr);
  CHECK_FALSE(number_at(json, "a.text"));
  CHECK(text_at(json, "a.b").empty());
  CHECK(list_at(json, "a").empty());
}

TEST_CASE("the answer is one sentence of what is known") {
  Json json = simulated("gpt_7b");
  CHECK(answer_of(json) ==
        "gpt_7b on 128 × a100_sxm4_40: 1.94 s a step (1.86 – 2.03 s); 62 % of the step is compute");
  json["memory_per_device"] = predicted(29.0 * (1 << 30), 28e9, 33e9, "B");
  json["memory_per_device"]["verdict"] = "fits";
  json["memory_per_device"]["usable"] = {{"value", 40.0 * (1 << 30)}, {"unit", "B"}};
  json["to_target"] = {{"time", predicted(457920, 440000, 480000, "s")},
                       {"cost", predicted(44000, 42000, 47000, "USD")}};
  CHECK(answer_of(json) ==
        "gpt_7b on 128 × a100_sxm4_40: 1.94 s a step (1.86 – 2.03 s); 5.30 days (5.09 – 5.56 days) "
        "and 44.0 k USD (42.0 – 47.0 k USD) to the target; fits with 11.0 GiB to spare; 62 % of "
        "the step is compute");
  json["memory_per_device"]["verdict"] = "does not fit";
  CHECK(answer_of(json).find("does not fit: 29.0 GiB of 40.0 GiB") != std::string::npos);
}

TEST_CASE("answers of other commands") {
  Json none = json_root("plan");
  none["candidates_seen"] = 12;
  none["best"] = Json::array();
  CHECK(answer_of(none) == "12 plans seen; none fits");
  none["job"] = {{"workload", "gpt_7b"}, {"devices", 128}};
  CHECK(answer_of(none) == "gpt_7b: 12 plans seen; none fits");
  Json best = simulated("gpt_7b");
  best["plan"] = {{"data", 8}, {"tensor", 16},      {"pipeline", 1},
                  {"zero", 1}, {"microbatch", 2.0}, {"recompute", "selective"}};
  none["best"].push_back(best);
  CHECK(answer_of(none) ==
        "gpt_7b on 128 × a100_sxm4_40, data 8, tensor 16, ZeRO-1, microbatch 2, selective "
        "recomputation: 1.94 s a step (1.86 – 2.03 s); 62 % of the step is compute; best of 12 "
        "plans seen");
  const auto rented = [](Json plan) {
    Json option = {{"instance", "p4d.24xlarge"},
                   {"count", 16},
                   {"time_to_target", predicted(457920, 440000, 480000, "s")},
                   {"cost_to_target", predicted(44000, 42000, 47000, "USD")}};
    option["plan"] = std::move(plan);
    Json rent = json_root("recommend");
    rent["job"]["workload"] = "gpt_7b";
    rent["options"].push_back(std::move(option));
    return answer_of(rent);
  };
  CHECK(rented({{"data", 128}, {"microbatch", 4.0}}) ==
        "gpt_7b on 16 × p4d.24xlarge, data 128, microbatch 4: 5.30 days to the target (5.09 – "
        "5.56 days); 44.0 k USD (42.0 – 47.0 k USD); first of 1 option");
  CHECK(rented(nullptr).starts_with("gpt_7b on 16 × p4d.24xlarge: 5.30 days"));
  Json fed = json_root("input");
  fed["rate"] = predicted(2040, 2000, 2080, "1/s");
  fed["bottleneck"] = "threads of decode";
  fed["stall"] = 0.5;
  CHECK(answer_of(fed) ==
        "2040 samples/s (2000 – 2080 samples/s): bounded by threads of decode; the accelerator "
        "waits for input 50 % of its time");
  Json check = json_root("check");
  check["verdict"] = "fail";
  check["step_time"] = {{"change", 0.046}};
  CHECK(answer_of(check) == "Verdict: fail: step time +4.60 %");
  check["ops"].push_back({{"significant", true}});
  CHECK(answer_of(check) == "Verdict: fail: step time +4.60 %; 1 op changed significantly");
  Json series = json_root("check");
  series["verdict"] = "pass";
  series["history"]["runs"].push_back(1);
  series["history"]["segments"].push_back(1);
  CHECK(answer_of(series) == "Verdict: pass: 1 run in 1 segment");
  Json guarded = json_root("check");
  guarded["verdict"] = "pass";
  guarded["predictions"].push_back(1);
  CHECK(answer_of(guarded) == "Verdict: pass: 1 recording predicted");
  CHECK(answer_of(json_root("catalog")).empty());
  Json together = json_root("simulate");
  together["tenants"].push_back({{"name", "bert.yaml"},
                                 {"slowdown", predicted(1.15, 1, 2.99, "1")},
                                 {"beside", predicted(0.0742, 0.0595, 0.241, "s")}});
  CHECK(answer_of(together) ==
        "Together: bert.yaml takes 1.15 times as long as alone, 74.2 ms a step (59.5 – 241 ms)");
}

TEST_CASE("control characters of a name do not reach the sentence") {
  CHECK(answer_of(simulated("a\033[31m\nb")).find_first_of("\033\n") == std::string::npos);
}

TEST_CASE("rows of accuracy are those of the suites that were asked for") {
  constexpr std::string_view kPage =
      "# Accuracy\n\n| suite | rows | median error |\n|---|---:|---:|\n| replay | 171 | 0.00 % |\n"
      "| jobs/mpt | 81 | 2.87 % |\n| jobs/nemo | 17 | 5.10 % |\n\ntext | with | bars\n";
  const Json rows = accuracy_in(kPage, {"jobs/"});
  REQUIRE(std::get<Json::Array>(rows.value()).size() == 2);
  const Json& first = std::get<Json::Array>(rows.value()).front();
  CHECK(text_at(first, "suite") == "jobs/mpt");
  CHECK(text_at(first, "median error") == "2.87 %");
  CHECK(std::get<Json::Array>(accuracy_in(kPage, {}).value()).empty());
}

TEST_CASE("the accuracy that ships has the suites that reports show") {
  for (const char* suite : {"replay", "withheld/all", "memory/galvatron measured, peak",
                            "collectives/one node", "collectives/several nodes"}) {
    INFO(suite);
    const Json rows = accuracy_of({suite});
    REQUIRE_FALSE(std::get<Json::Array>(rows.value()).empty());
    CHECK_FALSE(text_at(std::get<Json::Array>(rows.value()).front(), "median error").empty());
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

TEST_CASE("a timeline is packed with the span that each waited for") {
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

TEST_CASE("the shortest spans are left out, and it is said") {
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

TEST_CASE("of spans of one length as many are kept as there is room for") {
  TimelineSheet sheet;
  sheet.process(1, "rank 0");
  sheet.thread(1, 1, "compute");
  for (int i = 0; i < 9; ++i)
    sheet.span({"op", graph::Category::kCompute, 1, 1, Seconds::us(2 * i), Seconds::us(1), {}});
  CHECK(number_at(list_at(sheet.json({}, {}, 5), "lanes")[0], "spans") == 5);
}

TEST_CASE("a timeline without spans is none") {
  CHECK(at({{"timeline", TimelineSheet().json({}, {})}}, "timeline") == nullptr);
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
  CHECK(*number_at(json, "left_out") > 0);
  CHECK(*number_at(json, "spans") + *number_at(json, "left_out") == 40'000);
}

TEST_CASE("no text of a document can end the element that it stands in") {
  const std::filesystem::path path = test::scratch_folder() / "report.html";
  const std::string hostile = "</script><!--<script>\\\"  \\</ScRiPt>";
  REQUIRE(write_report(path, simulated(hostile)));
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
  CHECK(write_report({}, Json()));
  CHECK(check_writable({""}));
  CHECK_FALSE(check_writable({"", "/no/such/folder/report.html"}));
}

TEST_CASE("bars of a waterfall begin where the one before ends") {
  using graph::Category;
  const WaterfallPart parts[] = {{"compute", Seconds::ms(6), Category::kCompute},
                                 {"nothing", Seconds::s(0), Category::kMemory},
                                 {"input", Seconds::ms(3), Category::kInput},
                                 {"idle", Seconds::ms(3), Category::kDelay}};
  CHECK(waterfall_text(parts, Seconds::ms(12)) ==
        "  compute                ████████████                6.00 ms  50.0 %\n"
        "  input                              ██████          3.00 ms  25.0 %\n"
        "  idle                                     ██████    3.00 ms  25.0 %\n");
  CHECK(waterfall_text(parts, Seconds::s(0)).empty());
}

TEST_CASE("a comment shows names as text") {
  Json json = simulated("<img src=x>*|`");
  json["warnings"].push_back("<b>mind</b>");
  const std::string text = markdown_of(json, Table({{"stage"}}), "Stages");
  CHECK(text.find("\\<img src=x\\>\\*\\|\\`") != std::string::npos);
  CHECK(text.find("- ⚠ \\<b\\>mind\\</b\\>") != std::string::npos);
  CHECK(text.find("| step time | 1.94 s | 1.86 s – 2.03 s | recorded |") != std::string::npos);
  CHECK(text.find("| compute | 1.20 s | 61.9 % |") != std::string::npos);
  CHECK(text.find("<details>") == std::string::npos);  // no rows
}

}  // namespace
}  // namespace rehearse::cli
