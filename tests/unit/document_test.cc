// Documents: a field that is described once is the same in every format.
#include "cli/output/document.h"

#include <catch2/catch.hpp>

#include "cli/output/json.h"
#include "cli/output/table.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

Estimate<Seconds> step_of(double value, double low, double high) {
  return {Seconds::s(value), Seconds::s(low), Seconds::s(high), Provenance::kRecorded};
}

/// A prediction, a figure for programs alone, parts of a step, and two rows.
Document example() {
  Document d{.command = "simulate", .rows = "stages", .rows_title = "Stages"};
  d.answer = "gpt: 1.94 s per step";
  d.show("step_time", "step time", step_of(1.94, 1.86, 2.03));
  d["ranks"] = 1536;
  d.show("breakdown", "Where the step goes",
         {{"total", Seconds::s(2)},
          {"compute", "compute", Seconds::s(1.5)},
          {"bubble", "bubble", Seconds::s(0.5)}},
         {}, kBars);
  d["stages"] = Value::array();
  d["stages"].push_back({{"name", "stage", "first"},
                         {"ranks", "ranks", 1536},
                         {"time", "time", step_of(1.2345, 1, 2), in::kMs},
                         {"", "on screens", "yes", {}, kOnScreen},
                         {"device", "device", "a100", {}, kInTables}});
  d["stages"].push_back({{"name", "stage", "second"}, {"ranks", "ranks", 8}});
  return d;
}

TEST_CASE("JSON has every figure with a key, with units and intervals") {
  const std::string json = json_text(json_of(example()));
  CHECK(json.find(R"("schema": "rehearse/1")") < json.find(R"("command": "simulate")"));
  CHECK(json.find("\"step_time\": {\n    \"value\": 1.94,\n    \"low\": 1.86,\n    "
                  "\"high\": 2.03,\n    \"unit\": \"s\",\n    \"provenance\": "
                  "\"recorded\"") != std::string::npos);
  CHECK(json.find("\"ranks\": 1536") != std::string::npos);
  CHECK(json.find("on screens") == std::string::npos);
}

TEST_CASE("CSV has plain numbers with the unit in the heading, and the ends of intervals") {
  CHECK(csv_of(example()) ==
        "stage,ranks,time (ms),time low (ms),time high (ms),device\n"
        "first,1536,1234.500,1000.000,2000.000,a100\n"
        "second,8,,,,\n");
}

TEST_CASE("text has the answer, labelled values, bars, and tables with grouped digits") {
  CHECK(text_of(example()) ==
        "gpt: 1.94 s per step\n"
        "step time    1.94 s (1.86 – 2.03 s, recorded)\n"
        "\n"
        "Where the step goes\n"
        "  compute                ██████████████████           1.50 s  75.0 %\n"
        "  bubble                                   ██████     500 ms  25.0 %\n"
        "\n"
        "stage   ranks  time (ms)  time low (ms)  time high (ms)  on screens\n"
        "first   1,536  1,234.500      1,000.000       2,000.000  yes\n"
        "second      8          –                                 –\n");
}

TEST_CASE("Markdown is a comment: the answer, figures, parts, rows folded, no markup of names") {
  Document d = example();
  d.answer = "<img src=x>*|`";
  d.add_warnings({{"<b>mind</b>", "mend"}});
  const std::string text = markdown_of(d);
  CHECK(text.starts_with("**&lt;img src=x&gt;\\*|\\`**\n"));
  CHECK(text.find("| step time | 1.94 s | 1.86 s – 2.03 s | recorded |") != std::string::npos);
  CHECK(text.find("| compute | 1.50 s | 75.0 % |") != std::string::npos);
  CHECK(text.find("- ⚠ &lt;b&gt;mind&lt;/b&gt;; mend") != std::string::npos);
  CHECK(text.find("<details><summary>Stages</summary>") != std::string::npos);
  CHECK(text.find("| first | 1536 | 1234.500 |") != std::string::npos);
}

TEST_CASE("rows of a nested list have the labelled fields of their parents") {
  Document d{.command = "mig layouts", .rows = "layouts.instances"};
  const Value one = {{"profile", "profile", "1g"}}, other = {{"profile", "profile", "2g"}};
  d["layouts"].push_back({{"", "layout", 1}, {"instances", Value::array({one, other})}});
  d["layouts"].push_back({{"", "layout", 2}, {"instances", Value::array({one})}});
  CHECK(csv_of(d) == "layout,profile\n1,1g\n1,2g\n2,1g\n");
}

TEST_CASE("columns follow the order of the rows, including those that the first row lacks") {
  Document d{.command = "x", .rows = "rows"};
  d["rows"].push_back({{"a", "a", 1}, {"c", "c", 3}});
  d["rows"].push_back({{"a", "a", 1}, {"b", "b", 2}, {"c", "c", 3}});
  CHECK(csv_of(d) == "a,b,c\n1,,3\n1,2,3\n");
}

TEST_CASE("tables are no wider than the page: optional columns go, texts narrow, then columns go") {
  Table table(
      {{"name", Align::kLeft}, {"why", Align::kLeft, true}, {"low", Align::kRight, false, true}});
  table.add({std::string(80, 'n'),
             "a sentence of many words that goes on for more than a line of the page that it is on",
             "1"});
  const std::string text = table.text();
  for (const std::string_view line : split(text, '\n')) CHECK(display_width(line) <= 100);
  CHECK(text.find("low") == std::string::npos);
  CHECK(text.find("…") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') > 2);  // the sentence is broken
  std::vector<Column> many;
  std::vector<std::string> row;
  for (int i = 0; i < 40; ++i) {
    many.push_back({"number"});
    row.push_back("1");
  }
  Table wide(many);
  wide.add(row);
  CHECK(display_width(split(wide.text(), '\n').front()) <= 100);
  // "number" and two spaces: 12 columns of eight take 94 characters, a 13th would take 102.
  CHECK(wide.text(60, 60, "csv").ends_with("\n… and 28 more columns: --format csv has all\n"));
  CHECK(text.find("more column") == std::string::npos);  // ends of intervals are no such column
}

TEST_CASE("absent values are omitted, and null is kept") {
  const Value fields = {{"a", maybe(std::optional<double>())}, {"b", nullptr}};
  REQUIRE(fields.fields().size() == 1);
  CHECK(fields.fields().front().key == "b");
}

TEST_CASE(
    "quantities in words: one magnitude for both ends, long times in days, money with commas") {
  CHECK(range_words(step_of(1.94, 1.86, 2.03)) == "1.94 s (1.86 – 2.03 s)");
  CHECK(range_words(step_of(1.94, 0.86, 2.03), " per step") == "1.94 s per step (860 ms – 2.03 s)");
  CHECK(range_words(Seconds::s(457920)) == "5.30 days");
  CHECK(unit::kMoney.text(44012.3) == "44,012 USD");
  CHECK(unit::kCarbon.text(2.5e6) == "2.50 tCO2e");
  CHECK(with_commas("-1234567.8901") == "-1,234,567.8901");
  CHECK(with_commas("999") == "999");
}

TEST_CASE("control characters of a name do not reach the sentence") {
  CHECK(sentence_of("a\033[31m\nb", {"c"}).find_first_of("\033\n") == std::string::npos);
}

TEST_CASE("a name acts on no terminal and no spreadsheet, in any format") {
  Document d{.command = "inspect", .rows = "ops"};
  d["ops"] = Value::array();
  for (const char* name : {"=1+1", "-cmd|x", "-1.5", "+2.5 %", "a\033[1m\u009B\u202Eb\n"})
    d["ops"].push_back({{"name", "op", name}});
  CHECK(csv_of(d) == "op\n'=1+1\n'-cmd|x\n-1.5\n+2.5 %\na [1m  b \n");
  CHECK(json_text(json_of(d)).find(R"("a\u001b[1m\u009b\u202eb\n")") != std::string::npos);
  for (const std::string& text : {text_of(d), markdown_of(d)})
    CHECK(text.find("1m  b") != std::string::npos);
}

TEST_CASE("each bar begins at the end of the previous one") {
  const Value parts = {{"total", Seconds::ms(12)},
                       {"compute", "compute", Seconds::ms(6)},
                       {"memory", "nothing", Seconds::s(0)},
                       {"input", "input", Seconds::ms(3)},
                       {"idle", "idle", Seconds::ms(3)}};
  CHECK(bars_text(parts) ==
        "  compute                ████████████                6.00 ms  50.0 %\n"
        "  input                              ██████          3.00 ms  25.0 %\n"
        "  idle                                     ██████    3.00 ms  25.0 %\n");
  CHECK(largest_part(parts) == "50 % of the step is compute");
  CHECK(bars_text(Value::object()).empty());
}

}  // namespace
}  // namespace rehearse::cli
