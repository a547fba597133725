// recommend: options under wishes, what they are made of, and every wrong wish.
#include <filesystem>
#include <map>
#include <set>

#include <catch2/catch.hpp>
#include <sys/resource.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;
using test::value;

/// A search of one microbatch and no pipeline takes a third of the time; pages have examples of the
/// whole search.
constexpr const char* kRentedJob =
    "workload: {model: gpt2_medium}\n"
    "training: {global_batch: 64, microbatch: 1}\n"
    "region: us-east-1\n"
    "target: {tokens: 1e9}\n"
    "plan: {pipeline: 1}\n";

Ran recommend(const std::vector<std::string>& more, const std::string& job = kRentedJob) {
  std::vector<std::string> arguments = {"recommend", test::write_scratch("j.yaml", job).string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::rehearse(arguments);
}

Json recommend_json(std::vector<std::string> more, const std::string& job = kRentedJob) {
  more.insert(more.end(), {"--format", "json"});
  return test::document(recommend(more, job));
}

TEST_CASE("recommend: the keys and values of its result") {
  const Json json =
      recommend_json({"--provider", "aws", "--counts", "1,2", "--deadline", "3 days"});
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
    // The input is not described: these two are absent, not zero.
    if (!option.contains("stalls")) continue;  // functions
    CHECK_FALSE(option["stalls"].contains("input"));
    CHECK_FALSE(option["stalls"].contains("fetch"));
  }
  CHECK(!json["pareto"].empty());
  CHECK(json["warnings"].dump().find("input and fetch stalls are unknown") != std::string::npos);
}

TEST_CASE("a budget alone gives the fastest option, and the answer fits one screen") {
  const Ran ran = recommend({"--provider", "aws", "--counts", "1,4", "--budget", "0.2 kUSD"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("the fastest of") != std::string::npos);
  CHECK(ran.out.find(" to the target; ") != std::string::npos);
  CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') <= 40);
}

TEST_CASE(
    "prices of the user override the catalog, and instances without a price are listed without "
    "cost") {
  const std::string prices =
      test::write_scratch("p.csv",
                          "provider,instance_type,region,zone,ondemand_usd_per_h,spot_usd_per_h,"
                          "source,as_of\n"
                          "aws,g5.xlarge,us-east-1,,0.001,,a quote,2020-02\n")
          .string();
  const Json json = recommend_json({"--provider", "aws", "--counts", "1", "--prices", prices});
  CHECK(json["options"][0]["instance"] == "g5.xlarge");
  CHECK(json["options"][0]["notes"].dump().find("stale: of 2020-02, more than 180 days old") !=
        std::string::npos);
  CHECK(json["warnings"].dump().find("the price of g5.xlarge is stale: of 2020-02") !=
        std::string::npos);
  const Json gcp =
      recommend_json({"--provider", "gcp", "--counts", "1", "--region", "us-central1"});
  bool found = false;
  for (const Json& option : gcp["options"])
    if (option["instance"] == "a4-highgpu-8g") {
      found = true;
      CHECK(option["cost_to_target"].is_null());
    }
  CHECK(found);
}

TEST_CASE("a recalled price is marked") {
  const Json json = recommend_json({"--provider", "coreweave", "--counts", "1", "--region", "us"});
  bool found = false;
  for (const Json& option : json["options"])
    for (const Json& note : option["notes"])
      found |= note.get<std::string>().find(", as of 2025, recalled") != std::string::npos;
  CHECK(found);
}

TEST_CASE("a price for all regions applies in the requested region") {
  const Json json =
      recommend_json({"--provider", "lambda", "--counts", "1", "--region", "us-east-1"});
  for (const Json& option : json["options"]) CHECK(option["provider"] == "lambda");
  CHECK(json["options"].size() > 1);
}

TEST_CASE("on spot, interruptions and checkpoints are counted") {
  const std::string job = std::string(kRentedJob) + "spot: {interrupted_every: 30 h}\n";
  const Json json = recommend_json({"--provider", "aws", "--counts", "2", "--spot"}, job);
  for (const Json& option : json["options"]) {
    if (!option.contains("checkpoints")) continue;
    CHECK(option["checkpoints"]["slowdown"].get<double>() > 1);
    CHECK(value(option["checkpoints"]["every"]) > 0);
  }
  test::check_has(json, "options[].checkpoints.write");
}

TEST_CASE("wrong constraints get one line each") {
  const auto failed = [](const std::vector<std::string>& more, const std::string& says,
                         const std::string& job = kRentedJob) {
    test::check_failed(recommend(more, job), 1, says);
  };
  const auto unreadable = [](const std::vector<std::string>& more, const std::string& says) {
    test::check_failed(recommend(more, kRentedJob), 2, says);
  };
  unreadable({"--target", "300e9"}, "--target: '300e9' has no unit; one of tokens, samples, steps");
  unreadable({"--target", "3 token"},
             "unknown unit 'token' of an amount of training; did you mean "
             "'tokens'?");
  // Thirty tokens are not what was meant.
  unreadable({"--target", "30B tokens"}, "; write '30e9 tokens'");
  unreadable({"--target", "-1 steps"}, "--target: '-1 steps' is not an amount of training");
  unreadable({"--budget", "40"}, "--budget: '40' has no unit; one of USD, kUSD, MUSD");
  unreadable({"--budget", "0 USD"}, "--budget: '0 USD' is not above zero");
  unreadable({"--deadline", "5 dais"}, "--deadline: unknown unit 'dais'");
  unreadable({"--max-carbon", "2 tons"}, "--max-carbon: unknown unit 'tons'");
  failed({"--provider", "amazn"}, "--provider: no provider 'amazn'; ");
  failed({"--provider", "azur"}, "did you mean 'azure'?");
  failed({"--region", "us-east-9"}, "--region: no region 'us-east-9'; ");
  failed({"--provider", "gcp", "--region", "me-west9"}, "no region 'me-west9' of gcp");
  failed({"--provider", "lambda", "--region", "any", "--max-carbon", "2 tCO2e"},
         "--max-carbon: the carbon intensity of region any is unknown");
  failed({}, "the amount of training is not given; --target '300e9 tokens', or target: ",
         "workload: {model: gpt2}\ntraining: {global_batch: 8}\n");
  failed({"--target", "1e9 tokens"}, "samples of this workload have no tokens",
         "workload: {model: resnet50}\ntraining: {global_batch: 64}\n");
  failed({}, "spot.interrupted_every: exactly one of the two is required",
         std::string(kRentedJob) + "spot: {}\n");
  failed({}, "storage.evry: unknown key", std::string(kRentedJob) + "storage: {evry: 1 h}\n");
  failed({}, "storage.every: is not above zero",
         std::string(kRentedJob) + "storage: {every: 0 s}\n");
}

TEST_CASE("offers of several providers, regions and markets are in one list") {
  const Json json =
      recommend_json({"--provider", "aws,gcp", "--region", "us-east-1,eu-north-1,us-central1",
                      "--spot", "--on-demand", "--counts", "1"});
  std::map<std::string, std::set<std::string>> places;  // regions by provider
  std::map<std::string, std::map<std::string, double>> price, carbon, time;
  for (const Json& option : json["options"]) {
    INFO(option.dump());
    if (option["plan"].is_null()) {
      CHECK(option["region"].is_null());  // functions
      CHECK(option["market"] == "on_demand");
      continue;
    }
    const std::string region = option["region"], market = option["market"],
                      name = option["instance"];
    places[option["provider"]].insert(region);
    if (market == "on_demand") time[name][region] = value(option["time_to_target"]);
    if (!option["cost_to_target"].is_null())
      price[name][fmt::format("{} {}", region, market)] =
          value(option["cost_to_target"]) / value(option["time_to_target"]);
    if (!option["carbon"].is_null())
      carbon[name][region] = value(option["carbon"]) / value(option["energy"]);
  }
  // Each of its own regions.
  CHECK(places["aws"] == std::set<std::string>{"us-east-1", "eu-north-1"});
  CHECK(places["gcp"] == std::set<std::string>{"us-central1"});
  // The same machine takes as long anywhere; its price is of the market, its carbon of the region.
  const std::string name = "g6.xlarge";
  CHECK(time[name]["us-east-1"] == time[name]["eu-north-1"]);
  CHECK(carbon[name]["us-east-1"] > 20 * carbon[name]["eu-north-1"]);
  int cheaper = 0;
  for (const auto& [instance, at] : price)
    if (at.contains("us-east-1 spot") && at.contains("us-east-1 on_demand"))
      cheaper += at.at("us-east-1 spot") < at.at("us-east-1 on_demand");
  CHECK(cheaper > 0);
}

TEST_CASE("in a region of its provider an instance without a price is listed without cost") {
  const Json json =
      recommend_json({"--provider", "aws", "--region", "eu-north-1", "--counts", "1"});
  bool unpriced = false, priced = false;
  for (const Json& option : json["options"]) {
    if (option["plan"].is_null()) continue;
    CHECK(option["region"] == "eu-north-1");
    unpriced |= option["cost_to_target"].is_null();
    priced |= !option["cost_to_target"].is_null();
    // No price of another region is taken for it.
    const std::string notes = option["notes"].dump();
    if (option["cost_to_target"].is_null())
      CHECK(notes.find(" price of " + option["instance"].get<std::string>() +
                       " in region eu-north-1") != std::string::npos);
    else
      CHECK(notes.find(" in eu-north-1, ") != std::string::npos);
  }
  CHECK(unpriced);
  CHECK(priced);
}

TEST_CASE("the job file states provider, region and market, one or several") {
  const std::string job =
      "workload: {model: gpt2_medium}\n"
      "training: {global_batch: 64, microbatch: 1}\n"
      "provider: [gcp, aws]\n"
      "region: [us-central1, us-east-1]\n"
      "market: [spot, on_demand]\n"
      "target: {tokens: 1e9}\n"
      "plan: {pipeline: 1}\n";
  std::set<std::string> providers, markets;
  const Json both = recommend_json({"--counts", "1"}, job);
  for (const Json& option : both["options"]) {
    providers.insert(option["provider"]);
    markets.insert(option["market"]);
  }
  CHECK(providers == std::set<std::string>{"aws", "gcp"});
  CHECK(markets == std::set<std::string>{"on_demand", "spot"});
  // The command line takes the place of each.
  const Json spot = recommend_json(
      {"--counts", "1", "--provider", "aws", "--region", "us-east-1", "--spot"}, job);
  for (const Json& option : spot["options"]) CHECK(option["market"] == "spot");
  const auto failed = [](const std::string& text, const std::string& says,
                         const std::vector<std::string>& more = {}) {
    test::check_failed(recommend(more, text), 1, says);
  };
  // Reported at its place: in the file, or in the option.
  std::string wrong = job;
  wrong.replace(wrong.find("us-east-1"), 9, "us-esat-1");
  failed(wrong, "j.yaml:4:9: region: no region 'us-esat-1' of gcp or aws; ");
  failed(wrong, "did you mean 'us-east-1'?");
  failed(job, "--region: no region 'us-esat-1' of gcp or aws; ", {"--region", "us-esat-1"});
  wrong = job;
  wrong.replace(wrong.find("gcp"), 3, "gpc");
  failed(wrong, "j.yaml:3:11: provider: no provider 'gpc'; did you mean 'gcp'?");
  failed(job, "--provider: no provider 'gpc'; did you mean 'gcp'?", {"--provider", "aws,gpc"});
  wrong = job;
  wrong.replace(wrong.find("spot"), 4, "sopt");
  failed(wrong, "j.yaml:5:9: market: unknown market 'sopt'; did you mean 'spot'?");
  failed("region: []\n" +
             std::string(kRentedJob).replace(std::string(kRentedJob).find("region"), 18, ""),
         "region: is empty");
  // A provider is not left out in silence.
  failed(kRentedJob, "j.yaml:3:9: region: gcp has no region us-east-1; ",
         {"--provider", "aws,gcp"});
  // A plan is made in one place.
  test::check_failed(
      test::rehearse({"simulate", test::write_scratch("s.yaml",
                                                      "workload: {model: gpt2_medium}\n"
                                                      "training: {global_batch: 64}\n"
                                                      "region: [us-east-1, us-east-2]\n"
                                                      "cluster: {instance: g5.xlarge}\n")
                                      .string()}),
      1, "region: several regions; one; several are for `rehearse recommend`");
}

TEST_CASE("stalls: gain or loss of GPUs that share a node") {
  const Json json = recommend_json({"--provider", "aws", "--counts", "1,4"});
  int shared = 0;
  for (const Json& option : json["options"]) {
    if (!option.contains("stalls")) continue;  // functions
    INFO(option.dump());
    const bool several = option["gpus"] > option["count"];
    const Json& stalls = option["stalls"];
    if (!several) CHECK_FALSE(stalls.contains("node_sharing"));
    if (!stalls.contains("node_sharing")) continue;
    ++shared;
    CHECK(stalls["node_sharing"]["unit"] == "s");
    CHECK(stalls["node_sharing"]["share"].get<double>() ==
          Approx(value(stalls["node_sharing"]) / value(option["step_time"])));
    // NVLink is worth more than a NIC.
    if (option["instance"] == "p3.16xlarge") CHECK(value(stalls["node_sharing"]) < 0);
  }
  CHECK(shared > 2);
  const Ran csv = recommend({"--provider", "aws", "--counts", "1", "--format", "csv"});
  CHECK(csv.out.find("node sharing (%)") != std::string::npos);
}

TEST_CASE("the timeline of the first option is drawn") {
  const std::filesystem::path path = test::scratch_folder() / "t.json";
  const Ran ran = recommend(
      {"--provider", "aws", "--counts", "2", "--deadline", "2 days", "--perfetto", path.string()});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  const Json drawn = Json::parse(test::text_of(path));
  bool computes = false;
  for (const Json& event : drawn["traceEvents"]) computes |= event["ph"] == "X" && event["dur"] > 0;
  CHECK(computes);
  test::check_failed(recommend({"--perfetto", "/no/such/folder/t.json"}), 1, "/no/such/folder");
}

TEST_CASE("a budget that no option meets gives the nearest option") {
  const Ran ran = recommend({"--provider", "aws", "--counts", "1,2", "--budget", "1 USD"});
  test::check_failed(ran, 1, "nothing meets the budget of 1.00 USD; the nearest, 1 × ");
  CHECK(ran.errors.find(" times the budget") != std::string::npos);
  const Ran late = recommend({"--provider", "aws", "--counts", "1,2", "--deadline", "1 min"});
  test::check_failed(late, 1, "nothing meets the deadline of 1.00 min; the nearest, ");
  // None of them has a spot price: that is no question of memory.
  const Ran unpriced = recommend({"--provider", "coreweave", "--counts", "1", "--region", "us",
                                  "--spot", "--budget", "1000 USD"});
  test::check_failed(unpriced, 1, "nothing meets the budget of 1000.00 USD; the nearest, 1 × ");
  CHECK(unpriced.errors.find("has no price") != std::string::npos);
}

TEST_CASE("recommend: steps of millions of ops need seconds, and less than 768 MiB", "[long]") {
  // Thousands of microbatches: 2 s and 0.1 GiB. A run of all of them takes 4.9 GiB, for each plan.
  // Deep pipelines on 2,048 GPUs: 13 s and 0.5 GiB. It was 1.0 GiB when plans kept their runs.
  const std::vector<std::string> of[] = {{"--counts", "2", "--provider", "azure"},
                                         {"--counts", "256", "--provider", "azure"}};
  for (const std::vector<std::string>& some : of) {
    std::vector<std::string> words = {"recommend", "--model",      "gpt3_175b", "--batch", "16384",
                                      "--target",  "300e9 tokens", "--threads", "2"};
    words.insert(words.end(), some.begin(), some.end());
    const Ran ran = test::rehearse(words);
    REQUIRE(ran.code == 0);
    rusage used = {};
    REQUIRE(getrusage(RUSAGE_CHILDREN, &used) == 0);
    CHECK(used.ru_utime.tv_sec < 90);
    CHECK(used.ru_maxrss < 768L * 1024);
  }
}

}  // namespace
}  // namespace rehearse
