// The files that a user starts from: those of `rehearse init`, and `-`, which is standard input.
#include <array>
#include <cstdio>
#include <memory>

#include <catch2/catch.hpp>
#include <fmt/ranges.h>

#include "sim/base/text.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::kExample;
using test::Ran;

fs::path written(const std::string& kind) {
  const fs::path file = test::scratch_folder() / (kind + ".yaml");
  const Ran ran = test::rehearse({"init", kind, "-o", file.string()});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  return file;
}

TEST_CASE("init writes files that the matching commands accept unchanged") {
  const std::vector<std::vector<std::string>> commands = {
      {"simulate", written("job").string(), "--fidelity", "closed"},
      {"study", written("study").string()},
      {"inspect", "--cluster", written("cluster").string()},
      {"input", written("pipeline").string()},
      {"check", "--baseline", "examples/recordings/gate_before.json", "--candidate",
       "examples/recordings/gate_again.json", "--budget", written("budget").string()}};
  for (const std::vector<std::string>& command : commands) {
    const Ran ran = test::rehearse(command);
    INFO(command.front() << ": " << ran.errors);
    CHECK(ran.code == 0);
    CHECK(ran.errors.empty());
  }
}

TEST_CASE("init: a job file names each key of a plan, and replaces no file") {
  const fs::path job = written("job");
  CHECK(test::text_of(job).find("  # interleave: 1\n") != std::string::npos);
  test::check_failed(test::rehearse({"init", "job", "-o", job.string()}), 1, "exists");
}

/// What a command of the shell prints.
std::string printed(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"),
                                                             &::pclose);
  REQUIRE(pipe);
  std::string text;
  std::array<char, 4096> block = {};
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe.get()))
    text.append(block.data(), n);
  return text;
}

/// What the program prints with a file on its standard input, which is a pipe.
std::string piped(const std::string& file, const std::string& arguments) {
  return printed(fmt::format("cd '{}' && cat '{}' | '{}/rehearse' {}",
                             test::source_file("").string(), file, test::program_folder().string(),
                             arguments));
}

TEST_CASE("examples in help name the files that were installed") {
  const fs::path prefix = test::scratch_folder() / "usr", jobs = prefix / "share/rehearse/examples";
  fs::create_directories(jobs);
  fs::create_directories(prefix / "bin");
  fs::copy_file(test::program_folder() / "rehearse", prefix / "bin/rehearse");
  const std::string help = fmt::format(
      "cd '{0}' && bin/rehearse help pack && bin/rehearse pack --help", prefix.string());
  const std::string example =
      fmt::format("Example: rehearse pack {}/pack.yaml\n", (jobs / "fleets").string());
  const std::string out = printed(help);
  INFO(out);
  CHECK(out.find(example) == 0);
  CHECK(out.find(example, example.size()) != std::string::npos);
  fs::create_directories(prefix / "examples");
  CHECK(printed(help).find("Example: rehearse pack examples/fleets/pack.yaml\n") == 0);
}

TEST_CASE("an image is built from the sources alone: what git ignores is not copied into it") {
  const std::string ignored = "\n" + test::text_of(test::source_file(".dockerignore"));
  const std::string by_git = test::text_of(test::source_file(".gitignore"));
  for (const std::string_view line : split(trim(by_git), '\n'))
    CHECK((ignored.find(fmt::format("\n{}\n", line)) != std::string::npos ||
           ignored.find(fmt::format("\n**/{}\n", line)) != std::string::npos));
}

TEST_CASE("standard input is -: of a job, and of a recording") {
  const std::string job = "examples/jobs/gpt_175b.yaml";
  CHECK(piped(job, "simulate - --fidelity closed") ==
        test::rehearse({"simulate", job, "--fidelity", "closed"}).out);
  CHECK(piped(kExample, "inspect - --format csv") ==
        test::rehearse({"inspect", kExample, "--format", "csv"}).out);
  // SQLite opens files by their names, and this one has none.
  const std::string store = test::scratch_folder() / "three_steps.rehearse";
  REQUIRE(test::rehearse({"import", kExample, "-o", store}).code == 0);
  CHECK(piped(store, "replay - --format csv") ==
        test::rehearse({"replay", kExample, "--format", "csv"}).out);
  const std::string rows = test::write_scratch(
      "rows.csv", "device,op,ranks,size_bytes,time_us\na100_sxm4_80,all_reduce,8,1e9,8000\n");
  CHECK(piped(rows, "validate - --format csv").find("-:2,us,8000") != std::string::npos);
}

TEST_CASE(
    "standard input is -: as the value of an option, and where either kind of file may follow") {
  const std::string cluster = "examples/clusters/dgx_h100_x4.yaml";
  CHECK(piped(cluster, "network --cluster - --op all_reduce --sizes 1MiB --format csv") ==
        test::rehearse({"network", "--cluster", cluster, "--op", "all_reduce", "--sizes", "1MiB",
                        "--format", "csv"})
            .out);
  const std::string before = "examples/recordings/gate_before.json";
  const std::vector<std::string> check = {"check",    "--candidate", kExample,
                                          "--format", "csv",         "--baseline"};
  std::vector<std::string> by_name = check;
  by_name.push_back(before);
  CHECK(piped(before, fmt::format("{} -", fmt::join(check, " "))) == test::rehearse(by_name).out);
  test::check_failed(test::rehearse({"check", "--baseline", "-", "--candidate", "-"}), 2, "twice");
  for (const char* written : {"--json", "--output", "--report"})
    test::check_failed(test::rehearse({"catalog", "gpus", written, "-"}), 2, "--format json");
}

}  // namespace
}  // namespace rehearse
