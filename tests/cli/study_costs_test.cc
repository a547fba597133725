// study: cost, energy, carbon and stalls of jobs, and the two studies of them.
#include <cmath>
#include <map>

#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"
#include "tests/support/study_run.h"

namespace rehearse {
namespace {

using test::Json;

/// A job on two instances, with one measure.
std::string text_of(const std::string& measure, const std::string& region = "us-east-1") {
  return "name: small\nsource: made up\nfidelity: closed\n"
         "base:\n"
         "  workload: {model: resnet50}\n"
         "  training: {global_batch: 256, microbatch: 16, dtype: fp32, optimizer: momentum}\n"
         "  plan: {data: 16}\n"
         "jobs:\n"
         "  rented:\n"
         "    cluster: {instance: p3.16xlarge, count: 2}\n"
         "    region: " +
         region +
         "\n"
         "  owned:\n"
         "    cluster: {device: v100_sxm2_16, devices_per_node: 8, nodes: 2}\n"
         "measure: {m: " +
         measure +
         "}\n"
         "expect: {measure: m, range: [-1e9, 1e9], sweep: within}\n";
}

Json measured(const std::string& measure) {
  return test::study_json(text_of(measure))["studies"][0]["points"][0]["measured"][0]["got"];
}

TEST_CASE("study: costs of a step have units, and stalls add up to at most the step") {
  CHECK(measured("cost(rented)")["unit"] == "USD");
  CHECK(measured("energy(owned)")["unit"] == "J");
  CHECK(measured("carbon(rented)")["unit"] == "gCO2e");
  // 2 × 24.48 USD/h.
  const double usd = measured("cost(rented)")["value"], s = measured("step_time(rented)")["value"];
  CHECK(usd == Approx(2 * 24.48 / 3600 * s));
  // Hosts, network and cooling are on top.
  CHECK(measured("energy(rented) / energy(owned)")["value"].get<double>() > 1.1);
  const double within = measured("interconnect_stall(rented) / step_time(rented)")["value"];
  const double between = measured("network_stall(rented) / step_time(rented)")["value"];
  CHECK(within >= 0);
  CHECK(between > 0);
  CHECK(within + between < 1);
}

TEST_CASE("study: gain or loss of GPUs that share nodes") {
  const auto of = [](const std::string& cluster, const std::string& plan, int batch = 256) {
    const std::string text =
        "name: small\nsource: made up\nfidelity: closed\nbase:\n"
        "  workload: {model: resnet50}\n"
        "  training: {global_batch: " +
        std::to_string(batch) +
        ", microbatch: 16, dtype: fp32, optimizer: momentum}\n"
        "jobs:\n  job:\n    plan: " +
        plan + "\n    cluster: " + cluster +
        "\nmeasure: {m: node_sharing(job)}\nexpect: {measure: m, range: [-1e9, 1e9], sweep: "
        "within}\n";
    return test::run_study(text, {"--format", "json"});
  };
  const auto got = [&](const std::string& cluster, const std::string& plan, int batch = 256) {
    const Json value =
        test::document(of(cluster, plan, batch))["studies"][0]["points"][0]["measured"][0]["got"];
    CHECK(value["unit"] == "s");
    CHECK(value["low"].get<double>() <= value["high"].get<double>());
    return value["value"].get<double>();
  };
  // NVLink is worth more than a share of 25 Gbit/s where an instance alone is joined by its network. Over
  // two, sums are as long either way: what is left of a step of 179 ms are the ways from GPUs to the NIC.
  CHECK(std::abs(got("{instance: p3.16xlarge, count: 2}", "{data: 16}")) < 0.5e-3);
  CHECK(got("{instance: p3.16xlarge, count: 1}", "{data: 8}", 128) < 0);
  // Nobody shares a node, or there is nobody else.
  CHECK(got("{instance: p3.2xlarge, count: 4}", "{data: 4}") == 0);
  CHECK(got("{instance: p3.16xlarge, count: 1}", "{data: 1}") == 0);
  test::check_failed(of("{device: v100_sxm2_16, devices_per_node: 8}", "{data: 8}"), 1,
                     "measure.m: the network between nodes of one device each is unknown; "
                     "inter_node, or an instance whose network the catalog has");
  test::check_failed(of("{device: v100_sxm2_16, devices_per_node: 4, nodes: 4, inter_node: {kind: "
                        "torus, dimensions: [4, 4]}}",
                        "{data: 16}"),
                     1, "measure.m: ");
}

TEST_CASE("study: a job without a cost is an error with the reason") {
  const auto refused = [](const std::string& text, const std::string& says) {
    test::check_failed(test::run_study(text), 1, says);
  };
  refused(text_of("cost(owned)"), "measure.m: no price: the cluster is not made of instances");
  refused(text_of("carbon(rented)", "moon"), "measure.m: no price of p3.16xlarge in region moon");
  refused(text_of("cost(rented) + energy(rented)"), "'USD' and 'J' cannot be added");
}

TEST_CASE("study: carbon of regions has the ratio of their grids") {
  const Json study = test::json_of({"study", "studies/carbon.yaml"})["studies"][0];
  CHECK(study["verdict"] == "identity");
  const std::map<std::string, double> grids = {{"us-east-1", 379.069},  {"us-east-2", 410.608},
                                               {"us-west-2", 322.167},  {"eu-west-1", 278.6},
                                               {"eu-central-1", 311.0}, {"eu-north-1", 8.8}};
  REQUIRE(study["points"].size() == grids.size());
  for (const Json& point : study["points"]) {
    const double grid = grids.at(point["parameters"][0]["setting"].get<std::string>());
    CHECK(point["measured"][0]["got"]["value"].get<double>() ==
          Approx(grid / 379.069).epsilon(1e-9));
  }
}

TEST_CASE("study: stalls of instances by differences of runs, and by ideal links") {
  const Json study = test::document(
      test::rehearse({"study", "studies/stash.yaml", "--format", "json"}), 1)["studies"][0];
  const auto verdict = [&](int e) { return study["expectations"][e]["verdict"]; };
  // The interconnect of hosts without NVLink is that of the median of three hosts.
  CHECK(verdict(0) == "missed");
  CHECK(verdict(1) == "inside the span");
  REQUIRE(study["points"].size() == 4 * 4 * 3);
  bool slower = false;
  for (const Json& point : study["points"]) {
    std::map<std::string, double> got;
    for (const Json& m : point["measured"])
      got[m["name"].get<std::string>()] = m["got"]["value"].get<double>();
    // Of data parallelism, one GPU is what is left without links.
    CHECK(got["interconnect"] == Approx(got["by_ideal_links"]).margin(0.01));
    CHECK(got["slow_down"] >= 0.99);
    // More GPUs than those of one instance on its network are no faster each.
    CHECK(got["second_gains"] <= 2 / got["slow_down"] * 1.001);
    slower |= got["second_gains"] < 1;
  }
  CHECK(slower);
}

}  // namespace
}  // namespace rehearse
