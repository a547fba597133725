// Controller: sets a knob for each window of a context, by what it observed under its own earlier
// choices.
#pragma once

#include <functional>
#include <vector>

#include "models/control/context.h"
#include "models/control/estimate.h"
#include "sim/base/result.h"

namespace rehearse::control {

/// The price of a window under a choice, by its index, at a level of the context.
using PriceOf = std::function<Result<double>(std::size_t choice, double level)>;

struct Controller {
  Context context;
  std::uint32_t windows = 1000;
  std::uint64_t seed = 1;
  std::size_t choices = 1;  ///< their number
  std::size_t first = 0;    ///< the choice before anything was observed
  /// The levels are those of so many states, which are observed themselves; 0: prices are.
  std::uint32_t states = 0;
  /// Deviation of the logarithm of an observed price; probability that another state is observed.
  double noise = 0;
  std::uint32_t every = 1;  ///< windows from one observation to the next
  std::uint32_t delay = 1;  ///< windows until an observation is known
  double cost = 0;          ///< price of an observation
  EstimateRule estimate = {};
  /// The best choice of each class, by the least level of the class, in order. Empty: the choice
  /// with the lowest price at the estimate.
  std::vector<std::pair<double, std::size_t>> classes = {};
};

struct Outcome {
  double chosen = 0;             ///< sum of the prices of all windows, with those of observations
  double known = 0;              ///< if each window had the cheapest choice
  double fixed = 0;              ///< the best single choice for all windows
  std::size_t fixed_choice = 0;  ///< that choice
  /// Root of the mean square of estimate ÷ level, in logarithms; of states, the share of wrong ones.
  double error = 0;
};

/// The controller sees the price of the window that it chose, with noise, and finds the level with
/// that price; or it sees the state. Fails if a price is not above 0, or does not rise or fall with the level over the
/// range of the context, with one line.
Result<Outcome> run(const Controller& controller, const PriceOf& price);

}  // namespace rehearse::control
