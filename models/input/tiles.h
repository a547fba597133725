// Tiles: an accelerator whose units work on the layers of a network tile by tile, with scratchpads
// between them. docs/concepts/tiles.md has the law and a worked example.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/base/yaml.h"

namespace rehearse::input {

/// A queue counted in bytes.
struct Scratchpad {
  double size;         ///< bytes
  std::size_t column;  ///< of a layer: bytes that pass through
};

/// A stage of every tile: requests to its unit, one after another.
struct TileStage {
  std::string name;
  std::string unit;                      ///< stages with the same unit take turns
  std::size_t column;                    ///< of a layer: the amount of work
  double rate = 1;                       ///< amount of a request
  double interval = 1;                   ///< cycles from one request to the next
  double start = 0;                      ///< cycles before the first request of a tile
  double area = 0;                       ///< in any unit
  std::optional<Scratchpad> queue = {};  ///< between this stage and the next
};

struct TileLayer {
  std::vector<double> amounts = {};  ///< by column
  std::uint32_t times = 1;           ///< number of equal layers
};

struct Accelerator {
  Seconds cycle;
  std::vector<TileStage> stages = {};
  std::vector<TileLayer> layers = {};
  double fixed_area = 0;
  double area_per_kib = 0;  ///< of scratchpads

  double area() const;
};

/// The smallest number of equal tiles such that every scratchpad, which is double-buffered, holds
/// two of them.
double tiles_of(const Accelerator& accelerator, const TileLayer& layer);

/// Cycles until the last tile has passed the last stage. A stage begins a tile when its unit is
/// free, the stage before has ended it, and the queue has room for it; a layer begins after the one
/// before has ended. Fails if there are more than a million tiles.
Result<double> cycles_of(const Accelerator& accelerator);

/// Mistakes are recorded in the map's file; the result is then meaningless.
Accelerator read_accelerator(const YamlMap& map);

}  // namespace rehearse::input
