// network and calibrate: tables, JSON, logs of nccl-tests, and what is wrong with them in one line.
#include <algorithm>
#include <cmath>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "tests/support/chakra_writer.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::json_of;
using test::Ran;

/// Time in us of a ring that is easy to see through: 10 us and 2 us a step below 1 MiB, 30 us and
/// 100 GB/s above.
double time_of(double size, int ranks) {
  const double steps = 2.0 * (ranks - 1);
  const double wire = size * steps / ranks;
  return size < 1048576 ? 10 + 2 * steps + wire / 50e3 : 30 + 5 * steps + wire / 100e3;
}

/// A log as nccl-tests prints it.
std::string log_text(int ranks, const std::string& heading = "", double factor = 1) {
  std::string text =
      "# nccl-tests version 2.17.6 nccl-headers=22902 nccl-library=22902\n"
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 1 nGpus 8 minBytes 1024 maxBytes 268435456 step: 2(factor) warmup iters: 1\n"
      "#\n# Using devices\n";
  for (int r = 0; r < ranks; ++r)
    text += fmt::format(
        "#  Rank {:2} Group  0 Pid   1234 on   host1 device {:2} [0000:{:02x}:00] "
        "NVIDIA A100-SXM4-80GB\n",
        r, r, r);
  text +=
      heading.empty()
          ? "#\n#                                            out-of-place          in-place\n"
            "#       size         count      type   redop    root     time   algbw   busbw  "
            "#wrong     time   algbw   busbw  #wrong\n"
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)      "
            "       (us)  (GB/s)  (GB/s)\n"
          : heading;
  for (double size = 1024; size <= 268435456; size *= 2)
    text += fmt::format("{:12.0f} {:12.0f} float sum -1 {:.2f} 1.00 1.75 0 {:.2f} 1.00 1.75 0\n",
                        size, size / 4, time_of(size, ranks) * factor, time_of(size, ranks) * 0.9);
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.3\n#\n";
}

std::string log_file(const std::string& text, const std::string& name = "all_reduce.log") {
  return test::write_scratch(name, text).string();
}

TEST_CASE("network: keys, units, intervals and plausible bus bandwidth") {
  const Json json = json_of({"network", "--device", "h100_sxm5_80", "--ranks", "8", "--op",
                             "all_reduce,all_to_all", "--sizes", "1KiB,64MiB"});
  for (const char* key :
       {"op", "ranks", "bytes", "time.value", "time.low", "time.high", "time.unit",
        "time.provenance", "bus_bandwidth.value", "algorithm", "protocol"})
    test::check_has(json, std::string("points[].") + key);
  test::check_values(json);
  REQUIRE(json["points"].size() == 4);
  const Json& p = json["points"][1];
  CHECK(p["bytes"] == 67108864.0);
  CHECK(p["algorithm"] == "nvls");
  CHECK(p["bus_bandwidth"]["value"].get<double>() ==
        Approx(67108864.0 * 1.75 / p["time"]["value"].get<double>()));
  CHECK(p["bus_bandwidth"]["low"].get<double>() ==
        Approx(67108864.0 * 1.75 / p["time"]["high"].get<double>()));
  CHECK(json["points"][2]["algorithm"] == "pairwise");
}

TEST_CASE("network: a doubling range, forced protocol, several nodes, another device") {
  CHECK(json_of({"network", "--device", "a100_sxm4_80", "--sizes", "1KiB:1GiB"})["points"].size() ==
        21);
  const Json ll =
      json_of({"network", "--device", "a100_sxm4_80", "--sizes", "64MiB", "--protocol", "ll"});
  const Json free = json_of({"network", "--device", "a100_sxm4_80", "--sizes", "64MiB"});
  CHECK(ll["points"][0]["protocol"] == "ll");
  CHECK(ll["points"][0]["time"]["value"] > free["points"][0]["time"]["value"]);
  const Json nodes = json_of({"network", "--device", "a100_sxm4_80", "--ranks", "32", "--network",
                              "infiniband,rate=100GB/s,latency=2us", "--sizes", "1GiB"});
  CHECK(nodes["nodes"] == 4);
  CHECK(nodes["points"][0]["time"]["provenance"] == "extrapolated");
  const Json like = json_of({"network", "--device", "h200_sxm_141", "--sizes", "1MiB", "--quiet"});
  CHECK(like["points"][0]["time"]["provenance"] == "datasheet");
  const Json barrier = json_of({"network", "--device", "b300", "--op", "barrier"});
  CHECK(barrier["points"].size() == 1);
}

TEST_CASE("network on a cluster: calibrated, and as messages on its links") {
  const std::string dgx = test::source_file("examples/clusters/dgx_h100_x4.yaml");
  const Json closed = json_of({"network", "--cluster", dgx, "--sizes", "1GiB"});
  CHECK(closed["nodes"] == 4);
  CHECK(closed["points"][0]["ranks"] == 32);
  // As the same device, ranks and network without a cluster.
  const Json same = json_of({"network", "--device", "h100_sxm5_80", "--ranks", "32", "--network",
                             "infiniband,rate=400GB/s,latency=3us", "--sizes", "1GiB"});
  CHECK(closed["points"][0]["time"]["value"].get<double>() ==
        Approx(same["points"][0]["time"]["value"].get<double>()));
  // Messages are calibrated too; those of an algorithm that was not measured go on links alone:
  // six steps of 2 us, and 1.75 GiB at 370 GB/s.
  const auto on_node = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"network", "--cluster", dgx, "--ranks", "8", "--sizes", "1GiB", "--quiet"});
    return json_of(more);
  };
  const Json messages = on_node({"--fidelity", "message"});
  CHECK(messages["points"][0]["time"]["value"].get<double>() ==
        Approx(on_node({})["points"][0]["time"]["value"].get<double>()).epsilon(1e-6));
  CHECK(messages["points"][0]["algorithm"] == "nvls");
  CHECK(messages["fidelity"] == "message");
  const Json halving = on_node({"--fidelity", "message", "--algorithm", "halving_doubling"});
  CHECK(halving["points"][0]["time"]["value"].get<double>() ==
        Approx(6 * 2e-6 + 1.75 * 1073741824 / 370e9));
  CHECK(halving["points"][0]["protocol"].is_null());
}

/// A cluster of p5.48xlarge: on two of them, collectives go over EFA.
std::string p5(int nodes) {
  return fmt::format("cluster: {{instance: p5.48xlarge, count: {}}}\n", nodes);
}

TEST_CASE("simulate, whatif and network give one time for a collective on a cluster") {
  const int nodes = GENERATE(1, 2);
  INFO(nodes << " nodes");
  const int ranks = 8 * nodes;
  const std::string cluster = test::write_scratch("p5.yaml", p5(nodes)).string();
  const auto network = [&](const std::string& size) {
    return json_of({"network", "--cluster", cluster, "--sizes", size})["points"][0]["time"]["value"]
        .get<double>();
  };
  // One all-reduce of 1 MiB; on 8 H100 26.5 us.
  const double price = network("1MiB");
  if (nodes == 1) CHECK(price == Approx(26.5e-6).epsilon(0.002));
  const test::ChakraOp all_reduce{.id = 0,
                                  .name = "all-reduce",
                                  .type = test::kCollective,
                                  .numbers = {{"comm_type", 0}, {"comm_size", 1 << 20}}};
  const std::string prefix =
      test::write_chakra(std::vector<std::string>(static_cast<std::size_t>(ranks),
                                                  test::chakra_file({all_reduce})))
          .string();
  for (const char* fidelity : {"closed", "message"}) {
    INFO(fidelity);
    const Json step =
        json_of({"simulate", "--chakra", prefix, "--cluster", cluster, "--fidelity", fidelity});
    CHECK(step["step_time"]["value"].get<double>() == Approx(price).epsilon(1e-6));
  }
  // The second of two gradients, of 30 MB, is summed after all computing: on a link of 1000 GB/s
  // it takes twice (n - 1) / n of 30 us, on the cluster what network says. The first begins 1 us before
  // the last kernel, of 300 us, and delays the second where it takes longer. It slows this kernel: those
  // of the recording last 225 us on average.
  const auto exposed = [&](const std::string& on) {
    return json_of({"whatif", "examples/recordings/two_gradients.json", "--data-parallel",
                    std::to_string(ranks), "--network",
                    on})["breakdown"]["exposed_communication"]["value"]
        .get<double>();
  };
  const double sum = network("30MB"), slower = 1 + 0.2 * (0.5 + 10.0 / 225);
  const double kernel = std::min(300e-6 * slower, 300e-6 + (sum - 1e-6) * (1 - 1 / slower));
  CHECK(
      exposed(cluster) - exposed("latency=0us,rate=1000GB/s") ==
      Approx(sum + std::max(0.0, sum - 1e-6 - kernel) - 60e-6 * (ranks - 1) / ranks).epsilon(1e-6));
}

/// Program of one rank: collectives of 1 MiB, one after the other, by numbers of Chakra's schema. That
/// of an all-gather (2) is the part of a rank.
std::string all_kinds(std::size_t ranks) {
  std::vector<test::ChakraOp> ops;
  for (const int kind : {0, 1, 2, 5, 6, 7}) {
    const std::int64_t size = (1 << 20) / (kind == 2 ? static_cast<int>(ranks) : 1);
    test::ChakraOp op{.id = ops.size(),
                      .name = "collective",
                      .type = test::kCollective,
                      .numbers = {{"comm_type", kind}, {"comm_size", size}}};
    if (!ops.empty()) op.after = {ops.size() - 1};
    ops.push_back(std::move(op));
  }
  return test::chakra_file(ops);
}

TEST_CASE("network answers for every GPU of the catalog what simulate does") {
  struct Nodes {
    std::size_t nodes, local;
  };
  std::size_t answered = 0;
  for (const auto& [nodes, local] :
       {Nodes{1, 2}, Nodes{1, 4}, Nodes{1, 8}, Nodes{2, 1}, Nodes{2, 8}}) {
    const std::string prefix =
        test::write_chakra(std::vector<std::string>(nodes * local, all_kinds(nodes * local)))
            .string();
    for (const cluster::Gpu& gpu : cluster::gpus()) {
      const std::string device = gpu.name;
      INFO(device << ": " << nodes << " x " << local);
      const std::string cluster =
          test::write_scratch("c.yaml", fmt::format("cluster: {{device: {}, devices_per_node: {}, "
                                                    "nodes: {}}}\n",
                                                    device, local, nodes))
              .string();
      double sum = 0, high = 0;
      const Json prices =
          json_of({"network", "--cluster", cluster, "--sizes", "1MiB", "--op",
                   "all_reduce,reduce,all_gather,broadcast,all_to_all,reduce_scatter"});
      for (const Json& point : prices["points"]) {
        sum += point["time"]["value"].get<double>();
        high += point["time"]["high"].get<double>();
      }
      CHECK(std::isfinite(sum));
      CHECK(high > sum);
      const Json step =
          json_of({"simulate", "--chakra", prefix, "--cluster", cluster, "--fidelity", "closed"});
      CHECK(step["step_time"]["value"].get<double>() == Approx(sum).epsilon(1e-6));
      ++answered;
      if (nodes > 1) continue;
      // Without a cluster, the device has its usual one.
      CHECK(json_of({"network", "--device", device, "--ranks", std::to_string(local), "--sizes",
                     "1MiB", "--op", local == 2 ? "send_recv" : "broadcast"})["points"]
                .size() == 1);
    }
  }
  CHECK(answered == 5 * cluster::gpus().size());
}

TEST_CASE("a collective takes no less time for twice the bytes, beyond intervals") {
  struct Nodes {
    std::size_t nodes, local;
  };
  for (const auto& [nodes, local] :
       {Nodes{1, 2}, Nodes{1, 8}, Nodes{1, 16}, Nodes{2, 8}, Nodes{8, 8}})
    for (const cluster::Gpu& gpu : cluster::gpus()) {
      INFO(gpu.name << ": " << nodes << " x " << local);
      const std::string cluster =
          test::write_scratch(
              "c.yaml", fmt::format("cluster: {{device: {}, devices_per_node: {}, "
                                    "nodes: {}{}}}\n",
                                    gpu.name, local, nodes, local > 8 ? ", intra_node: pcie" : ""))
              .string();
      const Json json = json_of({"network", "--cluster", cluster, "--sizes", "8B:4GiB", "--op",
                                 "all_reduce,all_gather,broadcast,all_to_all,reduce_scatter"});
      const Json* before = nullptr;
      for (const Json& point : json["points"]) {
        const auto end = [](const Json& of, const char* name) {
          return of["time"][name].get<double>();
        };
        CHECK(end(point, "low") < end(point, "value"));
        CHECK(end(point, "value") < end(point, "high"));
        if (before && (*before)["op"] == point["op"]) {
          INFO(point["op"] << " of " << point["bytes"]);
          const double value = end(point, "value"), half = end(*before, "value");
          CHECK(
              (value > 0.98 * half || (end(point, "high") > half && end(*before, "low") < value)));
        }
        before = &point;
      }
    }
}

TEST_CASE("plan, recommend and simulate take as long for the same collectives on a cluster") {
  const int nodes = GENERATE(1, 2);
  INFO(nodes << " nodes");
  // Tensor-parallel ranks wait for every collective: nothing hides what one takes.
  const std::string job = fmt::format(
      "workload: {{model: gpt2_medium, loss: fused, fused_accumulation: true}}\n"
      "training: {{global_batch: 8, microbatch: 8, recompute: none}}\n"
      "plan: {{data: 1, tensor: {}, context: 1, pipeline: 1, zero: 0, sequence_parallel: {}, "
      "offload: none}}\n",
      8 * nodes, nodes > 1);
  const auto with = [&](const char* name, const std::string& more) {
    return test::write_scratch(name, job + more).string();
  };
  const std::string on_cluster = with("tensor.yaml", p5(nodes));
  const auto step = [](const Json& json) { return json["step_time"]["value"].get<double>(); };
  const double closed = step(json_of({"simulate", on_cluster, "--fidelity", "closed"}));
  CHECK(step(json_of({"simulate", on_cluster, "--fidelity", "message"})) ==
        Approx(closed).epsilon(1e-6));
  CHECK(step(json_of({"plan", on_cluster})["best"][0]) == Approx(closed).epsilon(1e-6));
  const Json options =
      json_of({"recommend", with("wanted.yaml", "region: us-east-1\ntarget: {steps: 1000}\n"),
               "--provider", "aws", "--counts", std::to_string(nodes)})["options"];
  std::size_t found = 0;
  for (const Json& option : options)
    if (option["instance"] == "p5.48xlarge" && ++found)
      CHECK(option["step_time"]["value"].get<double>() == Approx(closed).epsilon(1e-6));
  CHECK(found > 0);
}

TEST_CASE("calibrate: a log becomes a file that network reads") {
  const std::string file = (test::scratch_folder() / "mine.yaml").string();
  const std::string two = test::write_scratch("all_reduce_2.log", log_text(2)).string();
  std::string text = log_text(8);
  const std::string eight =
      test::write_scratch("all_reduce_8.log", text.replace(0, 0, "some line of a launcher\n"))
          .string();
  const Json json =
      json_of({"calibrate", "nccl", two, eight, "--device", "a100_sxm4_80", "-o", file});
  for (const char* key : {"rows", "residual", "envelope.from.value", "envelope.to.unit",
                          "envelope.ranks", "envelope.kinds"})
    test::check_has(json, key);
  CHECK(json["rows"] == 38);
  CHECK(json["residual"].get<double>() < 0.1);
  CHECK(json["envelope"]["ranks"] == Json({2, 8}));
  const Json priced =
      json_of({"network", "--calibration", file, "--ranks", "8", "--measured", eight});
  for (const char* key : {"points[].measured.value", "points[].error", "bands[].mean_error",
                          "bands[].bias", "bands[].covered"})
    test::check_has(priced, key);
  CHECK(priced["points"].size() == 19);
  CHECK(priced["points"][18]["time"]["value"].get<double>() ==
        Approx(time_of(268435456, 8) * 1e-6).epsilon(0.05));
}

TEST_CASE("calibrate: JSON of nccl-tests, and both columns of older text") {
  std::string json = R"({"version": "2.17.6", "args": ["./build/all_reduce_perf", "-b", "1K"],
 "config": {"nthreads": 1, "ngpus": 1, "devices": [)";
  for (int r = 0; r < 4; ++r)
    json += fmt::format(
        R"({}{{"rank": {}, "hostname": "h", "device": {}, "device_info": "NVIDIA A100"}})",
        r ? "," : "", r, r);
  json += "]}, \"results\": [";
  for (double size = 1024; size <= 268435456; size *= 2)
    json +=
        fmt::format(R"({}{{"size": {}, "count": 1, "type": "float", "redop": "sum", "root": "-1",
 "out_of_place": {{"time": {}, "alg_bw": 1, "bus_bw": 1, "nwrong": 0}}, "in_place": null}})",
                    size > 1024 ? "," : "", size, time_of(size, 4));
  json += "]}";
  const Json result =
      json_of({"calibrate", "nccl", log_file(json, "run.json"), "--device", "a100_sxm4_80"});
  CHECK(result["rows"] == 19);
  CHECK(result["envelope"]["ranks"] == Json({4}));
  // Before 2.10 there was no column 'root'.
  std::string old = log_text(4,
                             "#       size  count  type  redop  time  algbw  busbw  error  time  "
                             "algbw  busbw  error\n");
  for (std::size_t at; (at = old.find(" -1 ")) != std::string::npos;) old.replace(at, 4, " ");
  old.erase(0,
            old.find("# nThread"));  // nor did it say which test it was: the name of the file does
  CHECK(json_of({"calibrate", "nccl", log_file(old), "--device", "a100_sxm4_80"})["rows"] == 19);
}

TEST_CASE("logs that are wrong are refused with their place") {
  const auto fails = [](const std::string& text, const std::string& says,
                        const std::string& name = "all_reduce.log") {
    test::check_failed(
        test::rehearse({"calibrate", "nccl", log_file(text, name), "--device", "a100_sxm4_80"}), 1,
        says);
  };
  fails("", "has no results of nccl-tests");
  fails("{\"results\": [", "all_reduce.log:1: not valid JSON");
  fails("{\"a\": 1}", "results: is missing");
  fails("{\"results\": [1e999]}", "all_reduce.log: contains a number that is out of range");
  std::string text = log_text(8);
  fails(text.replace(text.find("#wrong     time"), 15, "#wrong     tide")
            .replace(text.find("root     time"), 13, "root     tide"),
        "without a header line");
  text = log_text(8);
  fails(text.substr(0, text.find("#  Rank  1")) + text.substr(text.find("#\n#  ")),
        "results of 1 ranks");
  text = log_text(8);
  const std::size_t row = text.find("        1024");
  fails(text.substr(0, row) + "1024 256 float sum -1 -3 1 1 0 1 1 1 0\n",
        "all_reduce.log:18: time '-3'");
  fails(text.substr(0, row) + "1024 256 float sum -1 3 1 1 5 1 1 1 0\n", "5 wrong results");
  fails(text.substr(0, row) + "1024 256 float\n", "3 columns");
  fails(text.erase(text.find("# Collective"), 45), "does not say which collective it measured",
        "x.log");
  // Sizes of one protocol alone say nothing of the others.
  fails(text = log_text(8).substr(0, log_text(8).find("       16384")), "Simple protocol");
}

TEST_CASE("network and calibrate: wrong use in one line") {
  const auto fails = [](std::vector<std::string> arguments, int code, const std::string& says) {
    test::check_failed(test::rehearse(std::move(arguments)), code, says);
  };
  fails({"network"}, 2, "a device is missing; give --cluster FILE, --device NAME");
  const std::string dgx = test::source_file("examples/clusters/dgx_h100_x4.yaml");
  fails({"network", "--cluster", dgx, "--ranks", "40"}, 1, "has 32 devices for 40 ranks");
  fails({"network", "--cluster", dgx, "--device", "t4"}, 2, "excludes");
  fails({"network", "--device", "h800", "--fidelity", "message"}, 1,
        "the catalog has no 'h800', and messages need the links of a cluster");
  const std::string torus = test::source_file("examples/clusters/torus.yaml");
  fails({"network", "--cluster", torus, "--protocol", "ll"}, 1, "not connected by NICs");
  fails({"network", "--cluster", "no.yaml"}, 1, "no.yaml");
  fails({"network", "--device", "h100_sxm"}, 1, "unknown GPU 'h100_sxm'; one of h100_sxm5_80");
  fails({"network", "--device", "h100_sxm5_80", "--op", "all_redoce"}, 2,
        "did you mean 'all_reduce'?");
  fails({"network", "--device", "h100_sxm5_80", "--sizes", "1024"}, 2, "--sizes");
  fails({"network", "--device", "h100_sxm5_80", "--sizes", "1GiB:1KiB"}, 2,
        "ends before it begins");
  fails({"network", "--device", "h100_sxm5_80", "--ranks", "16"}, 1,
        "need a network between nodes");
  fails(
      {"network", "--device", "h100_sxm5_80", "--ranks", "16", "--network", "infinband,rate=1GB/s"},
      2, "did you mean 'infiniband'?");
  fails({"network", "--device", "h100_sxm5_80", "--algorithm", "pat"}, 1,
        "algorithm 'pat' does not support all_reduce");
  fails({"network", "--device", "a100_sxm4_80", "--measured", log_file(log_text(4))}, 1,
        "has no run of this op on 8 ranks");
  std::string wrong = test::text_of(test::source_file("models/comm/calibrations/b300.yaml"));
  wrong.replace(wrong.find("nvswitch"), 8, "nvswich");
  fails({"network", "--calibration", log_file(wrong, "c.yaml")}, 1,
        "c.yaml:3:9: fabric: unknown value 'nvswich'; did you mean 'nvswitch'?");
  fails({"calibrate"}, 2, "calibrate needs one of nccl, job");
}

TEST_CASE("network: timing inside a framework adds a call to every size") {
  const std::vector<std::string> base = {"network", "--device", "a100_sxm4_80", "--sizes",
                                         "8KiB,64MiB"};
  std::vector<std::string> inside = base;
  inside.insert(inside.end(), {"--timing", "framework"});
  const Json plain = json_of(base), timed = json_of(inside);
  CHECK(plain["timing"] == "nccl_tests");
  CHECK(timed["timing"] == "framework");
  const auto more = [&](std::size_t i) {
    return timed["points"][i]["time"]["value"].get<double>() -
           plain["points"][i]["time"]["value"].get<double>();
  };
  CHECK(more(0) > 10e-6);
  CHECK(more(1) == Approx(more(0)));
  CHECK(timed["points"][0]["time"]["provenance"] == "extrapolated");
  const Ran wrong = test::rehearse({"network", "--device", "b300", "--timing", "frame"});
  CHECK(wrong.code == 2);
  CHECK(wrong.errors.find("unknown timing 'frame'") != std::string::npos);
}

// 2 p4d.24xlarge, 1 GiB: 57.2 GB/s (NVIDIA/nccl issue 527, 2022), over four cards of 100 Gbit/s,
// with a plug-in that its readers call untuned. That is more bus bandwidth than the 50 GB/s of the
// cards, which no ring can reach: only a tree over two nodes sends as little as the size itself.
TEST_CASE("an all-reduce over instances uses all of their network cards") {
  const auto point = [](const std::string& instance, const std::string& algorithm) {
    const std::string file =
        test::write_scratch("c.yaml", "cluster: {instance: " + instance + ", count: 2}\n").string();
    const Json json = json_of({"network", "--cluster", file, "--op", "all_reduce", "--sizes",
                               "1GiB", "--fidelity", "message", "--algorithm", algorithm});
    return json["points"][0]["bus_bandwidth"];
  };
  const auto bus = [&](const std::string& instance, const std::string& algorithm) {
    return point(instance, algorithm)["value"].get<double>() / 1e9;
  };
  CHECK(bus("p4d.24xlarge", "tree") > 57.2);
  CHECK(point("p4d.24xlarge", "tree")["low"].get<double>() < 57.2e9);
  // A ring has the share of all cards of the node that rings over such networks were measured to
  // reach (0.8 of EFA, 0.9 of InfiniBand), less what starting and copying take.
  const auto share = [&](const std::string& instance, double cards) {
    return bus(instance, "ring") / cards;
  };
  CHECK(share("p4d.24xlarge", 50) == Approx(0.8).epsilon(0.1));
  CHECK(share("p5.48xlarge", 400) == Approx(0.8).epsilon(0.1));
  CHECK(share("Standard_ND96isr_H100_v5", 400) == Approx(0.9).epsilon(0.1));
  CHECK(bus("p3dn.24xlarge", "ring") == Approx(10).epsilon(0.05));
  // The three collectives of the hierarchical one follow one another. The middle one sends S, not
  // 15/8 S, in eight groups at once, at 0.35 of EFA; what goes within nodes is the same on both.
  const auto seconds = [&](const std::string& instance) {
    const double size = 1 << 30;
    return 15. / 8 * size / (bus(instance, "hierarchical") * 1e9);
  };
  const double slower = seconds("p5.48xlarge") - seconds("Standard_ND96isr_H100_v5");
  CHECK(slower == Approx((1 << 30) / 400e9 * (1 / 0.35 - 1 / 0.9)).epsilon(0.05));
}

}  // namespace
}  // namespace rehearse
