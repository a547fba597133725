// profiler/record-golden runs to its end: with a mock GPU and a package that looks like PyTorch.
#include <cstdlib>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/base/yaml.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Json;

fs::path mocks() { return test::capture_program("mocks"); }

struct Golden {
  int code;
  std::string said;
};

/// Runs the script with these arguments and variables ("NAME=VALUE ").
Golden record_golden(const fs::path& out, const std::string& arguments,
                     const std::string& variables = "", const fs::path& mock = mocks()) {
  const fs::path log = test::scratch_folder() / "log";
  const std::string command = fmt::format(
      "cd '{}' && {} profiler/record-golden --out '{}' --library '{}' --mock '{}' {} >'{}' 2>&1",
      test::source_file("").string(), variables, out.string(), test::capture_library().string(),
      mock.string(), arguments, log.string());
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), test::text_of(log)};
}

std::size_t lines_with(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_CASE("record-golden runs every item, and its output can be read") {
  const fs::path out = test::scratch_folder() / "golden";
  const Golden golden = record_golden(out, "");
  INFO(golden.said);
  REQUIRE(golden.code == 0);
  CHECK(lines_with(golden.said, "FAILED") == 0);
  CHECK(golden.said.find("20 traces") != std::string::npos);
  CHECK(fs::file_size(out / "golden.tar.gz") > 10000);
  CHECK(fs::file_size(out / "golden.tar.gz") < 14u << 20);
  CHECK(lines_with(test::text_of(out / "index.md"), "](") == 20);

  // Each trace: a capture that inspect reads as it lies there, and what is known of it.
  std::size_t traces = 0;
  for (const auto& entry : fs::directory_iterator(out)) {
    if (!fs::exists(entry.path() / "meta.yaml")) continue;
    ++traces;
    const Result<YamlFile> meta = YamlFile::load(entry.path() / "meta.yaml");
    REQUIRE(meta);
    CHECK(meta->root().required<Seconds>("measured_step")->s() > 0);
    for (const char* key : {"job", "command", "recorded_on", "hardware", "driver", "software"})
      CHECK_FALSE(meta->root().required<std::string>(key)->empty());
    CHECK(test::text_of(entry.path() / "session.yaml").find("ns_per_range: ") != std::string::npos);
  }
  CHECK(traces == 20);
  const Json rank = test::json_of({"inspect", (out / "resnet50-b32").string()})["ranks"][0];
  CHECK(rank["format"] == "capture");
  CHECK(rank["steps"].size() >= 5);

  // Again: nothing is run twice.
  const Golden again = record_golden(out, "");
  CHECK(again.code == 0);
  CHECK(lines_with(again.said, ": done before") >= 20);
  CHECK(lines_with(again.said, "a step without profiler") == 0);
}

TEST_CASE("record-golden names the items that failed, and runs the others") {
  const fs::path out = test::scratch_folder() / "golden";
  const Golden failed =
      record_golden(out, "--only library --only ends --only mlp-b512", "MOCK_CUPTI_SUBSCRIBE=39");
  INFO(failed.said);
  CHECK(failed.code == 1);
  CHECK(failed.said.find("library: FAILED: another profiler uses CUPTI") != std::string::npos);
  CHECK(failed.said.find("mlp-b512: FAILED: no kernel was recorded") != std::string::npos);
  CHECK(failed.said.find("record-golden: failed: library, ends, mlp-b512") != std::string::npos);
  // With the other gone, a second call makes up for it.
  const Golden mended = record_golden(out, "--only library --only mlp-b512");
  INFO(mended.said);
  CHECK(mended.code == 0);

  CHECK(record_golden(out, "--only nothing").code == 2);
  const Golden no_gpu =
      record_golden(test::scratch_folder() / "golden", "", "", test::scratch_folder());
  CHECK(no_gpu.code == 1);
  CHECK(no_gpu.said.find("PyTorch cannot use a GPU here: ") != std::string::npos);
  CHECK(no_gpu.said.find("Found no NVIDIA driver\n") != std::string::npos);
  const Golden late = record_golden(test::scratch_folder() / "golden", "--only ends --budget 1");
  CHECK(late.code == 1);
  CHECK(late.said.find("no time left; call again to go on") != std::string::npos);
  const Golden list = record_golden(out, "--list");
  CHECK(list.code == 0);
  CHECK(lines_with(list.said, "\n") > 25);
}

}  // namespace
}  // namespace rehearse
