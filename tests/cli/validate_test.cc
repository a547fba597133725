// validate: suites of layers, of recordings carried over and of withheld devices, on measured data;
// and data that cannot be read.
#include <cmath>
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;

/// Cases of a suite, by name.
std::map<std::string, Json> cases_of(const std::string& suite, const std::filesystem::path& data) {
  const Json json = test::json_of({"validate", suite, "--data", data.string()});
  std::map<std::string, Json> cases;
  for (const Json& each : json["suites"])
    cases[each["name"].get<std::string>().substr(suite.size() + 1)] = each;
  return cases;
}

std::string baseline_of(const Json& found) {
  return test::write_scratch("base.json", found.dump()).string();
}

double number(const Json& of, const char* key) { return of[key].get<double>(); }

TEST_CASE("layers of Galvatron are predicted within a tenth") {
  const auto data = test::shared_data("galvatron-profiles");
  SKIP_WITHOUT_DATA(data);
  std::map<std::string, Json> cases = cases_of("layers", data->parent_path());
  const Json& layers = cases.at("galvatron");
  CHECK(layers["blind_rows"] == 86);
  CHECK(layers["fitted_rows"] == 0);
  CHECK(number(layers, "median_error") < 0.04);
  CHECK(number(layers, "p90_error") < 0.1);
  CHECK(std::abs(number(layers, "bias")) < 0.04);
  CHECK(number(layers, "interval_coverage") > 0.9);
  CHECK(cases.at("galvatron, the host decides")["fitted_rows"] == 8);
  CHECK(number(cases.at("galvatron, the host decides"), "p90_error") < 0.1);
  CHECK(cases.at("triosim, layers")["rows"] == 26);
}

TEST_CASE("kernel time on MI300X from recordings on H100, nothing fitted") {
  const auto data = test::shared_data("tracelens-h100-mi300");
  SKIP_WITHOUT_DATA(data);
  std::map<std::string, Json> cases = cases_of("carried", data->parent_path());
  const Json& carried = cases.at("H100 to MI300X");
  CHECK(carried["blind_rows"] == 3);
  CHECK(std::abs(number(carried, "bias")) < 0.15);
  CHECK(std::abs(number(carried, "worst_error")) < 0.2);
  CHECK(carried["interval_coverage"] == 1.0);
}

TEST_CASE("jobs on a GPU known by its datasheet and a table of products") {
  const auto data = test::shared_data("llm-foundry-mpt");
  SKIP_WITHOUT_DATA(data);
  std::map<std::string, Json> cases = cases_of("withheld", *data);
  for (const char* device : {"a100_sxm4_40", "a100_sxm4_80", "h100_sxm5_80"}) {
    INFO(device);
    CHECK(number(cases.at(device), "median_error") < 0.1);
    CHECK(number(cases.at(device), "interval_coverage") > 0.9);
  }
}

TEST_CASE("recalled jobs need no data, and one of a good row that turns bad blocks") {
  const Json now = test::json_of({"validate", "recalled"});
  double inside = 0, rows = 0;
  for (const Json& each : now["suites"]) {
    CHECK(each["fitted_rows"] == 0);
    rows += number(each, "rows");
    inside += number(each, "rows") * number(each, "interval_coverage");
  }
  CHECK(rows == 20);
  CHECK(inside >= 18);
  test::check_failed(test::rehearse({"validate", "layers"}), 2, "--data is required");

  // mt-nlg has a median error of 19 %.
  REQUIRE(now["suites"][1]["name"] == "recalled/mt-nlg");
  Json good = now;
  good["suites"][1]["median_error"] = 0.1;
  good["suites"][1]["interval_coverage"] = 0.8;
  const test::Ran text = test::rehearse({"validate", "recalled", "--baseline", baseline_of(good)});
  CHECK(text.code == 1);
  CHECK(text.out.find("base.json: 1 of 7 suites turned bad, 0 changed otherwise.\n") !=
        std::string::npos);
}

TEST_CASE("a baseline tells what drifts, and blocks nothing that was no better") {
  const std::vector<std::string> replays = {"validate", "--data", "examples/recordings"};
  Json worse = test::json_of(replays);
  const std::string first = worse["suites"][0]["name"];
  REQUIRE(worse["suites"].size() > 1);
  worse["suites"][0]["mean_error"] = 0.5;
  std::vector<std::string> arguments = replays;
  arguments.insert(arguments.end(), {"--baseline", baseline_of(worse)});
  const Json json = test::json_of(arguments)["baseline"];
  CHECK(json["verdict"] == "pass");
  for (const Json& suite : json["suites"])
    CHECK(suite["drift"] == (suite["name"] == first ? "better" : "same"));
  arguments.back() = "no_such.json";
  test::check_failed(test::rehearse(arguments), 1, "no_such.json: cannot be read");
}

TEST_CASE("tables of layers that cannot be read are one line") {
  const std::filesystem::path folder = test::scratch_folder();
  const std::filesystem::path network = folder / "triosim-h100" / "processed_bs8_resnet50";
  std::filesystem::create_directories(network);
  const auto failed = [&](const std::string& table, const std::string& says) {
    std::ofstream(network / "trace.csv") << table;
    test::check_failed(test::rehearse({"validate", "layers", "--data", folder.string()}), 1, says);
  };
  failed("stage,Operator_cuda_time\nforward,1\n", "Operator_cudatime");
  failed("stage,Operator_cudatime\nforward,12\n",
         "trace.csv: no operator of stage 'backward' took time; operators of stages 'forward' and "
         "'backward'");
  std::filesystem::rename(network, folder / "triosim-h100" / "processed_bs8_resnet51");
  std::ofstream(folder / "triosim-h100" / "processed_bs8_resnet51" / "trace.csv")
      << "stage,Operator_cudatime\nforward,12\nbackward,20\n";
  test::check_failed(test::rehearse({"validate", "layers", "--data", folder.string()}), 1,
                     "unknown model 'resnet51'");
  test::check_failed(test::rehearse({"validate", "carried", "--data", folder.string()}), 1,
                     "has no recordings of one script on two GPUs");
}

}  // namespace
}  // namespace rehearse
