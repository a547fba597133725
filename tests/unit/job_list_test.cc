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
  CHECK(list.layout == "jobs");
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
      "f,0,1e30,1.5\n");
  CHECK_THAT(error, Contains("jobs.csv:2") && Contains("submit_s"));
  CHECK_THAT(error, Contains("jobs.csv:3") && Contains("job"));
  CHECK_THAT(error, Contains("jobs.csv:4") && Contains("duration_s: is empty"));
  CHECK_THAT(error, Contains("jobs.csv:5") && Contains("gpus: is 0"));
  CHECK_THAT(error, Contains("jobs.csv:6"));
  CHECK_THAT(error, Contains("jobs.csv:7") && Contains("too far away"));
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

TEST_CASE("Helios: dates, and jobs without GPUs are left out") {
  const JobList list = csv(
      "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
      "queue\n"
      "7,u1,v1,1,1,1,COMPLETED,2020-02-29 23:59:59,2020-03-01 00:00:00,2020-03-01 00:01:00,60,1\n"
      "8,u1,v1,0,4,1,FAILED,2020-03-01 00:00:00,2020-03-01 00:00:00,2020-03-01 00:01:00,60,0\n"
      "9,u2,v1,16,4,2,CANCELLED,2020-03-01 00:00:09,2020-03-01 00:00:09,2020-03-01 00:00:10,1,0\n");
  CHECK(list.layout == "helios");
  CHECK(list.left_out == 1);
  REQUIRE(list.jobs.size() == 2);
  CHECK(list.jobs[0].submit == Nanoseconds(0));
  CHECK(list.jobs[1].submit == Nanoseconds(10'000'000'000));
  CHECK(list.jobs[1].gpus == 16);
  CHECK(list.jobs[1].user == "u2");
  CHECK_THAT(csv_error("job_id,user,vc,gpu_num,submit_time,duration\n7,u,v,1,2020-13-01 "
                       "00:00:00,5\n"),
             Contains("jobs.csv:2") && Contains("2020-06-09 18:41:01"));
}

TEST_CASE("openb: who was never scheduled is left out") {
  const JobList list =
      csv("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
          "deletion_time,scheduled_time\n"
          "p1,1,1,8,1000,,LS,Succeeded,100,300,150\n"
          "p2,1,1,1,500,,LS,Pending,100,300,\n"
          "p3,1,1,0,0,,LS,Running,100,300,100\n");
  CHECK(list.layout == "openb");
  CHECK(list.left_out == 2);
  REQUIRE(list.jobs.size() == 1);
  CHECK(list.jobs[0].work == Nanoseconds(150'000'000'000));
}

TEST_CASE("traces of spot GPUs and of Tiresias") {
  const JobList spot =
      csv("job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
          "job_type\n"
          "1,13,A10,20,2,16,5,60,HP\n");
  CHECK(spot.layout == "alibaba-spot");
  CHECK(spot.jobs.at(0).gpus == 32);
  CHECK(spot.jobs[0].user == "13");
  const JobList tiresias =
      csv("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
          "1,4,10,0,vgg,600,0\n"
          "2,1,30,0,vgg,60,0\n");
  CHECK(tiresias.layout == "tiresias");
  CHECK(tiresias.jobs.at(1).submit == Nanoseconds(20'000'000'000));
}

TEST_CASE("dates") {
  CHECK(parse_date("1970-01-01 00:00:00") == 0);
  CHECK(parse_date("2000-03-01 12:00:01") == 951'912'001);
  CHECK(parse_date("2020-06-09 18:41:01") == 1'591'728'061);
  CHECK_FALSE(parse_date("2020-06-09"));
  CHECK_FALSE(parse_date("2020-06-09T18:41:01"));
  CHECK_FALSE(parse_date("2020-00-09 18:41:01"));
}

}  // namespace
}  // namespace rehearse
