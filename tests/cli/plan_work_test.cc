// plan: a killed search goes on from its journal, and ranks of mpirun find what one process does.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/data.h"
#include "tests/support/ranks_run.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using test::Ran;

/// A space of some thousand plans.
fs::path job_path() {
  return test::write_scratch(
      "job.yaml",
      "workload: {model: gpt, hidden: 1024, layers: 12, heads: 16, sequence: 1024, "
      "vocabulary: 51200}\n"
      "training: {global_batch: 32, microbatch: 1, dtype: bf16, optimizer: adam}\n"
      "cluster: {device: a100_sxm4_80, devices_per_node: 4, nodes: 2, intra_node: nvswitch, "
      "inter_node: {links: 4, rate: 200 Gbit/s, latency: 5 us}}\n");
}

/// The result without what depends on how quick the machine is.
std::string without_rates(const std::string& result) {
  Json json = Json::parse(result);
  CHECK(json.erase("candidates_per_s") == 1);
  CHECK(json.erase("evaluated_per_s") == 1);
  return json.dump();
}

TEST_CASE("plan: a killed search resumes and finds the same") {
  const std::string file = job_path().string();
  const std::vector<std::string> command = {"plan", file, "--format", "json"};
  const Ran whole = test::rehearse(command);
  INFO(whole.errors);
  REQUIRE(whole.code == 0);
  const fs::path folder = test::scratch_folder();
  const fs::path result = folder / "plans.json", journal = result.string() + ".journal";
  const fs::path log = journal.string() + "-wal";
  std::vector<std::string> kept = command;
  kept.insert(kept.end(), {"-o", result.string()});
  test::RunningRehearse running(kept);
  std::error_code absent;
  while (!running.ended() && (!fs::exists(log) || fs::file_size(log, absent) < 200'000))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.signal(SIGKILL);
  REQUIRE(running.wait().code == 128 + SIGKILL);
  REQUIRE(fs::exists(journal));

  std::vector<std::string> other = kept;
  other.insert(other.end(), {"--within", "memory=60 GiB"});
  test::check_failed(test::rehearse(other), 1,
                     "belongs to other inputs, other options or another build of the program "
                     "(plans of " +
                         file + ")");

  const Ran again = test::rehearse(kept);
  CHECK(again.code == 0);
  CHECK(again.errors.starts_with("rehearse: resuming with "));
  CHECK(without_rates(test::text_of(result)) == without_rates(whole.out));
  CHECK(test::names_in(folder) == std::vector<std::string>{"plans.json"});
}

TEST_CASE("plan: ranks find what one process finds") {
  SKIP_WITHOUT_MPI();
  const std::string file = job_path().string();
  const Ran alone = test::rehearse({"plan", file, "--format", "json", "--fidelity", "closed"});
  REQUIRE(alone.code == 0);
  for (const int ranks : {2, 4}) {
    const Ran ran =
        test::rehearse_on_ranks(ranks, "plan " + file + " --format json --fidelity closed");
    INFO(ran.errors);
    CHECK(ran.code == 0);
    CHECK(ran.errors == alone.errors);
    CHECK(without_rates(ran.out) == without_rates(alone.out));
  }
  const Ran wrong = test::rehearse_on_ranks(2, "plan " + file + " --within 'memory=1 MiB'");
  CHECK(wrong.code == 1);
  CHECK(wrong.out.empty());
  CHECK(wrong.errors.find("rehearse: ") != std::string::npos);
  CHECK(wrong.errors.find("rehearse: ") == wrong.errors.rfind("rehearse: "));
}

}  // namespace
}  // namespace rehearse
