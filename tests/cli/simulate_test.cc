// simulate: a Chakra job on a cluster, in each format, and what it refuses.
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/support/chakra_writer.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::ChakraOp;
using test::Json;
using test::Ran;

const std::string kCluster = "examples/clusters/dgx_h100_x4.yaml";
const std::vector<std::string> kExampleJob = {
    "--chakra",      "examples/chakra/transformer",
    "--comm-groups", "examples/chakra/transformer.groups.json",
    "--ranks",       "32",
    "--cluster",     kCluster};

Ran simulate(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"simulate"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::rehearse(arguments);
}

Ran simulate_example(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = kExampleJob;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return simulate(arguments);
}

Json json_of(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = more;
  arguments.insert(arguments.end(), {"--format", "json"});
  const Ran ran = simulate_example(arguments);
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  Json json = Json::parse(ran.out);
  test::check_values(json);
  for (const char* key :
       {"schema", "command", "job.input", "job.ranks", "job.ops", "cluster", "fidelity", "folded",
        "step_time.value", "throughput.value", "breakdown.total.value", "breakdown.compute.value",
        "breakdown.exposed_communication.value", "breakdown.idle.value", "ranks[].rank",
        "ranks[].count", "collectives[].kind", "collectives[].slowest_s", "warnings"})
    test::check_has(json, key);
  return json;
}

double sum_of_parts(const Json& breakdown) {
  double sum = 0;
  for (const auto& [key, part] : breakdown.items())
    if (key != "total") sum += part["value"].get<double>();
  return sum;
}

TEST_CASE("simulate: one rank for all, all ranks, and messages") {
  const Json folded = json_of({"--fidelity", "closed"});
  const Json unfolded = json_of({"--fidelity", "closed", "--unfold"});
  const Json messages = json_of({});
  CHECK(folded["folded"] == true);
  CHECK(unfolded["folded"] == false);
  CHECK(messages["fidelity"] == "message");
  CHECK(folded["step_time"] == unfolded["step_time"]);
  CHECK(folded["breakdown"] == unfolded["breakdown"]);
  CHECK(folded["ranks"] == unfolded["ranks"]);
  CHECK(folded["ranks"].size() == 1);
  CHECK(folded["ranks"][0]["count"] == 32);
  // Nothing contends here: tensor ranks use NVLink, data ranks their NICs.
  const double closed = folded["step_time"]["value"].get<double>();
  CHECK(messages["step_time"]["value"].get<double>() == Approx(closed).epsilon(1e-6));
  for (const Json& json : {folded, messages}) {
    CHECK(json["step_time"]["low"] < json["step_time"]["value"]);
    CHECK(json["step_time"]["provenance"] == "datasheet");
    CHECK(sum_of_parts(json["breakdown"]) == Approx(json["step_time"]["value"].get<double>()));
    CHECK(json["throughput"]["value"].get<double>() ==
          Approx(1 / json["step_time"]["value"].get<double>()));
  }
}

TEST_CASE("simulate: formats and the timeline") {
  const Ran table = simulate_example();
  INFO(table.errors);
  CHECK(table.code == 0);
  CHECK(table.out.find("step time") != std::string::npos);
  CHECK(table.out.find("exposed communication") != std::string::npos);
  const Ran csv = simulate_example({"--format", "csv"});
  CHECK(csv.out.starts_with("ranks,compute (us),exposed communication (us),"));
  const auto timeline = test::scratch_folder() / "timeline.json";
  CHECK(simulate_example({"--perfetto", timeline.string(), "--fidelity", "closed"}).code == 0);
  const Json events = Json::parse(test::text_of(timeline))["traceEvents"];
  std::size_t spans = 0;
  for (const Json& event : events) spans += event["ph"] == "X";
  CHECK(spans == 92);  // ops of one rank that stands for all
}

TEST_CASE("simulate: ASTRA-sim's rules make small collectives dearer") {
  const auto step = [&](const std::vector<std::string>& more) {
    return json_of(more)["step_time"]["value"].get<double>();
  };
  const double ours = step({"--fidelity", "closed"});
  const double astra = step({"--fidelity", "closed", "--semantics", "astra-sim"});
  const double sixteen =
      step({"--fidelity", "closed", "--semantics", "astra-sim", "--splits", "16"});
  const double slow = step({"--fidelity", "closed", "--semantics", "astra-sim", "--splits", "16",
                            "--endpoint-delay", "1 us"});
  CHECK(ours < astra);
  CHECK(astra < sixteen);
  CHECK(sixteen < slow);
}

TEST_CASE("simulate: lengths from the roofline of the device, with a warning and a wide interval") {
  const auto prefix = test::write_chakra(
      {test::chakra_file({{0, "x", test::kCompute, 0, {}, {{"num_ops", 989'000'000'000}}}})});
  const Ran ran =
      simulate({"--chakra", prefix.string(), "--cluster", kCluster, "--format", "json"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(ran.errors.find("roofline of h100_sxm5_80") != std::string::npos);
  const Json json = Json::parse(ran.out);
  CHECK(json["step_time"]["value"].get<double>() == Approx(1e-3).epsilon(0.01));
  CHECK(json["step_time"]["high"].get<double>() > 3e-3);
  CHECK(json["warnings"].size() == 1);
}

TEST_CASE("simulate: wrong usage is exit code 2") {
  using test::check_failed;
  check_failed(simulate({}), 2, "simulate needs --chakra PREFIX and --cluster FILE");
  check_failed(simulate({"job.yaml"}), 2, "unexpected 'job.yaml'");
  check_failed(simulate({"--chakra", "x"}), 2, "simulate needs --chakra PREFIX and --cluster FILE");
  check_failed(simulate_example({"--fidelity", "exact"}), 2, "--fidelity");
  check_failed(simulate_example({"--algorithm", "rnig"}), 2, "did you mean 'ring'?");
  check_failed(simulate_example({"--splits", "2"}), 2, "need --semantics astra-sim");
  check_failed(simulate_example({"--semantics", "astra-sim", "--endpoint-delay", "10"}), 2,
               "no unit");
  check_failed(simulate_example({"--unfolded"}), 2, "did you mean '--unfold'?");
}

TEST_CASE("simulate: wrong input is exit code 1 and one line") {
  using test::check_failed;
  const auto sum = [](std::int64_t bytes) {
    return test::chakra_file(
        {{0, "sum", test::kCollective, 0, {}, {{"comm_type", 0}, {"comm_size", bytes}}}});
  };
  const auto of = [&](const std::vector<std::string>& files, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"--chakra", test::write_chakra(files).string(),
                                          "--cluster", kCluster};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return simulate(arguments);
  };
  check_failed(simulate({"--chakra", "absent", "--cluster", kCluster}), 1,
               "absent.0.et: no such file");
  check_failed(of({sum(64), sum(64)}, {"--ranks", "3"}), 1, ".2.et: no such file");
  check_failed(simulate({"--chakra", "examples/chakra/transformer", "--cluster", kCluster}), 1,
               "--ranks N");
  check_failed(simulate({"--chakra", "examples/chakra/transformer", "--cluster", "absent.yaml",
                         "--ranks", "2"}),
               1, "absent.yaml");
  check_failed(of(std::vector<std::string>(33, sum(64))), 1, "33 ranks on a cluster of 32 devices");
  check_failed(of({sum(64), sum(65)}), 1, "members that issue the same collectives");
  check_failed(of({sum(64), test::chakra_file({{0, "x", test::kCompute, 1}})}), 1,
               "rank 1 never comes to its collective 0");
  check_failed(of({sum(64), sum(64)}, {"--comm-groups", "absent.json"}), 1, "absent.json");
  check_failed(of({"no trace at all"}), 1, "job.0.et");
}

}  // namespace
}  // namespace rehearse
