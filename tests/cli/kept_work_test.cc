// recommend, validate and fleet: what a killed run found is not found again.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Ran;

/// Runs the command as a whole; then kills it once the log of its journal has this size, and runs it
/// again. Returns what the killed run left to be resumed.
int check_resumes(const std::vector<std::string>& command, std::uintmax_t killed_at) {
  const fs::path folder = test::scratch_folder();
  const fs::path whole = folder / "whole.json", result = folder / "result.json";
  const auto to = [&](const fs::path& file) {
    std::vector<std::string> all = command;
    all.insert(all.end(), {"--quiet", "--format", "json", "-o", file.string()});
    return all;
  };
  const Ran first = test::rehearse(to(whole));
  INFO(first.errors);
  REQUIRE(first.code == 0);
  const fs::path journal = result.string() + ".journal", log = journal.string() + "-wal";
  test::RunningRehearse running(to(result));
  std::error_code absent;
  while (!running.ended() && (!fs::exists(log) || fs::file_size(log, absent) < killed_at))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.signal(SIGKILL);
  REQUIRE(running.wait().code == 128 + SIGKILL);
  CHECK_FALSE(fs::exists(result));
  REQUIRE(fs::exists(journal));

  std::vector<std::string> again = to(result);
  std::erase(again, "--quiet");
  const Ran second = test::rehearse(again);
  INFO(second.errors);
  CHECK(second.code == 0);
  int held = 0;
  CHECK(std::sscanf(second.errors.c_str(), "rehearse: resuming with %d result", &held) == 1);
  CHECK(test::text_of(result) == test::text_of(whole));
  // The journal is removed once the result exists.
  CHECK(test::names_in(folder) == std::vector<std::string>{"result.json", "whole.json"});
  return held;
}

TEST_CASE("recommend: a killed search resumes, for a job and for a server") {
  CHECK(check_resumes({"recommend", "examples/jobs/mpt_7b_rent.yaml", "--provider", "aws",
                       "--counts", "1,2,4", "--deadline", "300 days"},
                      60'000) > 1);
  CHECK(check_resumes({"recommend", "examples/jobs/serve_llama3_8b_search.yaml", "--provider",
                       "lambda", "--counts", "1"},
                      30'000) > 1);
}

TEST_CASE("recommend: a journal belongs to the job, and serves other wishes") {
  const std::string journal = (test::scratch_folder() / "kept").string();
  const auto run = [&](const std::string& job, const std::string& deadline) {
    return test::rehearse({"recommend", job, "--provider", "lambda", "--counts", "1", "--deadline",
                           deadline, "--journal", journal});
  };
  const std::string job = test::source_file("examples/jobs/mpt_7b_rent.yaml").string();
  const Ran hasty = run(job, "1 s"), patient = run(job, "300 days");
  CHECK(hasty.code == 1);
  CHECK(hasty.errors.find("nothing meets the deadline") != std::string::npos);
  CHECK(patient.code == 0);
  CHECK(patient.errors.starts_with("rehearse: resuming with "));
  const std::string other = test::write_scratch("job.yaml", test::text_of(job) + "\n# other\n");
  test::check_failed(run(other, "300 days"), 1, "belongs to other inputs");
}

/// Jobs of some tens of milliseconds each.
std::string job_with_batch(int batch) {
  return fmt::format(
      "workload: {{model: gpt, hidden: 1024, layers: 12, heads: 16, sequence: 1024, "
      "vocabulary: 51200}}\n"
      "training: {{global_batch: {}, microbatch: 1, dtype: bf16, optimizer: adam}}\n"
      "plan: {{tensor: 2, pipeline: 2, data: 2}}\n"
      "cluster: {{device: a100_sxm4_80, devices_per_node: 4, nodes: 2, intra_node: nvswitch, "
      "inter_node: {{links: 4, rate: 200 Gbit/s, latency: 5 us}}}}\n",
      batch);
}

TEST_CASE("fleet: a killed run resumes with the jobs that it predicted") {
  std::string jobs = "jobs:\n";
  fs::path folder;
  for (int batch = 8; batch <= 240; batch += 8) {
    const std::string name = fmt::format("job{}.yaml", batch);
    if (folder.empty()) folder = test::write_scratch(name, job_with_batch(batch)).parent_path();
    test::write_file(folder / name, job_with_batch(batch));
    jobs += fmt::format("  - {{job: j{}, predict: {}, steps: 100}}\n", batch, name);
  }
  test::write_file(folder / "jobs.yaml", jobs);
  const int held =
      check_resumes({"fleet", (folder / "jobs.yaml").string(), "--nodes", "2"}, 20'000);
  CHECK(held > 0);
  CHECK(held < 30);
}

TEST_CASE("validate: a killed run resumes with the rows that it predicted") {
  std::string rows =
      "name,workload.model,workload.sequence,training.global_batch,plan.tensor,plan.data,"
      "cluster.device,cluster.devices_per_node,cluster.nodes,cluster.intra_node,step_s\n";
  for (int row = 1; row <= 240; ++row)
    rows += fmt::format("row {0},gpt2_small,1024,{1},2,4,h100_sxm5_80,8,1,nvswitch,0.5\n", row,
                        row * 4);
  const fs::path file = test::write_scratch("jobs.csv", rows);
  // A recording is one item more.
  fs::copy_file(test::source_file(test::kExample), file.parent_path() / "three_steps.json");
  const int held = check_resumes({"validate", file.parent_path().string()}, 60'000);
  CHECK(held > 0);
  CHECK(held < 31);
}

}  // namespace
}  // namespace rehearse
