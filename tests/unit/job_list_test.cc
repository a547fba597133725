// Lists of jobs, and what is wrong with them.
#include "sim/fleet/job_list.h"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "sim/fleet/public_traces.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

using namespace fleet;
using Catch::Contains;

std::filesystem::path written(const std::string& name, const std::string& text) {
  static const std::filesystem::path kFolder = test::scratch_folder();
  const std::filesystem::path path = kFolder / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
  return path;
}

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

// In the layout of the README of msr-fiddle/philly-traces.
constexpr const char* kPhilly = R"([
  {"status": "Pass", "vc": "v1", "jobid": "application_1", "user": "u1",
   "submitted_time": "2017-10-07 01:11:39",
   "attempts": [
     {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:13:00",
      "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}]},
     {"start_time": "2017-10-07 01:20:00", "end_time": "2017-10-07 01:25:00",
      "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu7"]}]},
     {"start_time": "2017-10-07 02:00:00", "end_time": null,
      "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
  {"status": "Killed", "vc": "v1", "jobid": "application_2", "user": "u2",
   "submitted_time": "2017-10-07 01:11:49", "attempts": []},
  {"status": "Failed", "vc": "v1", "jobid": "application_3", "user": "u2",
   "submitted_time": "2017-10-07 01:12:39",
   "attempts": [{"start_time": "None", "end_time": "None", "detail": []}]},
  {"status": "Pass", "vc": "v2", "jobid": "application_4", "user": "u2",
   "submitted_time": "2017-10-07 01:11:49",
   "attempts": [{"start_time": "2017-10-07 01:11:50", "end_time": "2017-10-07 01:12:50",
                 "detail": [{"ip": "m9", "gpus": ["gpu3"]}]}]}]
)";

TEST_CASE("Philly: a job's work is the time of its attempts, its GPUs the most of them") {
  const auto list = fleet::parse_philly(kPhilly, "log");
  INFO((list ? "" : to_string(list.error())));
  REQUIRE(list);
  CHECK(list->layout == "philly");
  CHECK(list->left_out == 2);
  REQUIRE(list->jobs.size() == 2);
  CHECK(list->jobs[0].name == "application_1");
  CHECK(list->jobs[0].user == "u1");
  CHECK(list->jobs[0].gpus == 3);
  CHECK(list->jobs[0].submit == Nanoseconds(0));
  CHECK(list->jobs[0].work == Nanoseconds(360'000'000'000));
  CHECK(list->jobs[1].submit == Nanoseconds(10'000'000'000));
  CHECK(list->jobs[1].gpus == 1);
  // A file without an extension is known by what it holds.
  const auto loaded = fleet::load_jobs(written("cluster_job_log", kPhilly));
  REQUIRE(loaded);
  CHECK(loaded->layout == "philly");
}

TEST_CASE("Philly: mistakes are one line") {
  const auto error = [](const std::string& text) {
    const auto list = fleet::parse_philly(text, "log");
    REQUIRE_FALSE(list);
    return to_string(list.error());
  };
  CHECK_THAT(error("[{"), Contains("log") && Contains("is not JSON array"));
  CHECK_THAT(error("{}"), Contains("is not JSON array"));
  CHECK_THAT(error("[3]"), Contains("[0]") && Contains("is not a job"));
  CHECK_THAT(error("[{\"vc\": \"v\"}]"), Contains("[0].jobid") && Contains("is missing"));
  CHECK_THAT(error("[{\"jobid\": \"a\"}]"), Contains("[0].attempts"));
  CHECK_THAT(error("[{\"jobid\": \"a\", \"submitted_time\": \"soon\", \"attempts\": []}]"),
             Contains("submitted_time") && Contains("'soon' is no time"));
  CHECK_THAT(error("[{\"jobid\": \"a\", \"attempts\": [{\"start_time\": \"x\"}]}]"),
             Contains("[0].attempts[0].start_time"));
}

// In the layout of the README of alibaba/clusterdata, cluster-trace-gpu-v2020: no heading.
constexpr const char* kPaiJobs =
    "j1,i1,u1,Terminated,100.0,400.0\n"
    "j2,i2,u2,Terminated,130.0,200.0\n"
    "j3,i3,u2,Running,140.0,\n"
    "j4,i4,u2,Failed,150.0,160.0\n";
constexpr const char* kPaiTasks =
    "j1,ps,1.0,Terminated,105.0,405.0,600.0,29.3,0.0,\n"
    "j1,worker,2.0,Terminated,110.0,390.0,400.0,29.3,50.0,MISC\n"
    "j1,chief,1.0,Terminated,120.0,400.0,400.0,29.3,200.0,V100\n"
    "j2,tensorflow,1.0,Terminated,140.0,200.0,600.0,29.3,100.0,T4\n"
    "j3,tensorflow,1.0,Running,150.0,,600.0,29.3,100.0,T4\n"
    "j4,xlearn,3.0,Failed,150.0,160.0,600.0,29.3,,CPU\n";

TEST_CASE("PAI 2020: jobs and their tasks are joined") {
  for (const bool headed : {false, true}) {
    const std::string jobs =
        std::string(headed ? "job_name,inst_id,user,status,start_time,end_time\n" : "") + kPaiJobs;
    const auto list = fleet::parse_pai(jobs, "jobs", kPaiTasks, "tasks");
    INFO((list ? "" : to_string(list.error())));
    REQUIRE(list);
    CHECK(list->layout == "pai-2020");
    CHECK(list->left_out == 2);  // one that still runs, one without GPUs
    REQUIRE(list->jobs.size() == 2);
    // Two workers of half a GPU hold one each, and the chief two; parameter servers hold none.
    CHECK(list->jobs[0].gpus == 4);
    CHECK(list->jobs[0].work == Nanoseconds(290'000'000'000));
    CHECK(list->jobs[0].user == "u1");
    CHECK(list->jobs[1].submit == Nanoseconds(30'000'000'000));
  }
  // Either file of the folder stands for both.
  const auto path = written("pai/pai_job_table.csv", kPaiJobs);
  CHECK_THAT(to_string(fleet::load_jobs(path).error()), Contains("pai_task_table.csv"));
  written("pai/pai_task_table.csv", kPaiTasks);
  CHECK(fleet::load_jobs(path)->jobs.size() == 2);
  CHECK(fleet::load_jobs(path.parent_path() / "pai_task_table.csv")->jobs.size() == 2);
}

TEST_CASE("PAI 2020: mistakes stand at their lines") {
  const auto error = [](const char* jobs, const char* tasks) {
    const auto list = fleet::parse_pai(jobs, "jobs", tasks, "tasks");
    REQUIRE_FALSE(list);
    return to_string(list.error());
  };
  CHECK_THAT(error(kPaiJobs, "j1,a,1.0,T,1,2,1,1,100,X\nj1,a,1.5,T,1,2,1,1,100,X\n"),
             Contains("tasks:2") && Contains("whole number"));
  CHECK_THAT(error("j1,i,u,T,soon,2\n", "j1,a,1.0,T,1,2,1,1,100,X\n"), Contains("jobs:1"));
  CHECK_THAT(error("j1,i,u\n", kPaiTasks), Contains("jobs:1"));
}

TEST_CASE("a step and the host's part of it") {
  const JobList list = csv(
      "job,submit_s,duration_s,gpus,memory_gib,step_ms,host_ms\na,0,10,1,3,10.5,2\nb,0,10,1,,,\n");
  CHECK(list.jobs[0].step->ms() == Approx(10.5));
  CHECK(list.jobs[0].host->ms() == Approx(2));
  CHECK_FALSE(list.jobs[1].step);
  const std::string head = "job,submit_s,duration_s,gpus,step_ms,host_ms\n";
  CHECK_THAT(csv_error(head + "a,0,10,1,0,\n"), Contains("is not a step"));
  CHECK_THAT(csv_error(head + "a,0,10,1,1,2\n"), Contains("no part of a step"));
  CHECK_THAT(csv_error(head + "a,0,10,1,,2\n"), Contains("no part of a step"));
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
