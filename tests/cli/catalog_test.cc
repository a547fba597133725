// rehearse catalog: every kind in every format, filters, and what is not known.
#include <catch2/catch.hpp>

#include "sim/base/csv.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;

const std::vector<std::string> kKinds = {"gpus",    "instances",      "links",     "mig",
                                         "prices",  "carbon",         "pue",       "power",
                                         "storage", "storage-prices", "functions", "sources"};

std::string out_of(std::vector<std::string> arguments, const std::string& format) {
  arguments.insert(arguments.begin(), "catalog");
  arguments.insert(arguments.end(), {"--format", format});
  const Ran ran = test::rehearse(arguments);
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(ran.errors.empty());
  return ran.out;
}

Json rows_of(const std::vector<std::string>& arguments) {
  const Json json = Json::parse(out_of(arguments, "json"));
  CHECK(json["schema"] == "rehearse/1");
  CHECK(json["command"] == "catalog");
  CHECK(json["kind"] == arguments.front());
  test::check_values(json);
  return json["rows"];
}

CsvTable csv_of(const std::vector<std::string>& arguments) {
  Result<CsvTable> table = CsvTable::parse(out_of(arguments, "csv"), "stdout");
  INFO((table ? "" : to_string(table.error())));
  REQUIRE(table);
  return std::move(*table);
}

TEST_CASE("catalog: every kind has the same rows in JSON and CSV, with source and date") {
  for (const std::string& kind : kKinds) {
    INFO(kind);
    const Json rows = rows_of({kind});
    const CsvTable csv = csv_of({kind});
    REQUIRE(rows.size() > 10);
    REQUIRE(csv.rows() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (kind == "sources") continue;
      CHECK(rows[i]["source"] == csv.cell(i, "source"));
      CHECK(rows[i].value("as_of", "") == csv.cell(i, "as of"));
      CHECK(rows[i]["recalled"] == (csv.cell(i, "recalled") == "yes"));
    }
  }
}

TEST_CASE("catalog: tables and Markdown have a heading and rows") {
  for (const std::string& kind : kKinds) {
    INFO(kind);
    const std::string table = out_of({kind}, "table");
    CHECK(table.find("source") < table.find('\n'));
    CHECK(std::count(table.begin(), table.end(), '\n') > 10);
    const std::string markdown = out_of({kind}, "markdown");
    CHECK(markdown.starts_with("| "));
    CHECK(markdown.find("\n|--") != std::string::npos);
  }
}

TEST_CASE("catalog: models have the parameters of their layers, and families have none") {
  // 32 · (2 · 4096² + 2 · 4096 · 1024 + 3 · 4096 · 14336 + 2 · 4096) + 2 · 128256 · 4096 + 4096
  CHECK(rows_of({"models", "--name", "llama3_8b"})[0]["parameters"] == 8'030'261'248.0);
  CHECK_FALSE(rows_of({"models", "--name", "llama"})[0].contains("parameters"));
}

TEST_CASE("catalog: quantities are in SI units, and in the heading's unit in CSV") {
  const Json rows = rows_of({"gpus", "--name", "h100_sxm5_80"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["memory"] == Json{{"value", 80000000000}, {"unit", "B"}});
  CHECK(rows[0]["bf16_tensor"] == Json{{"value", 989400000000000}, {"unit", "FLOP/s"}});
  CHECK(rows[0]["memory_rate"]["value"] == 3350000000000);
  CHECK(rows[0]["link_count"] == 18);
  const CsvTable csv = csv_of({"gpus", "--name", "h100_sxm5_80"});
  CHECK(*csv.number(0, "memory (GB)") == Approx(80));
  CHECK(csv.cell(0, "bf16 tensor (TFLOP/s)") == "989.4");
  // Also where the first row has no value.
  const CsvTable all = csv_of({"gpus", "--name", "*"});
  REQUIRE(all.cell(0, "bf16 tensor (TFLOP/s)").empty());
  for (std::size_t i = 0; i < all.rows(); ++i)
    if (all.cell(i, "name") == "h100_sxm5_80")
      CHECK(all.cell(i, "bf16 tensor (TFLOP/s)") == "989.4");
  CHECK(rows_of({"links", "--name", "tcp_10g"})[0]["latency"] ==
        Json{{"value", 4e-5}, {"unit", "s"}});
}

TEST_CASE("catalog: an unknown value is absent, never zero") {
  CHECK_FALSE(rows_of({"gpus", "--name", "h100_sxm5_80"})[0].contains("idle_power"));
  CHECK(csv_of({"gpus", "--name", "h100_sxm5_80"}).cell(0, "idle power (W)").empty());
  const Json rows = rows_of({"prices", "--name", "p5e.48xlarge"});
  REQUIRE_FALSE(rows.empty());
  for (const Json& row : rows) {
    CHECK_FALSE(row.contains("on_demand"));
    CHECK_FALSE(row.contains("on_demand_per_gpu"));
    CHECK(row["spot"]["value"] > 0);
  }
  const std::string table = out_of({"prices", "--name", "p5*.48xlarge"}, "table");
  CHECK(table.find("–") != std::string::npos);
}

TEST_CASE("catalog: recalled rows are marked") {
  const std::string recalled = out_of({"links", "--name", "nvlink1_p100"}, "table");
  CHECK(recalled.find("  recalled  2017\n") != std::string::npos);
  CHECK(recalled.find("recalled: from memory") != std::string::npos);
  CHECK(out_of({"links", "--name", "ib_ndr_400"}, "table").find("recalled") == std::string::npos);
  CHECK(rows_of({"links", "--name", "nvlink1_p100"})[0]["source"] == "REC");
}

// Worked: 55.04 USD/h for 8 GPUs.
TEST_CASE("catalog: prices per GPU") {
  for (const Json& row : rows_of({"prices", "--name", "p5.48xlarge", "--region", "us-east-1"})) {
    CHECK(row["gpu"] == "h100_sxm5_80");
    CHECK(row["gpu_count"] == 8);
    CHECK(row["on_demand"] == Json{{"value", 55.04}, {"unit", "USD/h"}});
    CHECK(row["on_demand_per_gpu"]["value"] == 6.88);
  }
}

TEST_CASE("catalog: filters are combined by and, and a star matches any text") {
  const Json rows = rows_of({"prices", "--gpu", "h100*", "--provider", "aws", "--region", "us-*"});
  REQUIRE_FALSE(rows.empty());
  for (const Json& row : rows) {
    CHECK(row["provider"] == "aws");
    CHECK(row["gpu"].get<std::string>().starts_with("h100"));
    CHECK(row["region"].get<std::string>().starts_with("us-"));
  }
  for (const Json& row : rows_of({"mig", "--gpu", "a100_sxm4_40"}))
    CHECK(row["family"] == "a100_40");
  CHECK(rows_of({"instances", "--provider", "lambda"}).size() == 20);
  CHECK(rows_of({"mig", "--gpu", "a100_sxm4_40", "--name", "3g.20gb"})[0]["placement_starts"] ==
        Json{0, 4});
}

TEST_CASE("catalog: a row for all regions matches every region") {
  bool lambda = false;
  for (const Json& row : rows_of({"prices", "--gpu", "h100_sxm5_80", "--region", "us-east-1"}))
    lambda |= row["provider"] == "lambda" && row["region"] == "any";
  CHECK(lambda);
}

TEST_CASE("catalog: filters that exclude each other leave no rows") {
  CHECK(rows_of({"instances", "--provider", "aws", "--gpu", "mi300x"}).empty());
  CHECK(out_of({"instances", "--provider", "aws", "--gpu", "mi300x"}, "table") ==
        "no row of the catalog matches all of the filters\n");
  CHECK(csv_of({"instances", "--provider", "aws", "--gpu", "mi300x"}).rows() == 0);
}

TEST_CASE("catalog: wrong kinds and filters are answered with the nearest name") {
  const auto fails = [](int code, std::vector<std::string> arguments, const std::string& says) {
    arguments.insert(arguments.begin(), "catalog");
    test::check_failed(test::rehearse(arguments), code, says);
  };
  const auto check = [&](const std::vector<std::string>& arguments, const std::string& says) {
    fails(2, arguments, says);
  };
  const auto no_row = [&](const std::vector<std::string>& arguments, const std::string& says) {
    fails(1, arguments, says);
  };
  check({}, "KIND");
  check({"gpu"}, "unknown kind 'gpu'; did you mean 'gpus'?");
  check({"everything"}, "unknown kind 'everything'; one of gpus, instances, links, mig, storage");
  no_row({"gpus", "--name", "h100"},
         "--name: nothing among gpus matches 'h100'; one of h100_nvl_94, h100_pcie_80");
  no_row({"gpus", "--name", "x*"}, "nothing among gpus matches 'x*'");
  no_row({"prices", "--provider", "awz"},
         "nothing among prices matches 'awz'; did you mean 'aws'?");
  no_row({"prices", "--gpu", "h100_smx5_80"}, "did you mean 'h100_sxm5_80'?");
  no_row({"carbon", "--region", "us-esat-1"}, "did you mean 'us-east-1'?");
  check({"gpus", "--region", "us-east-1"}, "--region does not apply to gpus; use --name, --gpu");
  check({"links", "--nam", "x"}, "did you mean '--name'?");
}

TEST_CASE("catalog: --output writes the whole result") {
  const auto path = test::write_scratch("gpus.csv", "old");
  CHECK(out_of({"gpus", "-o", path.string()}, "csv").empty());
  CHECK(test::text_of(path) == out_of({"gpus"}, "csv"));
}

TEST_CASE("the screen lists every model") {
  const Ran ran = test::rehearse({"catalog", "models"});
  CHECK(ran.out.find("llama3_8b ") != std::string::npos);
  CHECK(ran.out.find("more rows") == std::string::npos);
}

}  // namespace
}  // namespace rehearse
