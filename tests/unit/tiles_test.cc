#include "models/input/tiles.h"

#include <catch2/catch.hpp>

#include "tests/support/random.h"

namespace rehearse::input {
namespace {

/// Columns: loaded, operations, stored.
Accelerator example(double interval, double load_queue = 512) {
  return {.cycle = Seconds::ns(10),
          .stages = {{.name = "load",
                      .unit = "load",
                      .column = 0,
                      .rate = 8,
                      .queue = Scratchpad{load_queue, 0}},
                     {.name = "multiply",
                      .unit = "multiply",
                      .column = 1,
                      .rate = 256,
                      .interval = interval,
                      .area = 2,
                      .queue = Scratchpad{1024, 2}},
                     {.name = "store", .unit = "store", .column = 2, .rate = 8}},
          .layers = {{.amounts = {1024, 8192, 256}}},
          .fixed_area = 1,
          .area_per_kib = 4};
}

double cycles(const Accelerator& accelerator) {
  const auto found = cycles_of(accelerator);
  REQUIRE(found);
  return *found;
}

// Four tiles of 256 B: 32 cycles to load, 8 requests, 8 cycles to store. Two tiles fit into the
// first queue.
TEST_CASE("tiles: the slowest stage decides, before and after the others' first and last tile") {
  CHECK(tiles_of(example(1), example(1).layers[0]) == 4);
  CHECK(cycles(example(1)) == 4 * 32 + 8 + 8);
  CHECK(cycles(example(4)) == 32 + 4 * 32 + 8);
  CHECK(cycles(example(8)) == 32 + 4 * 64 + 8);
  CHECK(example(1).area() == 1 + 2 + 4 * 1.5);
}

// With room for all, or with one stage per unit as before, nothing changes; a shared unit adds up.
TEST_CASE("tiles: stages of one unit take turns, and layers follow one another") {
  Accelerator shared = example(4);
  for (TileStage& stage : shared.stages) stage.unit = "all";
  CHECK(cycles(shared) == 4 * (32 + 32 + 8));
  // Without the store, multiplying ends a layer, and makes room as well.
  Accelerator short_one = example(4);
  short_one.stages.pop_back();
  short_one.stages.back().queue.reset();
  short_one.layers[0].times = 2;
  CHECK(cycles(short_one) == 2 * (32 + 4 * 32));
  Accelerator twice = example(4);
  twice.layers[0].times = 2;
  CHECK(cycles(twice) == 2 * (32 + 4 * 32 + 8));
}

TEST_CASE("tiles: between the busiest unit and the sum of all") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    test::Random random(seed);
    Accelerator accelerator =
        example(test::between(random, 1, 9), test::between(random, 200, 4000));
    accelerator.layers.clear();
    for (int l = 0; l < 4; ++l)
      accelerator.layers.push_back(
          {.amounts = {1.0 * test::between(random, 0, 9000), 1.0 * test::between(random, 0, 90000),
                       1.0 * test::between(random, 0, 9000)}});
    double most = 0, sum = 0;
    for (const TileStage& stage : accelerator.stages) {
      double own = 0;
      for (const TileLayer& layer : accelerator.layers) {
        const double tiles = tiles_of(accelerator, layer);
        own += tiles * std::ceil(layer.amounts[stage.column] / tiles / stage.rate) * stage.interval;
      }
      most = std::max(most, own);
      sum += own;
    }
    CHECK(cycles(accelerator) >= Approx(most));
    CHECK(cycles(accelerator) <= Approx(sum));
  }
}

TEST_CASE("tiles: mistakes of a file") {
  const auto file = YamlFile::parse(
      "cycle: 10 ns\nlayers: [{bytes: 100, work: 5}, {bytes: 1}]\n"
      "stages: [{name: load, of: byte, queue: 1 KiB, holds: bytes}]\n",
      "a.yaml");
  REQUIRE(file);
  read_accelerator(file->root());
  REQUIRE_FALSE(file->status());
  const std::string text = to_string(file->status().error());
  CHECK(text.find("work: is missing") != std::string::npos);
  CHECK(text.find("no layer has 'byte'") != std::string::npos);
  CHECK(text.find("end with a queue") != std::string::npos);
}

}  // namespace
}  // namespace rehearse::input
