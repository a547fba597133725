// Problems of a recording: warned of on stderr, silent with --quiet, fatal with --strict.
#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Ran;

/// A recording with one operator that ends before it starts.
std::string damaged_recording() {
  std::string text = test::kineto_recording(3);
  text.replace(text.find("\"dur\": 400"), 10, "\"dur\": -40");
  return test::write_scratch("damaged.json", text).string();
}

TEST_CASE("a problem is a warning on stderr and the result is on stdout") {
  const std::string input = damaged_recording();
  for (const char* command : {"inspect", "replay"}) {
    const Ran ran = test::rehearse({command, input});
    CHECK(ran.code == 0);
    CHECK_FALSE(ran.out.empty());
    CHECK(ran.out.find("warning") == std::string::npos);
    CHECK(ran.errors.starts_with("warning: negative_duration (1 times; first at " + input));
    CHECK(std::count(ran.errors.begin(), ran.errors.end(), '\n') == 1);
  }
}

TEST_CASE("quiet silences warnings and changes no result") {
  const std::string input = damaged_recording();
  const Ran loud = test::rehearse({"inspect", input});
  const Ran quiet = test::rehearse({"inspect", input, "--quiet"});
  CHECK(quiet.code == 0);
  CHECK(quiet.errors.empty());
  CHECK(quiet.out == loud.out);
}

TEST_CASE("strict makes warnings errors, and accepts a sound recording") {
  const std::string input = damaged_recording();
  const std::string store = (test::scratch_folder() / "a.rehearse").string();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"inspect", input, "--strict"},
        {"replay", input, "--strict"},
        {"whatif", input, "--strict", "--scale", "host:2"},
        {"import", input, "--strict", "-o", store}}) {
    INFO(arguments.front());
    test::check_failed(test::rehearse(arguments), 1, "negative_duration (1; " + input);
  }
  CHECK_FALSE(std::filesystem::exists(store));
  CHECK(test::rehearse({"replay", test::kExample, "--strict"}).code == 0);
}

TEST_CASE("a step that waits for work that was not recorded is not to be trusted") {
  // One step of decoding on MI300X: 10 ms of kernels start 463 ms after their launch.
  const auto file = test::shared_data(
      "tracelens-h100-mi300/inference__sglang_decode__sglang_Qwen3-8B_decode.json.gz");
  SKIP_WITHOUT_DATA(file);
  const Ran ran = test::rehearse({"replay", file->string()});
  CHECK(ran.out.substr(0, ran.out.find('\n'))
            .find("98 % of the step is waiting for work that was not recorded") !=
        std::string::npos);
  CHECK(test::rehearse({"whatif", file->string(), "--strict", "--scale", "gpu:0.5"}).code == 1);
}

TEST_CASE("import lists the problems in its result") {
  const std::string store = (test::scratch_folder() / "a.rehearse").string();
  const Ran ran = test::rehearse({"import", damaged_recording(), "-o", store});
  CHECK(ran.code == 0);
  CHECK(ran.out.find("negative_duration") != std::string::npos);
}

TEST_CASE("progress is shown on stderr alone, if it is requested") {
  const std::string input =
      test::write_scratch("large.json", test::kineto_recording(30'000)).string();
  const Ran without = test::rehearse({"inspect", input, "--format", "csv"});
  const Ran with = test::rehearse({"inspect", input, "--format", "csv", "--progress"});
  CHECK(without.errors.empty());
  CHECK(with.out == without.out);
}

}  // namespace
}  // namespace rehearse
