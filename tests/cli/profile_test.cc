// profile: what it runs is recorded, and stays what it was.
#include <catch2/catch.hpp>

#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;

/// A folder that is not there yet.
std::string new_folder() { return (test::scratch_folder() / "recording").string(); }

TEST_CASE("profile records a program, and replay reads the recording") {
  const std::string folder = new_folder();
  const Ran ran =
      test::rehearse({"profile", "-o", folder, "--format", "json", "--",
                      (test::program_folder() / "lib/rehearse/examples/train_cpu").string(),
                      "--steps", "3", "--width", "32"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  const Json json = Json::parse(ran.out);  // the program's own output is not in it
  CHECK(ran.errors.find("mean step") != std::string::npos);
  for (const char* key : {"processes[].name", "processes[].ranges", "kernels", "dropped",
                          "overhead.per_range.value", "overhead.total.value", "wall_time.value"})
    test::check_has(json, key);
  CHECK(json["command"] == "profile");
  // Per step: load, forward, backward, optimizer, and per layer (4) two passes, two gradients
  // and an update; 29 operators; and three sums among the ranks that divide a layer, here one.
  // Thirteen steps, three of them named, after one warm-up.
  CHECK(json["ranges"] == 13 * (4 + 4 * 5 + 29 + 3) + 3 + 1);
  CHECK(json["dropped"] == 0);

  const Json steps = test::json_of({"replay", folder})["ranks"][0]["steps"];
  REQUIRE(steps.size() == 3);
  CHECK(steps[0]["measured_s"].get<double>() > 0);
}

TEST_CASE("profile ends with the exit code of the command") {
  const Ran failed = test::rehearse({"profile", "-o", new_folder(), "--", "sh", "-c", "exit 7"});
  CHECK(failed.code == 7);
  CHECK(failed.out.find("nothing was recorded") != std::string::npos);
  const Ran killed =
      test::rehearse({"profile", "-o", new_folder(), "--", "sh", "-c", "kill -TERM $$"});
  CHECK(killed.code == 128 + 15);
}

TEST_CASE("profile runs nothing if it cannot record") {
  const std::string used = test::write_scratch("file", "text").parent_path().string();
  test::check_failed(test::rehearse({"profile", "-o", used, "--", "true"}), 1, "is not empty");
  test::check_failed(test::rehearse({"profile", "-o", new_folder(), "--", "no_such_program"}), 1,
                     "cannot be started");
  test::check_failed(test::rehearse({"profile", "-o", new_folder()}), 2, "COMMAND");
}

std::vector<std::string> training(const std::string& folder, std::vector<std::string> options) {
  std::vector<std::string> words = {"profile", "-o", folder, "--format", "json"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(),
               {"--", (test::program_folder() / "lib/rehearse/examples/train_cpu").string(),
                "--steps", "3", "--width", "32"});
  return words;
}

TEST_CASE("profile keeps the requested steps, and reports them") {
  const std::string folder = new_folder();
  Json json = test::document(test::rehearse(training(folder, {"--steps", "1:2"})));
  CHECK(json["steps"]["seen"] == 3);
  CHECK(json["steps"]["kept"] == 1);
  CHECK(json["kept_steps"].empty());
  // As many of the two other steps as can be: the range of one step, and what is in it.
  CHECK(json["ranges"] == 1 + 4 + 4 * 5 + 29 + 3);

  const std::string ring_folder = new_folder();
  const Ran ring =
      test::rehearse(training(ring_folder, {"--ring", "2 MiB", "--trigger", "every 2"}));
  REQUIRE(ring.code == 0);
  json = Json::parse(ring.out);
  for (const char* key : {"steps.seen", "steps.kept", "steps.kept_in_part", "steps.gone",
                          "kept_steps[].process", "kept_steps[].step", "kept_steps[].reason",
                          "kept_steps[].step_time.value", "kept_steps[].kept_share"})
    test::check_has(json, key);
  CHECK(json["steps"]["kept"] == 2);
  REQUIRE(json["kept_steps"].size() == 3);
  CHECK(json["kept_steps"][0]["step"] == 0);
  CHECK(json["kept_steps"][0]["reason"] == "every 2");
  CHECK(json["kept_steps"][1]["reason"] == "a neighbouring step is kept");
  CHECK(json["kept_steps"][2]["kept_share"] == 1);

  const Ran text =
      test::rehearse({"profile", "-o", new_folder(), "--ring", "2 MiB", "--trigger", "every 2",
                      "--", (test::program_folder() / "lib/rehearse/examples/train_cpu").string(),
                      "--steps", "3", "--width", "32"});
  CHECK(text.out.find("steps: 3 seen, 2 kept\n") != std::string::npos);
  CHECK(text.out.find(" step 2: every 2 (100 % kept)\n") != std::string::npos);

  const Ran none = test::rehearse({"profile", "-o", new_folder(), "--steps", "1:2", "--",
                                   test::capture_program("capture_target"), "ranges", "10"});
  CHECK(none.code == 0);
  CHECK(none.out.find("no step was seen, so nothing was kept") != std::string::npos);
  CHECK(none.errors.find("marked no step") != std::string::npos);
}

TEST_CASE("profile refuses a wrong choice of steps before anything runs") {
  struct Case {
    std::vector<std::string> options;
    const char* message;
  };
  for (const Case& c :
       {Case{{"--steps", "5"}, "'5' is not a range of steps; FIRST:END, such as 10:20"},
        Case{{"--steps", ":"}, "':' is not a range of steps"},
        Case{{"--steps", "a:b"}, "'a:b' is not a range of steps"},
        Case{{"--steps", "5:5"}, "'5:5' is not a range of steps"},
        Case{{"--steps", "1:2:3"}, "'1:2:3' is not a range of steps"},
        Case{{"--steps", "1:99999999999999999999"}, "is not a range of steps"},
        Case{{"--ring", "5 MiB"}, "--ring requires --trigger"},
        Case{{"--trigger", "every 5"}, "--trigger requires --ring"},
        Case{{"--ring", "5", "--trigger", "every 5"}, "'5' has no unit"},
        Case{{"--ring", "5 kB", "--trigger", "every 5"}, "1 MiB to 64 GiB"},
        Case{{"--ring", "5 MiB", "--trigger", "every 5", "--steps", "1:2"}, "excludes"},
        Case{
            {"--ring", "5 MiB", "--trigger", "step_time > slow"},
            "'step_time > slow' is not a trigger; step_time > p99, step_time > 250 ms (ns, us, ms, "
            "s), step_time > 1.5x median, or every 100"}}) {
    INFO(c.message);
    const std::string folder = new_folder();
    test::check_failed(test::rehearse(training(folder, c.options)), 2, c.message);
    CHECK_FALSE(std::filesystem::exists(folder));
  }
}

}  // namespace
}  // namespace rehearse
