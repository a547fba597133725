// rehearse compare: jobs, clusters, recordings and saved results.
#include <cmath>

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/json_check.h"

namespace rehearse {
namespace {

using test::check_failed;
using test::value;

constexpr char kComparedJob[] =
    "workload: {model: gpt, hidden: 1024, layers: 8, heads: 16, sequence: 512, vocabulary: 51200}\n"
    "training: {global_batch: 16, microbatch: 1, dtype: bf16}\n"
    "plan: {tensor: 2, data: 4}\n";
std::string cluster_of(const std::string& device) {
  return "cluster: {device: " + device + ", devices_per_node: 8, nodes: 1, intra_node: nvswitch}\n";
}

TEST_CASE("compare: a job on two clusters, and the same from results that were saved") {
  const std::string job =
      test::write_scratch("job.yaml", kComparedJob + cluster_of("a100_sxm4_80"));
  const std::string h100 = test::write_scratch("h100.yaml", cluster_of("h100_sxm5_80"));
  const test::Json both = test::checked_json_of({"compare", job, "--cluster", h100});
  const test::Json a = test::json_of({"simulate", job});
  const test::Json b = test::json_of({"simulate", job, "--cluster", h100});
  // Equal work: the ratio of speeds is that of the step times.
  const double ratio = value(a["step_time"]) / value(b["step_time"]);
  CHECK(ratio > 1);
  CHECK(both["ratio"]["value"].get<double>() == Approx(ratio));
  // Independent errors add up as squares of their logarithms.
  const auto log_of = [](const test::Json& of, const char* over, const char* under) {
    return std::log(of[over].get<double>() / of[under].get<double>());
  };
  const double up =
      std::hypot(log_of(a["throughput"], "value", "low"), log_of(b["throughput"], "high", "value"));
  CHECK(both["ratio"]["high"].get<double>() == Approx(ratio * std::exp(up)));

  const std::string saved = (test::scratch_folder() / "a.json").string();
  REQUIRE(test::rehearse({"simulate", job, "--format", "json", "-o", saved}).code == 0);
  const test::Json again = test::json_of({"compare", saved, job});
  CHECK(again["ratio"]["value"].get<double>() == Approx(1));
  CHECK(again["differences"][0]["values"][0] == again["differences"][0]["values"][1]);
}

TEST_CASE("compare: equal results are called so, without an error of their ratio") {
  const std::string job =
      test::write_scratch("same.yaml", kComparedJob + cluster_of("a100_sxm4_80"));
  const std::string named = test::write_scratch(
      "named.yaml", kComparedJob + cluster_of("a100_sxm4_80") + "target: {steps: 10}\n");
  const test::Json json = test::checked_json_of({"compare", job, named});
  for (const char* end : {"low", "value", "high"}) CHECK(json["ratio"][end] == 1);
  CHECK(test::rehearse({"compare", job, named})
            .out.starts_with("same.yaml and named.yaml have the same results\n"));
  CHECK(test::rehearse({"compare", test::kExample, test::kExample})
            .out.find("has the same results twice\n") != std::string::npos);
}

TEST_CASE("compare: a recording and an edit of it") {
  const std::string edited = (test::scratch_folder() / "edited.json").string();
  REQUIRE(test::rehearse(
              {"whatif", test::kExample, "--scale", "kernel:0.5", "--format", "json", "-o", edited})
              .code == 0);
  const test::Json json = test::checked_json_of({"compare", test::kExample, edited});
  CHECK(json["compared_by"] == "step_time");
  CHECK(json["ratio"]["value"].get<double>() > 1);
  const std::string text = test::rehearse({"compare", test::kExample, edited}).out;
  CHECK(text.find("edited.json is ") == 0);
  CHECK(text.find("the largest difference is compute") != std::string::npos);
  CHECK(text.find(" in edited.json") != std::string::npos);
}

TEST_CASE("compare: plans of a described job, and one that does not fit") {
  const std::vector<std::string> job = {
      "compare", "--model",    "llama3_8b", "--gpus", "16",  "--device", "h100_sxm5_80", "--batch",
      "64",      "--fidelity", "closed",    "--plan", "tp2", "--plan",   "tp4,pp2"};
  const test::Json json = test::checked_json_of(job);
  CHECK(json["sides"].size() == 2);
  CHECK(json["sides"][0]["verdict"] == "does not fit");
  CHECK(test::rehearse(job).out.find("tp2 does not fit") != std::string::npos);
}

TEST_CASE("compare: mistakes") {
  check_failed(test::rehearse({"compare", test::kExample}), 2, "two or more inputs");
  check_failed(test::rehearse({"compare", test::kExample, "README.md"}), 1, "README.md");
  check_failed(test::rehearse({"compare", test::kExample, test::kExample, "--cluster", "c.yaml"}),
               2, "one job file");
  check_failed(test::rehearse({"compare", "--model", "llama3_8b", "--gpus", "8", "--device",
                               "h100_sxm5_80", "--batch", "8", "--plan", "tp2"}),
               2, "more than once");
}

}  // namespace
}  // namespace rehearse
