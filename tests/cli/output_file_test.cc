// -o FILE: whole or not there.
#include <cstdlib>
#include <filesystem>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <unistd.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::kExample;
using test::Ran;

TEST_CASE("an output file equals stdout, and no other file remains in its folder") {
  const fs::path folder = test::scratch_folder();
  for (const char* command : {"inspect", "replay"}) {
    const fs::path file = folder / command;
    const Ran to_file =
        test::rehearse({command, kExample, "--format", "json", "-o", file.string()});
    CHECK(to_file.code == 0);
    CHECK(to_file.out.empty());
    CHECK(to_file.errors.empty());
    CHECK(test::text_of(file) == test::rehearse({command, kExample, "--format", "json"}).out);
  }
  CHECK(test::names_in(folder) == std::vector<std::string>{"inspect", "replay"});
}

TEST_CASE("the option --json writes the result next to the text, and the parts of errors") {
  const fs::path file = test::scratch_folder() / "result.json";
  const Ran text = test::rehearse({"replay", kExample, "--json", file.string()});
  CHECK(text.code == 0);
  CHECK(text.out == test::rehearse({"replay", kExample}).out);
  CHECK(test::text_of(file) == test::rehearse({"replay", kExample, "--format", "json"}).out);
  const std::string job =
      test::write_scratch(
          "job.yaml",
          "workload: {model: gpt2}\ntraining: {global_batch: 8}\n"
          "cluster: {instance: p4d.24xlarge, count: 1}\nregion: us-east-1\nplann: {}\n")
          .string();
  const Ran failed = test::rehearse({"simulate", job, "--json", file.string()});
  test::check_failed(failed, 1, "plann");
  const test::Json error = test::Json::parse(test::text_of(file)).at("errors").at(0);
  CHECK(error.at("file") == job);
  CHECK(error.at("line") == 5);
  CHECK(error.at("column") == 1);
  CHECK(error.at("key") == "plann");
  CHECK(failed.errors == "rehearse: " + error.at("message").get<std::string>() + "\n");
  test::check_failed(test::rehearse({"replay", kExample, "--json", kExample}), 1, kExample);
}

TEST_CASE("a failing command does not change the output file") {
  const fs::path file = test::write_scratch("kept", "before");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"import", "no_such_file.json"},
        {"inspect", "no_such_file.json"},
        {"replay", kExample, "--ranks", "7"},
        {"whatif", kExample, "--remove", "kernel=nothing"},
        {"validate", "no_such_folder"}}) {
    std::vector<std::string> with_output = arguments;
    with_output.insert(with_output.end(), {"-o", file.string()});
    INFO(arguments.front());
    CHECK(test::rehearse(with_output).code == 1);
    CHECK(test::text_of(file) == "before");
    CHECK(test::names_in(file.parent_path()) == std::vector<std::string>{"kept"});
  }
}

TEST_CASE("if the output file cannot be written, nothing runs") {
  const fs::path folder = test::scratch_folder();
  const fs::path missing = folder / "missing" / "result";
  test::check_failed(test::rehearse({"replay", kExample, "-o", missing.string()}), 1,
                     missing.string() + ": cannot be written");
  test::check_failed(test::rehearse({"import", kExample, "-o", missing.string()}), 1,
                     missing.string() + ": cannot be written");
  test::check_failed(test::rehearse({"replay", kExample, "--perfetto", missing.string()}), 1,
                     missing.string() + ": cannot be written");
  test::check_failed(test::rehearse({"replay", kExample, "-o", folder.string()}), 1,
                     folder.string() + ": is a folder");
  CHECK(test::names_in(folder).empty());
}

TEST_CASE("a folder that may not be written stays empty") {
  if (::geteuid() == 0) {
    WARN("skipped: everything may be written by the superuser");
    return;
  }
  const fs::path folder = test::scratch_folder();
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  const fs::path file = folder / "result";
  test::check_failed(test::rehearse({"replay", kExample, "-o", file.string()}), 1,
                     file.string() + ": cannot be written");
  CHECK(test::names_in(folder).empty());
  fs::permissions(folder, fs::perms::owner_all);
}

TEST_CASE("a full disk is an error") {
  test::check_failed(test::rehearse({"inspect", kExample, "-o", "/dev/full"}), 1,
                     "/dev/full: cannot be written");
  const fs::path errors = test::scratch_folder() / "errors";
  for (const std::string& words :
       {"inspect " + test::source_file(kExample).string(), std::string("--help")}) {
    const int status = std::system(fmt::format("'{}' {} > /dev/full 2> '{}'",
                                               (test::program_folder() / "rehearse").string(),
                                               words, errors.string())
                                       .c_str());
    CHECK(WEXITSTATUS(status) == 1);
    CHECK(test::text_of(errors) == "rehearse: stdout cannot be written\n");
  }
}

}  // namespace
}  // namespace rehearse
