// The same command gives the same bytes, and a store gives what its recordings give.
#include <filesystem>

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::kExample;
using test::Ran;

const std::vector<std::vector<std::string>> kCommands = {
    {"inspect", kExample},
    {"replay", kExample},
    {"whatif", kExample, "--scale", "gpu:2", "--insert", "kernel:5 us"},
    {"check", "--baseline", "examples/recordings/gate_before.json", "--candidate",
     "examples/recordings/gate_again.json"},
    {"validate", "examples/recordings"},
};

TEST_CASE("the same command gives the same bytes") {
  for (const std::vector<std::string>& command : kCommands)
    for (const char* format : {"table", "json", "csv", "markdown"}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"--format", format});
      const Ran first = test::rehearse(arguments);
      INFO(command.front() << " " << format);
      CHECK(first.code == 0);
      CHECK(test::rehearse(arguments).out == first.out);
      arguments.insert(arguments.end(), {"--threads", "3"});
      CHECK(test::rehearse(arguments).out == first.out);
    }
}

TEST_CASE("an import gives the same store, byte by byte") {
  const std::filesystem::path folder = test::scratch_folder();
  for (const char* name : {"a", "b"})
    REQUIRE(test::rehearse({"import", kExample, "-o", (folder / name).string()}).code == 0);
  CHECK(test::text_of(folder / "a") == test::text_of(folder / "b"));
}

TEST_CASE("a store is replayed like the recording it was read from") {
  const std::string store = (test::scratch_folder() / "a.rehearse").string();
  REQUIRE(test::rehearse({"import", kExample, "-o", store}).code == 0);
  for (const char* format : {"table", "json", "csv"}) {
    const Ran recording = test::rehearse({"replay", kExample, "--format", format});
    const Ran stored = test::rehearse({"replay", store, "--format", format});
    CHECK(recording.code == 0);
    CHECK(stored.code == 0);
    CHECK(stored.out == recording.out);
  }
}

TEST_CASE("a store of a store holds the same") {
  const std::filesystem::path folder = test::scratch_folder();
  const std::string first = (folder / "first").string(), second = (folder / "second").string();
  REQUIRE(test::rehearse({"import", kExample, "-o", first}).code == 0);
  REQUIRE(test::rehearse({"import", first, "-o", second}).code == 0);
  CHECK(test::rehearse({"inspect", second, "--format", "json"}).out ==
        test::rehearse({"inspect", kExample, "--format", "json"}).out);
}

}  // namespace
}  // namespace rehearse
