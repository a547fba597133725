// A flipped bit of a file that the program wrote is refused, or it changes no byte of the result.
#include <filesystem>
#include <random>

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Ran;

/// Runs a command once for each of `flips` flipped bits of a file that it reads. They are spread
/// evenly over the bytes that are not zero, so that few of them are in unused room.
/// Returns the share that was refused.
double refused_share(const fs::path& file, std::size_t flips,
                     const std::vector<std::string>& command) {
  const std::string sound = test::text_of(file);
  std::vector<std::size_t> used;
  for (std::size_t at = 0; at < sound.size(); ++at)
    if (sound[at] != 0) used.push_back(at);
  const Ran expected = test::rehearse(command);
  INFO(expected.errors);
  REQUIRE(expected.code == 0);
  std::mt19937_64 random(1);
  std::size_t refused = 0;
  for (std::size_t flip = 0; flip < flips; ++flip) {
    const std::size_t at = used[used.size() * flip / flips];
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    test::write_file(file, bytes);
    const Ran ran = test::rehearse(command);
    INFO("byte " << at << ": " << ran.errors);
    if (ran.code == 0) {
      CHECK(ran.out == expected.out);
      continue;
    }
    ++refused;
    test::check_failed(ran, 1, fs::path(file).filename().string() + ": ");
  }
  return static_cast<double>(refused) / static_cast<double>(flips);
}

TEST_CASE("a flipped bit of a store is refused") {
  const fs::path store = test::scratch_folder() / "job.rehearse";
  REQUIRE(test::rehearse({"import", test::kExample, "-o", store.string()}).code == 0);
  CHECK(refused_share(store, 400, {"replay", store.string(), "--format", "json"}) == 1);
}

TEST_CASE("a flipped bit of a history is refused or changes nothing") {
  const fs::path history = test::scratch_folder() / "perf.history";
  for (const std::string run : {"before", "again"})
    REQUIRE(test::rehearse({"check", "--history", history.string(), "--accept", "--name", run,
                            "--candidate", "examples/recordings/gate_" + run + ".json"})
                .code == 0);
  // The digest covers all rows; the rest is SQLite's own room and counters.
  CHECK(refused_share(history, 200,
                      {"check", "--history", history.string(), "--candidate",
                       "examples/recordings/gate_again.json"}) > 0.8);
}

}  // namespace
}  // namespace rehearse
