// recommend: options under wishes, what they are made of, and every wrong wish.
#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;

constexpr const char* kJob =
    "workload: {model: gpt2_medium}\n"
    "training: {global_batch: 64}\n"
    "region: us-east-1\n"
    "target: {tokens: 1e9}\n";

Ran recommend(const std::vector<std::string>& more, const std::string& job = kJob) {
  std::vector<std::string> arguments = {"recommend", test::write_scratch("j.yaml", job).string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::rehearse(arguments);
}

Json json_of(std::vector<std::string> more, const std::string& job = kJob) {
  for (const char* word : {"--format", "json"}) more.push_back(word);
  const Ran ran = recommend(more, job);
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  return Json::parse(ran.out);
}

double value(const Json& json) { return json["value"].get<double>(); }

TEST_CASE("recommend keeps the contract") {
  const Json json = json_of({"--provider", "aws", "--counts", "1,2", "--deadline", "3 days"});
  for (const char* key :
       {"options[].provider", "options[].instance", "options[].count", "options[].plan",
        "options[].time_to_target.value", "options[].cost_to_target", "options[].energy",
        "options[].carbon", "pareto[]", "why[]"})
    test::check_has(json, key);
  // Without a price there is no cost, without a power limit in the catalog no energy: null.
  Json known = json;
  known["options"].clear();
  for (const Json& option : json["options"])
    if (!option["cost_to_target"].is_null() && !option["energy"].is_null())
      known["options"].push_back(option);
  CHECK(known["options"].size() > 20);
  test::check_values(known);
  for (const char* key : {"options[].energy.value", "options[].carbon.value", "options[].plan.data",
                          "options[].stalls.interconnect.share", "options[].stalls.network.value"})
    test::check_has(known, key);
  test::check_has(known, "options[].cost_to_target.value");
  for (const Json& option : json["options"])
    if (option["instance"] == "p4d.24xlarge")
      CHECK(option["gpus"] == 8 * option["count"].get<int>());
    else if (option["plan"].is_null())
      CHECK_FALSE(option.contains("gpus"));
  const Json& best = json["options"][0];
  CHECK(best["time_to_target"]["unit"] == "s");
  CHECK(best["cost_to_target"]["unit"] == "USD");
  CHECK(best["carbon"]["unit"] == "gCO2e");
  CHECK(value(best["time_to_target"]) <= 3 * 86400);
  double cost = 0;
  for (const Json& option : json["options"]) {
    if (!option["meets"].get<bool>() || option["cost_to_target"].is_null()) break;
    CHECK(value(option["cost_to_target"]) >= cost);
    cost = value(option["cost_to_target"]);
    // Price × time, and no storage is asked for.
    CHECK(option["storage_cost"]["value"] == 0);
    // How it is fed is not said: these two are absent, not zero.
    if (!option.contains("stalls")) continue;  // functions
    CHECK_FALSE(option["stalls"].contains("input"));
    CHECK_FALSE(option["stalls"].contains("fetch"));
  }
  CHECK(json["pareto"].size() >= 1);
  CHECK(json["warnings"].dump().find("input and fetch stalls are not known") != std::string::npos);
}

TEST_CASE("a budget alone asks for the fastest, and the answer is text of one screen") {
  const Ran ran = recommend({"--provider", "aws", "--counts", "1,4", "--budget", "0.2 kUSD"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("the fastest of") != std::string::npos);
  CHECK(ran.out.find("to the target\n") != std::string::npos);
  CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') <= 40);
}

TEST_CASE("prices of one's own decide, and what has no price is listed without") {
  const std::string prices =
      test::write_scratch("p.csv",
                          "provider,instance_type,region,zone,ondemand_usd_per_h,spot_usd_per_h,"
                          "source,as_of\n"
                          "aws,g5.xlarge,us-east-1,,0.001,,a quote,2020-02\n")
          .string();
  const Json json = json_of({"--provider", "aws", "--counts", "1", "--prices", prices});
  CHECK(json["options"][0]["instance"] == "g5.xlarge");
  CHECK(json["options"][0]["notes"].dump().find("stale: of 2020-02, more than 180 days old") !=
        std::string::npos);
  CHECK(json["warnings"].dump().find("the price of g5.xlarge is stale: of 2020-02") !=
        std::string::npos);
  const Json gcp = json_of({"--provider", "gcp", "--counts", "1", "--region", "us-central1"});
  bool found = false;
  for (const Json& option : gcp["options"])
    if (option["instance"] == "a4-highgpu-8g") {
      found = true;
      CHECK(option["cost_to_target"].is_null());
    }
  CHECK(found);
}

TEST_CASE("a price that is recalled is said to be") {
  const Json json = json_of({"--provider", "coreweave", "--counts", "1", "--region", "us"});
  bool found = false;
  for (const Json& option : json["options"])
    for (const Json& note : option["notes"])
      found |= note.get<std::string>().find(", as of 2025, recalled") != std::string::npos;
  CHECK(found);
}

TEST_CASE("who has one price for anywhere has it in the region that is asked for") {
  const Json json = json_of({"--provider", "lambda", "--counts", "1", "--region", "us-east-1"});
  for (const Json& option : json["options"]) CHECK(option["provider"] == "lambda");
  CHECK(json["options"].size() > 1);
}

TEST_CASE("on spot, interruptions and checkpoints are counted") {
  const std::string job = std::string(kJob) + "spot: {interrupted_every: 30 h}\n";
  const Json json = json_of({"--provider", "aws", "--counts", "2", "--spot"}, job);
  for (const Json& option : json["options"]) {
    if (!option.contains("checkpoints")) continue;
    CHECK(option["checkpoints"]["slowdown"].get<double>() > 1);
    CHECK(value(option["checkpoints"]["every"]) > 0);
  }
  test::check_has(json, "options[].checkpoints.write");
}

TEST_CASE("wrong wishes get one line each") {
  const auto failed = [](const std::vector<std::string>& more, const std::string& says,
                         const std::string& job = kJob) {
    test::check_failed(recommend(more, job), 1, says);
  };
  failed({"--target", "300e9"}, "--target: '300e9' has no unit; one of tokens, samples, steps");
  failed({"--target", "3 token"},
         "unknown unit 'token' of an amount of training; did you mean "
         "'tokens'?");
  failed({"--target", "-1 steps"}, "--target: '-1 steps' is not an amount of training");
  failed({"--budget", "40"}, "--budget: '40' has no unit; one of USD, kUSD, MUSD");
  failed({"--budget", "0 USD"}, "--budget: '0 USD' is not above zero");
  failed({"--deadline", "5 dais"}, "--deadline: unknown unit 'dais'");
  failed({"--max-carbon", "2 tons"}, "--max-carbon: unknown unit 'tons'");
  failed({"--provider", "amazn"}, "--provider: no provider 'amazn'; ");
  failed({"--provider", "azur"}, "did you mean 'azure'?");
  failed({"--region", "us-east-9"}, "--region: no region 'us-east-9'; ");
  failed({"--provider", "gcp", "--region", "me-west9"}, "no region 'me-west9' of gcp");
  failed({"--provider", "lambda", "--region", "any", "--max-carbon", "2 tCO2e"},
         "--max-carbon: no carbon is known of region any");
  failed({}, "how long to train is not given; target: {tokens: 300e9} in ",
         "workload: {model: gpt2}\ntraining: {global_batch: 8}\n");
  failed({"--target", "1e9 tokens"}, "samples of this workload have no tokens",
         "workload: {model: resnet50}\ntraining: {global_batch: 64}\n");
  failed({}, "spot.interrupted_every: one of the two is due", std::string(kJob) + "spot: {}\n");
  failed({}, "storage.evry: unknown key", std::string(kJob) + "storage: {evry: 1 h}\n");
  failed({}, "storage.every: is not above zero", std::string(kJob) + "storage: {every: 0 s}\n");
  const Ran both = recommend({"--spot", "--on-demand"});
  CHECK(both.code == 2);
}

TEST_CASE("a budget that nothing meets is answered with the nearest option") {
  const Ran ran = recommend({"--provider", "aws", "--counts", "1,2", "--budget", "1 USD"});
  test::check_failed(ran, 1, "nothing meets the budget of 1.00 USD; the nearest, 1 × ");
  CHECK(ran.errors.find(" times the budget") != std::string::npos);
  const Ran late = recommend({"--provider", "aws", "--counts", "1,2", "--deadline", "1 min"});
  test::check_failed(late, 1, "nothing meets the deadline of 1.00 min; the nearest, 2 × ");
  // None of them has a spot price: that is no question of memory.
  const Ran unpriced = recommend({"--provider", "coreweave", "--counts", "1", "--region", "us",
                                  "--spot", "--budget", "1000 USD"});
  test::check_failed(unpriced, 1, "nothing meets the budget of 1000.00 USD; the nearest, 1 × ");
  CHECK(unpriced.errors.find("has no price") != std::string::npos);
}

}  // namespace
}  // namespace rehearse
