// Lists of jobs, and what is wrong with them.
#include "sim/fleet/job_list.h"

#include <catch2/catch.hpp>

namespace rehearse {
namespace {

using namespace fleet;
using Catch::Contains;

JobList csv(std::string_view text) {
  Result<JobList> list = parse_jobs_csv(text, "jobs.csv");
  INFO((list ? "" : to_string(list.error())));
  REQUIRE(list);
  return std::move(*list);
}

std::string csv_error(std::string_view text) {
  const Result<JobList> list = parse_jobs_csv(text, "jobs.csv");
  REQUIRE_FALSE(list);
  return to_string(list.error());
}

std::string yaml_error(const std::string& text) {
  const Result<JobList> list = parse_jobs_yaml(text, "jobs.yaml");
  REQUIRE_FALSE(list);
  return to_string(list.error());
}

TEST_CASE("a table of jobs") {
  const JobList list =
      csv("job,user,submit_s,duration_s,gpus,memory_gib\n"
          "a,ann,0,1.5,8,40\n"
          "b,,2.25,60,1,\n");
  REQUIRE(list.jobs.size() == 2);
  CHECK(list.jobs[0].name == "a");
  CHECK(list.jobs[0].user == "ann");
  CHECK(list.jobs[0].work == Nanoseconds(1'500'000'000));
  CHECK(list.jobs[0].gpus == 8);
  CHECK(list.jobs[0].memory == Bytes::gib(40));
  CHECK(list.jobs[1].submit == Nanoseconds(2'250'000'000));
  CHECK_FALSE(list.jobs[1].memory);
}

TEST_CASE("columns without a use, and missing ones, are named") {
  CHECK_THAT(csv_error("job,submit_s,duration,gpus\n"), Contains("duration_s"));
  CHECK_THAT(csv_error("job,submit_s,duration_s,gpus,memory_gb\na,0,1,1,2\n"),
             Contains("jobs.csv:1: memory_gb: unknown column; did you mean 'memory_gib'"));
}

TEST_CASE("every wrong cell is reported, with its line and column") {
  const std::string error = csv_error(
      "job,submit_s,duration_s,gpus\n"
      "a,soon,10,1\n"
      ",0,10,1\n"
      "c,0,,1\n"
      "d,0,10,0\n"
      "e,0,-1,1\n"
      "f,0,1e30,1.5\n"
      "g,0,10,00\n");
  CHECK_THAT(error, Contains("jobs.csv:2") && Contains("submit_s"));
  CHECK_THAT(error, Contains("jobs.csv:3") && Contains("job"));
  CHECK_THAT(error, Contains("jobs.csv:4") && Contains("duration_s: is empty"));
  CHECK_THAT(error, Contains("jobs.csv:5") && Contains("gpus: is 0"));
  CHECK_THAT(error, Contains("jobs.csv:6"));
  CHECK_THAT(error, Contains("jobs.csv:7") && Contains("1e30 s is too long; at most 3e+08 s"));
  CHECK_THAT(error, Contains("jobs.csv:8") && Contains("gpus: is 0"));
}

TEST_CASE("a list in YAML") {
  const Result<JobList> list = parse_jobs_yaml(
      "jobs:\n"
      "  - {job: a, user: ann, submit: 2 s, duration: 90 min, gpus: 4, memory: 20 GiB}\n"
      "  - {job: b, duration: 10 ms}\n",
      "jobs.yaml");
  INFO((list ? "" : to_string(list.error())));
  REQUIRE(list);
  CHECK(list->jobs[0].work == Nanoseconds(5'400'000'000'000));
  CHECK(list->jobs[0].submit == Nanoseconds(2'000'000'000));
  CHECK(list->jobs[0].memory == Bytes::gib(20));
  CHECK(list->jobs[1].gpus == 1);
  CHECK(list->jobs[1].submit == Nanoseconds(0));
}

TEST_CASE("mistakes of a list in YAML") {
  CHECK_THAT(yaml_error("job: a\n"), Contains("jobs"));
  const std::string error =
      yaml_error("jobs:\n  - {job: a, duration: 90, gpu: 4}\n  - {duration: 1 s, gpus: 0}\n");
  CHECK_THAT(error, Contains("jobs.yaml:2") && Contains("duration") && Contains("gpu") &&
                        Contains("gpus"));
  CHECK_THAT(error, Contains("jobs.yaml:3"));
}

TEST_CASE("a step and the host's part of it") {
  const JobList list = csv(
      "job,submit_s,duration_s,gpus,memory_gib,step_ms,host_ms\na,0,10,1,3,10.5,2\nb,0,10,1,,,\n");
  CHECK(list.jobs[0].step->ms() == Approx(10.5));
  CHECK(list.jobs[0].host->ms() == Approx(2));
  CHECK_FALSE(list.jobs[1].step);
  const std::string head = "job,submit_s,duration_s,gpus,step_ms,host_ms\n";
  CHECK_THAT(csv_error(head + "a,0,10,1,0,\n"), Contains("is not a step"));
  CHECK_THAT(csv_error(head + "a,0,10,1,1,2\n"), Contains("not part of a step"));
  CHECK_THAT(csv_error(head + "a,0,10,1,,2\n"), Contains("not part of a step"));
}

}  // namespace
}  // namespace rehearse
