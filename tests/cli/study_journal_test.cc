// study: what a killed run found is not found again, and ranks of mpirun find what one process
// does.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/ranks_run.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Ran;

/// Points of a millisecond or two each.
fs::path long_study(int points) {
  std::string batches;
  for (int i = 1; i <= points; ++i) batches += fmt::format("{}{}", i == 1 ? "" : ", ", i);
  return test::write_scratch("long.yaml",
                             "name: long\nsource: made up\nsource_kind: none\n"
                             "sweep:\n  batch: [" +
                                 batches +
                                 "]\n"
                                 "jobs:\n"
                                 "  served:\n"
                                 "    workload: {model: vgg19}\n"
                                 "    training: {global_batch: $(batch * 8), microbatch: $batch, "
                                 "dtype: fp32}\n"
                                 "    plan: {data: 8}\n"
                                 "    cluster: {device: v100_sxm2_16, nodes: 8, "
                                 "inter_node: ethernet}\n"
                                 "measure: {rate: throughput(served)}\n"
                                 "expect: {measure: rate, range: [1, 1e6], sweep: within}\n");
}

TEST_CASE("study: a killed run resumes with its results, and gives the same result") {
  const fs::path study = long_study(400), folder = test::scratch_folder();
  const fs::path whole = folder / "whole.json", result = folder / "result.json";
  REQUIRE(
      test::rehearse({"study", study.string(), "--format", "json", "-o", whole.string()}).code ==
      0);
  // The default journal is in the folder of the result, and is removed once the result exists.
  CHECK(test::names_in(folder) == std::vector<std::string>{"whole.json"});

  const fs::path journal = result.string() + ".journal", log = journal.string() + "-wal";
  test::RunningRehearse running(
      {"study", study.string(), "--format", "json", "--threads", "1", "-o", result.string()});
  std::error_code absent;
  while (!running.ended() && (!fs::exists(log) || fs::file_size(log, absent) < 100'000))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.signal(SIGKILL);
  REQUIRE(running.wait().code == 128 + SIGKILL);
  CHECK_FALSE(fs::exists(result));
  REQUIRE(fs::exists(journal));

  // Another study would not go on from it.
  const std::string other = long_study(401).string();
  const Ran refused = test::rehearse({"study", other, "--format", "json", "-o", result.string()});
  test::check_failed(refused, 1,
                     journal.string() +
                         ": belongs to other inputs, other options or another build of the "
                         "program (study long); the inputs, options and build that started it; "
                         "remove it to start again, or name another file with --journal");

  const Ran again =
      test::rehearse({"study", study.string(), "--format", "json", "-o", result.string()});
  CHECK(again.code == 0);
  int held = 0;
  INFO(again.errors);
  REQUIRE(std::sscanf(again.errors.c_str(), "rehearse: resuming with %d results from ", &held) ==
          1);
  CHECK(held > 10);
  CHECK(held < 400);
  CHECK(test::text_of(result) == test::text_of(whole));
  CHECK(test::names_in(folder) == std::vector<std::string>{"result.json", "whole.json"});
}

// The file descriptors of the journal, of its log and of the unfinished result are watched, so that
// points between two parts of one commit are among them.
TEST_CASE("study: a run killed at any of its writes resumes, and gives the same bytes") {
  const fs::path study = long_study(5), folder = test::scratch_folder();
  const fs::path whole = folder / "whole.json", result = folder / "result.json";
  const auto run = [&](const fs::path& to, int at) {
    return test::RunningRehearse(
               {"study", study.string(), "--format", "json", "--threads", "1", "-o", to.string()},
               {{"LD_PRELOAD", REHEARSE_KILL_AT_WRITE},
                {"KILL_IN", folder.string()},
                {"KILL_AT", std::to_string(at)}})
        .wait();
  };
  REQUIRE(run(whole, 0).code == 0);
  int killed = 0, resumed = 0;
  for (bool ended = false; !ended; ++killed) {
    REQUIRE(killed < 1000);
    INFO("write " << killed + 1);
    const Ran first = run(result, killed + 1);
    ended = first.code == 0;
    if (ended) break;
    REQUIRE(first.code == 128 + SIGKILL);
    // The last writes are of the journal, which is removed after the result is complete.
    if (fs::exists(result)) CHECK(test::text_of(result) == test::text_of(whole));
    const Ran second = run(result, 0);
    INFO(second.errors);
    REQUIRE(second.code == 0);
    resumed += second.errors.starts_with("rehearse: resuming with");
    CHECK(test::text_of(result) == test::text_of(whole));
    fs::remove(result);
  }
  // Each of 5 results is a commit of two writes at least.
  CHECK(killed > 10);
  CHECK(resumed >= 5);
  CHECK(resumed < killed);
}

TEST_CASE("study: a requested journal remains, and answers at once") {
  const fs::path study = long_study(30), journal = test::scratch_folder() / "kept";
  const std::vector<std::string> command = {"study", study.string(), "--journal", journal.string()};
  const Ran first = test::rehearse(command), second = test::rehearse(command);
  CHECK(first.code == 0);
  CHECK(first.errors.empty());
  CHECK(second.errors ==
        fmt::format("rehearse: resuming with 30 results from {}\n", journal.string()));
  CHECK(second.out == first.out);
  // A file that the study names is a part of what it is.
  test::write_file(study.parent_path() / "costs.csv", "a");
  std::string text = test::text_of(study);
  text.replace(text.find("made up"), 7, "costs.csv");
  test::write_file(study, text);
  test::check_failed(test::rehearse(command), 1, "belongs to other inputs");
  fs::remove(journal);
  CHECK(test::rehearse(command).code == 0);
  CHECK(test::rehearse(command).code == 0);
  test::write_file(study.parent_path() / "costs.csv", "b");
  test::check_failed(test::rehearse(command), 1, "belongs to other inputs");
}

TEST_CASE("study: ranks find what one process finds, byte for byte, and one of them prints") {
  SKIP_WITHOUT_MPI();
  const fs::path study = long_study(60);
  const Ran alone = test::rehearse({"study", study.string(), "--format", "json"});
  REQUIRE(alone.code == 0);
  for (const int ranks : {1, 2, 4}) {
    const Ran ran = test::rehearse_on_ranks(ranks, "study " + study.string() + " --format json");
    INFO(ran.errors);
    CHECK(ran.code == 0);
    CHECK(ran.errors.empty());
    CHECK(ran.out == alone.out);
  }
  // An input that is wrong is said once.
  test::write_file(study, "name: wrong\n");
  const Ran wrong = test::rehearse_on_ranks(3, "study " + study.string());
  CHECK(wrong.code == 1);
  CHECK(wrong.out.empty());
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = wrong.errors.find("source: is missing", at)) != std::string::npos;
       ++at)
    ++lines;
  CHECK(lines == 1);
}

}  // namespace
}  // namespace rehearse
