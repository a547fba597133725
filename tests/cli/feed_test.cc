// Jobs with `input`: the stall in simulate and recommend, and what is refused.
#include <map>

#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::json_of;
using test::Ran;
using test::value;

constexpr const char* kFedJob =
    "workload: {model: gpt2_medium}\n"
    "training: {global_batch: 64, microbatch: 2}\n"
    "plan: {data: 8}\n"
    "cluster: {instance: p4d.24xlarge}\n"
    "region: us-east-1\n";

constexpr const char* kSlow = "stages: [{name: load, time: 50 ms, queue: 100}]\n";

/// A job in the folder of the pipeline that it names.
std::string fed_job(const std::string& pipeline, const std::string& job = kFedJob) {
  const auto path = test::write_scratch("job.yaml", job + "input: p.yaml\n");
  test::write_file(path.parent_path() / "p.yaml", pipeline);
  return path.string();
}

TEST_CASE("simulate: input that is fast enough changes nothing") {
  const Json bare = json_of({"simulate", test::write_scratch("bare.yaml", kFedJob).string()});
  for (const char* pipeline :
       {"stages: [{name: load}]\n", "stages: [{name: load, time: 1 us, queue: 32}]\n"}) {
    const Json fed = json_of({"simulate", fed_job(pipeline)});
    for (const char* key : {"step_time", "throughput", "mfu", "breakdown", "cost_per_step",
                            "energy_per_step", "carbon_per_step"})
      CHECK(fed[key] == bare[key]);
    CHECK(value(fed["breakdown"]["input"]) == 0);
  }
}

TEST_CASE("simulate: a step that waits for input takes as long as its samples do") {
  const Json bare = json_of({"simulate", test::write_scratch("bare.yaml", kFedJob).string()});
  const Json slow = json_of({"simulate", fed_job(kSlow)});
  test::check_values(slow);
  // 64 samples of 50 ms, one after another.
  CHECK(value(slow["step_time"]) == Approx(3.2));
  CHECK(value(slow["throughput"]) == Approx(20));
  double sum = 0;
  for (const auto& [name, part] : slow["breakdown"].items())
    if (name != "total") sum += value(part);
  CHECK(sum == Approx(3.2));
  CHECK(value(slow["breakdown"]["input"]) == Approx(3.2 - value(bare["step_time"])));
  const double stall = value(slow["breakdown"]["input"]);
  for (const char* end : {"low", "high"})
    CHECK(slow["step_time"][end] == Approx(bare["step_time"][end].get<double>() + stall));
  const double longer = 3.2 / value(bare["step_time"]);
  CHECK(value(slow["cost_per_step"]) == Approx(longer * value(bare["cost_per_step"])));
  CHECK(value(slow["energy_per_step"]) > value(bare["energy_per_step"]));
  CHECK(value(slow["energy_per_step"]) < longer * value(bare["energy_per_step"]));
  CHECK(value(slow["mfu"]) == Approx(value(bare["mfu"]) / longer));
  CHECK(slow["what_would_help"][0]["change"] == "no input stalls");
  CHECK(value(slow["what_would_help"][0]["step_time"]) == Approx(value(bare["step_time"])));
  CHECK_THAT(slow["notes"].dump(), Contains("a node needs 16 samples per microbatch, 16 of load") &&
                                       Contains("threads of load: 20"));
  // Closed forms and messages wait for the same samples.
  const Json closed = json_of({"simulate", fed_job(kSlow), "--fidelity", "closed"});
  CHECK(value(closed["step_time"]) == Approx(value(slow["step_time"])));
  const Ran text = test::rehearse({"simulate", fed_job(kSlow)});
  CHECK_THAT(text.out, Contains("\n  input ") && Contains("3.20 s"));
}

TEST_CASE("simulate: nodes load for their own ranks, ranks that share a sample once") {
  const auto note = [](const std::string& plan, const std::string& cluster) {
    const std::string job =
        "workload: {model: gpt2_medium}\n"
        "training: {global_batch: 64, microbatch: 2}\nplan: {" +
        plan + "}\ncluster: {instance: p4d.24xlarge, count: " + cluster + "}\n";
    return json_of({"simulate", fed_job(kSlow, job), "--fidelity", "closed"});
  };
  // 20 samples a second on each of two nodes.
  const Json two = note("data: 16", "2");
  CHECK(value(two["throughput"]) == Approx(40));
  const Json tensor = note("data: 2, tensor: 4", "1");
  CHECK_THAT(tensor["notes"].dump(), Contains("a node needs 4 samples per microbatch"));
  CHECK(value(tensor["throughput"]) == Approx(20));
}

TEST_CASE("simulate: cores of the instance prepare samples where the pipeline names none") {
  const std::string stages = "stages: [{name: decode, workers: 96, time: 100 ms, queue: 200}]\n";
  // 96 vCPUs are 48 cores: 480 samples a second, not 960.
  const auto notes = [](const Json& json) { return json["notes"].dump(); };
  CHECK_THAT(notes(json_of({"simulate", fed_job(stages)})), Contains("host cores: 480"));
  CHECK_THAT(notes(json_of({"simulate", fed_job("host: {cores: 8}\n" + stages)})),
             Contains("host cores: 80"));
  const std::string owned =
      "workload: {model: gpt2_medium}\ntraining: {global_batch: 8}\n"
      "cluster: {device: a100_sxm4_80, devices_per_node: 1, nodes: 1}\n";
  CHECK_THAT(notes(json_of({"simulate", fed_job(stages, owned)})),
             Contains("threads of decode: 960") && Contains("not given and not limited"));
}

TEST_CASE(
    "simulate: requests to storage are in the cost, and the time of the first samples is "
    "reported") {
  const auto fed = [](const std::string& price) {
    return json_of(
        {"simulate", fed_job("sources: [{name: s, latency: 20 ms" + price +
                                 "}]\nstages: [{name: load, workers: 64, queue: 100, read: "
                                 "{from: s, bytes: 100 kB}}]\n",
                             std::string(kFedJob) + "target: {samples: 64000}\n")});
  };
  const Json free = fed(""), paid = fed(", usd_per_1000_requests: 1");
  // 64 samples a step, each a request.
  CHECK(value(paid["cost_per_step"]) == Approx(value(free["cost_per_step"]) + 0.064));
  CHECK(value(paid["to_target"]["cost"]) == Approx(value(free["to_target"]["cost"]) + 64));
  CHECK_THAT(paid["notes"].dump(), Contains("requests to storage: ") && Contains("in its cost"));
  CHECK_THAT(free["notes"].dump(), !Contains("requests to storage"));
  CHECK_THAT(free["notes"].dump(), Contains("the first are ready after 20"));
}

TEST_CASE("simulate: epochs of a target may come from the input") {
  const Json json = json_of({"simulate", fed_job(std::string("samples: 6400\n") + kSlow,
                                                 std::string(kFedJob) + "target: {epochs: 2}\n")});
  CHECK(json["to_target"]["steps"] == Approx(200));
  CHECK(value(json["to_target"]["time"]) == Approx(640));
}

TEST_CASE("simulate: the fed example has a report with its stall") {
  const auto page = test::write_scratch("page.html", "");
  const Ran ran = test::rehearse({"simulate", "examples/jobs/resnet50_fed.yaml", "--fidelity",
                                  "closed", "--report", page.string(), "--quiet"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK_THAT(ran.out, Contains("\n  input ") && Contains("a node needs 2048 samples"));
  CHECK_THAT(test::text_of(page), Contains("\"input\":{"));
}

TEST_CASE("recommend: input and fetch are stalls of the step, by the host of each instance") {
  const std::string job =
      "workload: {model: gpt2_medium}\ntraining: {global_batch: 64}\ntarget: {samples: 1e5}\n";
  const std::string pipeline =
      "sources: [{name: s3, latency: 30 ms, connection: 50 MB/s}]\n"
      "stages: [{name: fetch, threads: 4, queue: 64, read: {from: s3, bytes: 1 MB}},\n"
      "         {name: decode, workers: 16, time: 100 ms, queue: 64}]\n";
  const std::vector<std::string> more = {"--provider", "aws",        "--counts",
                                         "1",          "--deadline", "9 days"};
  std::vector<std::string> arguments = {"recommend", fed_job(pipeline, job)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Json fed = json_of(arguments);
  test::check_has(fed, "options[].stalls.fetch.share");
  CHECK(fed["warnings"].dump().find("input and fetch") == std::string::npos);
  std::map<std::string, double> step, input;
  std::size_t fetching = 0;
  for (const Json& option : fed["options"]) {
    if (!option.contains("stalls")) continue;  // functions
    const std::string name = option["instance"];
    step[name] = value(option["step_time"]);
    input[name] = value(option["stalls"]["input"]);
    const double fetch = value(option["stalls"]["fetch"]);
    CHECK(fetch >= 0);
    CHECK(fetch <= input[name] * (1 + 1e-9));
    CHECK(input[name] < step[name]);
    fetching += fetch > 0;
  }
  CHECK(fetching > 0);
  // The same GPU: two cores decode 20 samples a second, and 64 take 3.2 s.
  REQUIRE(step.count("g6e.xlarge") + step.count("g6e.4xlarge") == 2);
  CHECK(step["g6e.xlarge"] == Approx(3.2).epsilon(0.02));
  CHECK(step["g6e.4xlarge"] < step["g6e.xlarge"]);
  arguments.push_back("--quiet");
  const Ran text = test::rehearse(arguments);
  CHECK_THAT(text.out, Contains("% on the input, including ") && Contains("fetch"));
}

TEST_CASE("recommend: a target in epochs needs their samples") {
  const std::string job = "workload: {model: gpt2_medium}\ntraining: {global_batch: 64}\n";
  const auto arguments = [&](const std::string& file) {
    return std::vector<std::string>{"recommend", file, "--provider", "aws",
                                    "--counts",  "1",  "--target",   "3 epochs"};
  };
  test::check_failed(test::rehearse(arguments(test::write_scratch("j.yaml", job).string())), 1,
                     "--target: the number of samples per epoch is not given");
  const Json epochs = json_of(arguments(
      test::write_scratch("j.yaml", job + "target: {epochs: 9, samples_per_epoch: 64000}\n")
          .string()));
  std::vector<std::string> samples = arguments(test::write_scratch("j.yaml", job).string());
  samples.back() = "192000 samples";
  CHECK(json_of(samples)["options"][0] == epochs["options"][0]);
}

TEST_CASE("input of a job: in the job file, or in a separate file") {
  const Ran apart = test::rehearse({"simulate", fed_job("stages: [{name: load, time: 9 ms}]\n")});
  const Ran here = test::rehearse(
      {"simulate",
       test::write_scratch("job.yaml",
                           std::string(kFedJob) + "input: {stages: [{name: load, time: 9 ms}]}\n")
           .string()});
  INFO(here.errors);
  REQUIRE(here.code == 0);
  CHECK(here.out == apart.out);
  test::check_failed(
      test::rehearse({"simulate", test::write_scratch(
                                      "job.yaml", std::string(kFedJob) +
                                                      "input: {stages: [{name: load, time: 9}]}\n")
                                      .string()}),
      1, "input.stages[0].time");
}

TEST_CASE("input of a job: mistakes end with one line each") {
  const auto refused = [](std::vector<std::string> arguments, const std::string& says) {
    test::check_failed(test::rehearse(std::move(arguments)), 1, says);
  };
  const std::string bare = test::write_scratch("bare.yaml", kFedJob).string();
  refused({"simulate",
           test::write_scratch("j.yaml", std::string(kFedJob) + "input: none.yaml\n").string()},
          "none.yaml");
  refused({"simulate", fed_job("stages: [{name: load, time: 5 m}]\n")}, "p.yaml:1:");
  refused({"simulate",
           test::write_scratch("j.yaml", std::string(kFedJob) + "input: {stages: []}\n").string()},
          "input");
  refused({"simulate", fed_job(kSlow, std::string(kFedJob) + "target: {epochs: 2}\n")},
          "target.samples_per_epoch: is missing");
  refused({"simulate", bare, "--share-with", fed_job(kSlow)},
          "jobs on the same devices are predicted without input stalls");
  refused({"calibrate", "job", fed_job(kSlow), "--measured", "1 s"},
          "the measured step may include input stalls, so it cannot calibrate compute");
}

}  // namespace
}  // namespace rehearse
