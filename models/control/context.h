// Context: a parameter that changes while a system runs, one level for each window of time.
// docs/concepts/controller.md has the laws.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace rehearse::control {

/// A constant level on each segment. A window begins a new one with the probability `hazard`, with
/// a level drawn evenly in its logarithm.
struct Segments {
  double hazard;
  double low, high;
};

/// A random walk of the logarithm: each window adds a normal number of deviation `step`. It is
/// reflected at both ends, and begins in the middle.
struct Walk {
  double step;
  double low, high;
};

/// Levels as recorded, repeated.
struct Recorded {
  std::vector<double> levels;
};

/// One of `count` states, whose levels are 1, 2, …. A window leaves its state with the probability
/// `hazard`, for each of the others alike.
struct States {
  double hazard;
  std::uint32_t count;
};

using Context = std::variant<Segments, Walk, Recorded, States>;

/// The least and the largest level. REQUIRES: as levels_of.
std::pair<double, double> range_of(const Context& context);

/// The level of each window. REQUIRES: 0 < low <= high; recorded levels above 0, at least one.
std::vector<double> levels_of(const Context& context, std::size_t windows, std::uint64_t seed);

}  // namespace rehearse::control
