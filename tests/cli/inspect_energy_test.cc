// inspect of a recording with readings of power.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/data.h"
#include "tests/support/pages.h"
#include "tests/support/power_recording.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

TEST_CASE("inspect shows the energy of steps, ops and boards where power was recorded") {
  const std::string store = test::power_recording().string();
  const test::Ran text = test::rehearse({"inspect", store});
  INFO(text.errors);
  REQUIRE(text.code == 0);
  for (const char* part :
       {"energy (J)", "of it idle (J)", "Energy of the boards", "node-1 GPU-a", "mean (W)"}) {
    INFO(part << "\n" << text.out);
    CHECK(text.out.find(part) != std::string::npos);
  }
  CHECK(text.out.find("estimate") == std::string::npos);

  const test::Ran ran = test::rehearse({"inspect", store, "--format", "json"});
  REQUIRE(ran.code == 0);
  const auto json = nlohmann::json::parse(ran.out);
  const auto& steps = json["ranks"][0]["steps"];
  REQUIRE(steps.size() == 2);
  CHECK(steps[0]["energy_j"].get<double>() == Approx(0.75));
  CHECK(steps[0]["idle_energy_j"].get<double>() == Approx(0.24));
  CHECK(steps[1]["energy_j"].get<double>() == Approx(1.25));
  for (const auto& op : json["ops"]) {
    if (op["name"] == "A") CHECK(op["energy_j"].get<double>() == Approx(0.32 + 0.8 / 3));
    if (op["name"] == "B") CHECK(op["energy_j"].get<double>() == Approx(0.4 / 3));
    if (op["kind"] == "host") CHECK_FALSE(op.contains("energy_j"));
  }
  const auto& board = json["energy"]["boards"][0];
  CHECK(board["uuid"] == "GPU-a");
  CHECK(board["energy_j"].get<double>() == Approx(2));
  CHECK(board["counter_j"].get<double>() == Approx(2.05));
  CHECK(board["counter_by_power_j"].get<double>() == Approx(2));
  CHECK(board["shared"] == false);

  const test::Ran csv = test::rehearse({"inspect", store, "--format", "csv"});
  CHECK(csv.out.starts_with("kind,op,calls,total (ms),mean (us),energy (J)\n"));
  CHECK(csv.out.find("kernel,A,1,4.000,4000.0,0.587\n") != std::string::npos);
}

TEST_CASE("inspect prints the example of the page on energy") {
  const auto blocks = test::blocks_of(test::source_file("docs/concepts/energy.md"), "text");
  REQUIRE(blocks.size() == 2);
  const test::Ran ran = test::rehearse({"inspect", test::power_recording().string()});
  REQUIRE(ran.code == 0);
  INFO(ran.out);
  for (const test::Block& block : blocks)
    CHECK(ran.out.find(test::join_lines(block.lines)) != std::string::npos);
}

TEST_CASE("inspect omits energy if no power was recorded") {
  const test::Ran text = test::rehearse({"inspect", "examples/recordings/three_steps.json"});
  CHECK(text.out.find("(J)") == std::string::npos);
  const test::Ran json =
      test::rehearse({"inspect", "examples/recordings/three_steps.json", "--format", "json"});
  CHECK_FALSE(nlohmann::json::parse(json.out).contains("energy"));
}

}  // namespace
}  // namespace rehearse
