// simulate: a Chakra job on a cluster, in each format, and what it refuses.
#include <fstream>

#include <catch2/catch.hpp>

#include "sim/engine/simgrid.h"
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

Ran simulate_chakra(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"simulate"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::rehearse(arguments);
}

Ran simulate_example(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = kExampleJob;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return simulate_chakra(arguments);
}

Json example_json(std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  Json json = test::document(simulate_example(more));
  test::check_values(json);
  for (const char* key : {"schema",
                          "command",
                          "job.input",
                          "job.ranks",
                          "job.ops",
                          "cluster",
                          "fidelity",
                          "folded",
                          "step_time.value",
                          "throughput.value",
                          "breakdown.total.value",
                          "breakdown.compute.value",
                          "breakdown.exposed_communication.value",
                          "breakdown.idle.value",
                          "ranks[].rank",
                          "ranks[].count",
                          "collectives[].kind",
                          "collectives[].slowest_s",
                          "collective_costs",
                          "warnings"})
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
  const Json folded = example_json({"--fidelity", "closed"});
  const Json unfolded = example_json({"--fidelity", "closed", "--unfold"});
  const Json messages = example_json({});
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
    CHECK(json["step_time"]["provenance"] == "extrapolated");
    CHECK(sum_of_parts(json["breakdown"]) == Approx(json["step_time"]["value"].get<double>()));
    CHECK(json["throughput"]["value"].get<double>() ==
          Approx(1 / json["step_time"]["value"].get<double>()));
  }
}

TEST_CASE("simulate: closed form costs collectives as network does") {
  const Json json = example_json({"--fidelity", "closed"});
  CHECK(json["step_time"]["provenance"] == "extrapolated");
  REQUIRE(json["collective_costs"].size() == 2);
  for (const Json& cost : json["collective_costs"]) {
    CHECK(cost["from"] == "calibration");
    CHECK(cost["why"].get<std::string>().find("rows of NCCL") != std::string::npos);
  }
  // The tensor ranks of a node sum 16 MiB.
  const Ran ran = test::rehearse({"network", "--device", "h100_sxm5_80", "--ranks", "8", "--sizes",
                                  "16MiB", "--format", "json"});
  const double price = Json::parse(ran.out)["points"][0]["time"]["value"].get<double>();
  bool found = false;
  for (const Json& collective : json["collectives"])
    if (collective["ranks"] == 8 && collective["bytes"] == 16777216.0) {
      found = true;
      CHECK(collective["slowest_s"].get<double>() == Approx(price));
    }
  CHECK(found);
  // Every rank, run one by one, gives the same.
  CHECK(example_json({"--fidelity", "closed", "--unfold"})["step_time"] == json["step_time"]);
  // On the links of the cluster with an algorithm that was not measured, and by ASTRA-sim's rules.
  for (const std::vector<std::string>& links :
       {std::vector<std::string>{"--algorithm", "halving_doubling"},
        {"--semantics", "astra-sim"}}) {
    std::vector<std::string> arguments = {"--fidelity", "closed"};
    arguments.insert(arguments.end(), links.begin(), links.end());
    const Json other = example_json(arguments);
    CHECK(other["step_time"]["provenance"] == "datasheet");
    for (const Json& cost : other["collective_costs"]) CHECK(cost["from"] == "links");
  }
}

TEST_CASE("simulate: SimGrid agrees on the example") {
  if (!engine::simgrid_available()) {
    WARN("skipped: built without SimGrid (install libsimgrid-dev)");
    test::check_failed(simulate_example({"--fidelity", "simgrid"}), 1, "built without SimGrid");
    return;
  }
  const Json simgrid = example_json({"--fidelity", "simgrid"});
  CHECK(simgrid["fidelity"] == "simgrid");
  CHECK(simgrid["step_time"]["value"].get<double>() ==
        Approx(example_json({})["step_time"]["value"].get<double>()).epsilon(1e-9));
}

TEST_CASE("simulate: a link that is down for a while") {
  // Two ranks sum 4 MB: two messages of 2 us + 20 us each way. From 10 to 30 us one link is down.
  const auto cluster = test::write_scratch("down.yaml", R"(cluster:
  device: h100_sxm5_80
  devices_per_node: 2
  nodes: 1
  intra_node: {kind: nvswitch, rate: 100 GB/s, latency: 2 us}
  changes:
    - {link: node0/gpu0-node0/nvswitch, at: 10 us, share: 0}
    - {link: node0/gpu0-node0/nvswitch, at: 30 us, share: 1}
)");
  const std::string sum = test::chakra_file(
      {{0, "sum", test::kCollective, 0, {}, {{"comm_type", 0}, {"comm_size", 4'000'000}}}});
  const std::string prefix = test::write_chakra({sum, sum}).string();
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--chakra",       prefix,     "--cluster",
                                          cluster.string(), "--format", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return simulate_chakra(arguments);
  };
  const auto step_us = [&](const std::vector<std::string>& more) {
    return test::document(run(more))["step_time"]["value"].get<double>() * 1e6;
  };
  // The first message from 2 to 10 us and from 30 to 42; the second from 44 to 64.
  CHECK(step_us({}) == Approx(64));
  CHECK(step_us({"--on-link-failure", "stall"}) == Approx(64));
  // The first message again from 30 to 50 us; the second from 52 to 72.
  CHECK(step_us({"--on-link-failure", "retry"}) == Approx(72));
  test::check_failed(run({"--on-link-failure", "fail"}), 1,
                     "capacity 'node0/gpu0 > node0/nvswitch' fails 10.0 us into the run");
  const Ran closed = run({"--fidelity", "closed"});
  CHECK(closed.code == 0);
  CHECK(closed.errors.find("`changes` of the cluster are ignored") != std::string::npos);
}

TEST_CASE("simulate: a link that never comes back is named") {
  // The gradients of the last layer are the first that want it, after it went down.
  std::string cluster = test::text_of(test::source_file(kCluster));
  cluster += "  changes: [{link: node1/nic0-leaf0, at: 2 ms, share: 0}]\n";
  std::vector<std::string> arguments = kExampleJob;
  arguments.back() = test::write_scratch("dead.yaml", cluster).string();
  test::check_failed(simulate_chakra(arguments), 1,
                     "'layer 3 backward gradients' waits for capacity 'leaf0 > node1/nic0'");
}

TEST_CASE("simulate: interference makes computing longer, at every fidelity") {
  // Galvatron's 1.13 at most, less where no collective goes on.
  for (const std::string fidelity : {"closed", "message"}) {
    const auto compute = [&](const std::string& slowdown) {
      return example_json({"--fidelity", fidelity, "--interference",
                           slowdown})["breakdown"]["compute"]["value"]
          .get<double>();
    };
    const double alone = compute("1");
    CHECK(alone == Approx(5628e-6));
    CHECK(compute("1.13") > 1.03 * alone);
    CHECK(compute("1.13") < 1.13 * alone);
  }
}

TEST_CASE("simulate: formats and the timeline") {
  const Ran table = simulate_example();
  INFO(table.errors);
  CHECK(table.code == 0);
  CHECK(table.out.find("step time") != std::string::npos);
  CHECK(table.out.find("exposed communication") != std::string::npos);
  const Ran csv = simulate_example({"--format", "csv"});
  CHECK(csv.out.starts_with("ranks,compute (us),compute low (us),compute high (us),exposed "));
  const auto timeline = test::scratch_folder() / "timeline.json";
  CHECK(simulate_example({"--perfetto", timeline.string(), "--fidelity", "closed"}).code == 0);
  const Json events = Json::parse(test::text_of(timeline))["traceEvents"];
  std::size_t spans = 0;
  for (const Json& event : events) spans += event["ph"] == "X";
  CHECK(spans == 92);  // ops of one rank that represents all
}

TEST_CASE("simulate: ASTRA-sim's rules make small collectives slower") {
  const auto step = [&](const std::vector<std::string>& more) {
    return example_json(more)["step_time"]["value"].get<double>();
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
      simulate_chakra({"--chakra", prefix.string(), "--cluster", kCluster, "--format", "json"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(ran.errors.find("roofline of h100_sxm5_80") != std::string::npos);
  const Json json = Json::parse(ran.out);
  CHECK(json["step_time"]["value"].get<double>() == Approx(1e-3).epsilon(0.01));
  CHECK(json["step_time"]["high"].get<double>() > 3e-3);
  CHECK(json["warnings"].size() == 1);
}

TEST_CASE("simulate: ASTRA-sim's files are read as they are") {
  const std::vector<std::string> files = {"--chakra", "examples/astra-sim/all_reduce",
                                          "--astra-network", "examples/astra-sim/network.yml"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), files.begin(), files.end());
    return simulate_chakra(more);
  };
  const Json json = test::document(
      with({"--astra-system", "examples/astra-sim/system.json", "--format", "json"}));
  CHECK(json["job"]["ranks"] == 8);
  // By hand on docs/formats/astra-sim.md.
  CHECK(json["step_time"]["value"].get<double>() == Approx(46.14e-6).epsilon(1e-3));
  // Without a system file it is one ring over all NPUs, at each fidelity.
  for (const char* fidelity : {"message", "closed"})
    CHECK(with({"--fidelity", fidelity}).code == 0);

  test::check_failed(with({"--cluster", kCluster}), 2, "--cluster or --astra-network, not both");
  test::check_failed(
      with({"--astra-system", "examples/astra-sim/system.json", "--algorithm", "ring"}), 2,
      "--astra-system excludes");
  test::check_failed(with({"--astra-system", "absent.json"}), 1, "absent.json");
  test::check_failed(with({"--ranks", "4", "--astra-system", "examples/astra-sim/system.json"}), 1,
                     "4 ranks on a network of 8 NPUs; one rank per NPU");
}

TEST_CASE("simulate: involved_dim goes along the levels of a cluster") {
  // All_reduces within the nodes, and then between them.
  const auto sum = [](std::uint64_t id, std::vector<bool> involved) {
    return test::ChakraOp{
        .id = id,
        .name = "sum",
        .type = test::kCollective,
        .after = id > 0 ? std::vector<std::uint64_t>{id - 1} : std::vector<std::uint64_t>{},
        .numbers = {{"comm_type", 0}, {"comm_size", 1 << 20}},
        .involved = std::move(involved)};
  };
  const std::string file = test::chakra_file({sum(0, {true, false}), sum(1, {false, true})});
  const auto prefix = test::write_chakra(std::vector<std::string>(32, file));
  const Json json = test::document(
      simulate_chakra({"--chakra", prefix.string(), "--cluster", kCluster, "--format", "json"}));
  CHECK(json["job"]["ranks"] == 32);
  CHECK(json["step_time"]["value"].get<double>() > 0);
  const auto three =
      test::write_chakra(std::vector<std::string>(32, test::chakra_file({sum(0, {true})})));
  CHECK(simulate_chakra({"--chakra", three.string(), "--cluster", kCluster}).code == 0);  // all
}

TEST_CASE("simulate: wrong usage is exit code 2") {
  using test::check_failed;
  check_failed(simulate_chakra({}), 2,
               "simulate needs a job file, --model NAME or --chakra PREFIX");
  check_failed(simulate_chakra({"--chakra", "x", "--algorithm", "ring"}), 2,
               "need --cluster or --astra-network");
  check_failed(simulate_chakra({"job.yaml", "--chakra", "x"}), 2, "a job or --chakra, not both");
  check_failed(simulate_example({"--fidelity", "exact"}), 2, "--fidelity");
  check_failed(simulate_example({"--algorithm", "rnig"}), 2, "did you mean 'ring'?");
  check_failed(simulate_example({"--splits", "2"}), 2, "need --semantics astra-sim");
  check_failed(simulate_example({"--semantics", "astra-sim", "--endpoint-delay", "10"}), 2,
               "no unit");
  check_failed(simulate_example({"--fidelity", "massage"}), 2, "did you mean 'message'?");
  check_failed(simulate_example({"--division", "echelon"}), 2, "one of fair, coflow, first_come");
  check_failed(simulate_example({"--division", "fair", "--fidelity", "closed"}), 2,
               "need --fidelity message");
  check_failed(simulate_example({"--on-link-failure", "retry", "--fidelity", "simgrid"}), 2,
               "need --fidelity message");
  check_failed(simulate_example({"--interference", "0.9"}), 2, "must be from 1");
  check_failed(simulate_example({"--interference", "nan"}), 2, "out of range");
  check_failed(simulate_example({"--interference", "1.13", "--fidelity", "simgrid"}), 2,
               "SimGrid does not model shared devices");
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
    return simulate_chakra(arguments);
  };
  check_failed(simulate_chakra({"--chakra", "absent", "--cluster", kCluster}), 1,
               "absent.0.et: no such file");
  check_failed(of({sum(64), sum(64)}, {"--ranks", "3"}), 1, ".2.et: no such file");
  check_failed(simulate_chakra({"--chakra", "examples/chakra/transformer", "--cluster", kCluster}),
               1, "--ranks N");
  check_failed(simulate_chakra({"--chakra", "examples/chakra/transformer", "--cluster",
                                "absent.yaml", "--ranks", "2"}),
               1, "absent.yaml");
  check_failed(of(std::vector<std::string>(33, sum(64))), 1, "33 ranks on a cluster of 32 devices");
  check_failed(of({sum(64), sum(65)}), 1, "members that issue the same collectives");
  check_failed(of({sum(64), test::chakra_file({{0, "x", test::kCompute, 1}})}), 1,
               "rank 1 never issues its collective 0");
  check_failed(of({sum(64), sum(64)}, {"--comm-groups", "absent.json"}), 1, "absent.json");
  check_failed(of({"no trace at all"}), 1, "job.0.et");
}

}  // namespace
}  // namespace rehearse
