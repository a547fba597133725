// Commands of many seconds show the share that is done and the remaining time, also into a pipe.
#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Ran;

Ran with_progress(std::vector<std::string> command) {
  command.insert(command.end(), {"--progress", "-o", "/dev/null"});
  const Ran ran = test::rehearse(std::move(command));
  INFO(ran.errors);
  CHECK(ran.code == 0);
  return ran;
}

TEST_CASE("progress: a long list of jobs") {
  std::string jobs = "job,submit_s,duration_s,gpus\n";
  for (int job = 0; job < 200'000; ++job)
    jobs += fmt::format("j{0},{1},{2},{3}\n", job, job / 2, 1 + job % 17, 1 + job % 4);
  const std::string file = test::write_scratch("jobs.csv", jobs).string();
  const Ran ran = with_progress({"fleet", file, "--nodes", "2", "--policy", "backfill"});
  CHECK_THAT(ran.errors, Contains("fleet: ") || Contains("running jobs: "));
  CHECK(test::rehearse({"fleet", file, "--nodes", "2", "-o", "/dev/null"}).errors.empty());
}

TEST_CASE("progress: a run of all ranks") {
  const Ran ran =
      with_progress({"simulate", "--model", "llama3_8b", "--gpus", "64", "--device", "h100_sxm5_80",
                     "--plan", "tp8,pp2", "--batch", "1024", "--unfold"});
  CHECK_THAT(ran.errors, Contains("simulating: ") && Contains(" s left"));
}

TEST_CASE("progress: a search names its phases, and its line is gone before anything is printed") {
  const Ran ran = with_progress({"plan", "--model", "llama3_8b", "--gpus", "64", "--device",
                                 "h100_sxm5_80", "--batch", "512", "--threads", "1"});
  CHECK_THAT(ran.errors, Contains("running the "));
  const std::size_t answer = ran.errors.find("by closed forms the best plan is");
  REQUIRE(answer != std::string::npos);
  if (answer > 0) CHECK(ran.errors.substr(0, answer).ends_with("\r\033[K"));
}

}  // namespace
}  // namespace rehearse
