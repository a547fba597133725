// fleet: the numbers of the example, traces, and what it refuses.
#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::json_of;
using test::Ran;

const std::string kJobs = "examples/fleets/four_jobs.csv";

TEST_CASE("fleet: starts and ends by policy") {
  const auto starts = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"fleet", kJobs, "--nodes", "1", "--gpus-per-node", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<double> found;
    const Json json = json_of(arguments);
    for (const Json& job : json["jobs"]) found.push_back(job["start_s"]);
    return found;
  };
  using Times = std::vector<double>;
  CHECK(starts({}) == Times{0, 10, 15, 15});
  CHECK(starts({"--policy", "backfill"}) == Times{0, 10, 2, 15});
  CHECK(starts({"--policy", "shortest", "--preempt", "--restart", "2 s"}) == Times{0, 1, 6, 14});
  CHECK(starts({"--policy", "fair"}).size() == 4);
}

TEST_CASE("fleet: slices of a device, and jobs that never fit") {
  const std::string list = test::write_scratch("jobs.csv",
                                               "job,submit_s,duration_s,gpus,memory_gib\n"
                                               "small,0,10,1,3\nbig,0,10,1,300\nwide,0,10,9,\n")
                               .string();
  const Json json =
      json_of({"fleet", list, "--nodes", "1", "--device", "a100_sxm4_80", "--slices"});
  CHECK(json["never_fits"] == 2);
  CHECK(json["jobs"][0]["slice"] == "1g.10gb");
  CHECK(json["jobs"][0]["end_s"].get<double>() == Approx(70));
  CHECK(json["jobs"][1]["ran"] == false);
  CHECK(json["on_slices"]["by_share"] == 1);
  CHECK(json["on_slices"]["makespan_fast_s"] == Approx(10));
  CHECK(json["on_slices"]["makespan_slow_s"] == Approx(80));  // an eighth of the bandwidth
}

TEST_CASE("fleet: a step and its host time give the speed of a job on a slice") {
  // The host decides on the whole GPU and on 1g: as fast as alone, or nearly so.
  const std::string list =
      test::write_scratch("hosts.csv",
                          "job,submit_s,duration_s,gpus,memory_gib,step_ms,host_ms\n"
                          "idle,0,10,1,3,10.0,10.0\nbusy,0,10,1,3,10.0,0\nbare,0,10,1,3,,\n")
          .string();
  const Json json =
      json_of({"fleet", list, "--nodes", "1", "--device", "a100_sxm4_80", "--slices"});
  CHECK(json["on_slices"]["by_law"] == 2);
  CHECK(json["on_slices"]["by_share"] == 1);
  CHECK(json["jobs"][0]["end_s"].get<double>() == Approx(10));
  // All of it waits for arithmetic or memory: 7.5 of 1.02 times as long.
  CHECK(json["jobs"][1]["end_s"].get<double>() == Approx(10 * 7.5 / 1.02));
  CHECK(json["jobs"][2]["end_s"].get<double>() == Approx(70));
  const Ran text =
      test::rehearse({"fleet", list, "--nodes", "1", "--device", "a100_sxm4_80", "--slices"});
  CHECK_THAT(text.out, Contains("2 jobs predicted from measured steps, 1 job by the share"));
}

/// A job file of a step that can be said by the command itself.
std::filesystem::path job_file() {
  return test::write_scratch("small.yaml",
                             "workload: {model: alexnet}\n"
                             "training: {global_batch: 64, microbatch: 32, dtype: fp32}\n"
                             "plan: {data: 2}\n"
                             "cluster: {device: v100_sxm2_16, nodes: 2, inter_node: ethernet}\n");
}

TEST_CASE("fleet: work predicted from job files") {
  const std::filesystem::path job = job_file();
  const Ran step = test::rehearse({"simulate", job.string(), "--format", "json"});
  INFO(step.errors);
  REQUIRE(step.code == 0);
  const double step_s = Json::parse(step.out)["step_time"]["value"];
  const std::string list =
      test::write_scratch("predicted.yaml", "jobs:\n  - {job: a, predict: " + job.string() +
                                                ", steps: 1000}\n  - {job: b, predict: " +
                                                job.string() + ", steps: 10, gpus: 1}\n")
          .string();
  const Json json = json_of({"fleet", list, "--nodes", "1"});
  CHECK(json["jobs"][0]["end_s"].get<double>() == Approx(1000 * step_s));
  CHECK(json["jobs"][1]["end_s"].get<double>() == Approx(10 * step_s));
  const auto wrong = [&](const std::string& keys) {
    const Ran ran = test::rehearse(
        {"fleet", test::write_scratch("w.yaml", "jobs: [{job: a, " + keys + "}]\n").string(),
         "--nodes", "1"});
    CHECK(ran.code == 1);
    return ran.errors;
  };
  CHECK_THAT(wrong("gpus: 1"), Contains("duration") && Contains("predict: FILE"));
  CHECK_THAT(wrong("predict: x.yaml"), Contains("steps"));
  CHECK_THAT(wrong("predict: x.yaml, steps: 3"), Contains("x.yaml"));
  CHECK_THAT(wrong("predict: " + job.string() + ", steps: 1, duration: 1 s"),
             Contains("given twice"));
  CHECK_THAT(wrong("predict: " + job.string() + ", steps: 1e14"), Contains("at most 3e8 s"));
}

TEST_CASE("fleet: the host time of a predicted step") {
  const auto ran = [](const std::string& host) {
    const std::string list =
        test::write_scratch("hosted.yaml",
                            "jobs: [{job: a, predict: " + job_file().string() +
                                ", steps: 10, gpus: 1, memory: 3 GiB, host: " + host + "}]\n")
            .string();
    return test::rehearse({"fleet", list, "--nodes", "1", "--device", "a100_sxm4_80", "--slices",
                           "--format", "json"});
  };
  const Ran part = ran("1 us");
  INFO(part.errors);
  REQUIRE(part.code == 0);
  CHECK(Json::parse(part.out)["on_slices"]["by_law"] == 1);
  test::check_failed(ran("1000 s"), 1, "hosted.yaml: jobs[0].host: ");
  test::check_failed(ran("-1 s"), 1, "not part of a step");
}

TEST_CASE("pack: jobs predicted from job files") {
  const std::string job = job_file().string();
  const Json json = test::json_of(
      {"pack",
       test::write_scratch("pp.yaml",
                           "gpus: 2\ndevice: v100_sxm2_16\njobs:\n  - {job: a, predict: " + job +
                               ", steps: 1000}\n  - {job: b, predict: " + job + ", steps: 500}\n")
           .string()});
  for (const Json& placed : json["placements"]) CHECK(placed["gpus"].size() == 2);
  CHECK(json["makespan_alone"]["value"].get<double>() > 0);
  const Ran wrong = test::rehearse(
      {"pack", test::write_scratch("pw.yaml",
                                   "gpus: 2\ndevice: v100_sxm2_16\njobs:\n  - {job: a, "
                                   "predict: nowhere.yaml, steps: 3}\n")
                   .string()});
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.errors, Contains("pw.yaml:4") && Contains("nowhere.yaml"));
}

TEST_CASE("fleet: wrong input is one line each") {
  const auto refused = [](const std::vector<std::string>& arguments, int code) {
    std::vector<std::string> all = {"fleet"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ran ran = test::rehearse(all);
    CHECK(ran.code == code);
    CHECK(ran.out.empty());
    return ran.errors;
  };
  CHECK_THAT(refused({kJobs}, 2), Contains("--nodes"));
  CHECK_THAT(refused({kJobs, "--nodes", "0"}, 2), Contains("--nodes"));
  CHECK_THAT(refused({kJobs, "--nodes", "1", "--policy", "backfil"}, 2),
             Contains("did you mean 'backfill'?"));
  CHECK_THAT(refused({kJobs, "--nodes", "1", "--preempt"}, 2), Contains("--policy shortest"));
  CHECK_THAT(refused({kJobs, "--nodes", "1", "--restart", "2 s"}, 2), Contains("--preempt"));
  CHECK_THAT(refused({kJobs, "--nodes", "1", "--slices"}, 2), Contains("--device"));
  CHECK_THAT(refused({kJobs, "--nodes", "1", "--device", "h100_sxm5_8"}, 1), Contains("h100"));
  CHECK_THAT(refused({kJobs, "--nodes", "1", "--device", "v100_sxm2_16", "--slices"}, 1),
             Contains("has no MIG"));
  CHECK_THAT(
      refused({kJobs, "--nodes", "1", "--policy", "shortest", "--preempt", "--restart", "2"}, 2),
      Contains("has no unit"));
  CHECK_THAT(refused({"nothing.csv", "--nodes", "1"}, 1), Contains("nothing.csv"));
  const std::string empty =
      test::write_scratch("empty.csv", "job,submit_s,duration_s,gpus\n").string();
  CHECK_THAT(refused({empty, "--nodes", "1"}, 1), Contains("contains no job"));
}

}  // namespace
}  // namespace rehearse
