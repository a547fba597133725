// profile: what it runs is recorded, and stays what it was.
#include <catch2/catch.hpp>

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
  const Ran ran = test::rehearse({"profile", "-o", folder, "--format", "json", "--",
                                  (test::program_folder() / "examples/train_cpu").string(),
                                  "--steps", "3", "--width", "32"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  const Json json = Json::parse(ran.out);  // the program's own output is not in it
  CHECK(ran.errors.find("mean step") != std::string::npos);
  for (const char* key : {"processes[].name", "processes[].ranges", "kernels", "dropped",
                          "overhead.per_range.value", "overhead.total.value", "wall_time.value"})
    test::check_has(json, key);
  CHECK(json["command"] == "profile");
  // Per step: load, forward, backward, optimizer, and per layer (4) two passes and two gradients.
  // Thirteen steps, three of them named, behind one warm-up.
  CHECK(json["ranges"] == 13 * (4 + 4 * 4) + 3 + 1);
  CHECK(json["dropped"] == 0);

  const Ran replay = test::rehearse({"replay", folder, "--format", "json"});
  REQUIRE(replay.code == 0);
  const Json steps = Json::parse(replay.out)["ranks"][0]["steps"];
  REQUIRE(steps.size() == 3);
  CHECK(steps[0]["measured_s"].get<double>() > 0);
}

TEST_CASE("profile ends as the command did") {
  const Ran failed = test::rehearse({"profile", "-o", new_folder(), "--", "sh", "-c", "exit 7"});
  CHECK(failed.code == 7);
  CHECK(failed.out.find("nothing was recorded") != std::string::npos);
  const Ran killed =
      test::rehearse({"profile", "-o", new_folder(), "--", "sh", "-c", "kill -TERM $$"});
  CHECK(killed.code == 128 + 15);
}

TEST_CASE("profile runs nothing where it cannot record") {
  const std::string used = test::write_scratch("file", "text").parent_path().string();
  test::check_failed(test::rehearse({"profile", "-o", used, "--", "true"}), 1, "holds files");
  test::check_failed(test::rehearse({"profile", "-o", new_folder(), "--", "no_such_program"}), 1,
                     "cannot be started");
  test::check_failed(test::rehearse({"profile", "-o", new_folder()}), 2, "COMMAND");
}

}  // namespace
}  // namespace rehearse
