// --perfetto FILE: a Chrome trace with the recorded and the simulated timeline.
#include <map>

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::kExample;

struct Drawn {
  std::map<std::string, int> processes;  // by name
  Json spans = Json::array();

  /// How long the spans of that name take in the tracks of that process, us.
  double total(const std::string& process, const std::string& name) const {
    double sum = 0;
    for (const Json& span : spans)
      if (span["pid"] == processes.at(process) && span["name"] == name)
        sum += span["dur"].get<double>();
    return sum;
  }
};

Drawn draw(std::vector<std::string> arguments) {
  const std::filesystem::path path = test::scratch_folder() / "timeline.json";
  arguments.insert(arguments.end(), {"--perfetto", path.string()});
  REQUIRE(test::rehearse(arguments).code == 0);
  CHECK(test::names_in(path.parent_path()) == std::vector<std::string>{"timeline.json"});
  const Json json = Json::parse(test::text_of(path));
  test::check_values(json);
  Drawn drawn;
  for (const Json& event : json.at("traceEvents")) {
    INFO(event.dump());
    CHECK(event.at("name").is_string());
    CHECK(event.at("pid").is_number());
    if (event.at("ph") == "M") {
      if (event["name"] == "process_name")
        drawn.processes[event["args"]["name"].get<std::string>()] = event["pid"].get<int>();
      continue;
    }
    CHECK(event["ph"] == "X");
    CHECK(event.at("tid").is_number());
    CHECK(event.at("ts").get<double>() >= 0);
    CHECK(event.at("dur").get<double>() >= 0);
    drawn.spans.push_back(event);
  }
  return drawn;
}

TEST_CASE("replay draws the recording above its simulation") {
  const Drawn drawn = draw({"replay", kExample});
  CHECK(drawn.processes.size() == 2);
  // Three steps with a gemm of 500 us.
  CHECK(drawn.total("rank 0 recorded", "gemm_128x128") == Approx(1500));
  CHECK(drawn.total("rank 0 simulated", "gemm_128x128") == Approx(1500));
  CHECK(drawn.total("rank 0 recorded", "ProfilerStep#2") == Approx(1000));
}

TEST_CASE("whatif draws the recording above the edit") {
  const Drawn drawn = draw({"whatif", kExample, "--scale", "kernel=gemm*:0.5"});
  CHECK(drawn.total("rank 0 recorded", "gemm_128x128") == Approx(1500));
  CHECK(drawn.total("rank 0 simulated", "gemm_128x128") == Approx(750));
}

TEST_CASE("spans of one track do not overlap in the simulation of a stream") {
  const Drawn drawn = draw({"replay", kExample});
  std::map<double, double> by_start;
  for (const Json& span : drawn.spans)
    if (span["pid"] == drawn.processes.at("rank 0 simulated") && span["tid"] >= 1001)
      by_start[span["ts"].get<double>()] = span["dur"].get<double>();
  CHECK(by_start.size() == 6);
  double end = 0;
  for (const auto& [start, duration] : by_start) {
    CHECK(start >= end);
    end = start + duration;
  }
}

}  // namespace
}  // namespace rehearse
