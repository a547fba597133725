// Controller: sets a knob for each window of a context, by what it observed under its own earlier
// choices.
#pragma once

#include <functional>
#include <vector>

#include "models/control/context.h"
#include "models/control/estimate.h"
#include "sim/base/result.h"

namespace rehearse::control {

/// The price of a window under a choice, at a level of the context.
using PriceOf = std::function<Result<double>(double choice, double level)>;

struct Controller {
  Context context;
  std::uint32_t windows = 1000;
  std::uint64_t seed = 1;
  std::vector<double> choices = {};
  double first = 1;         ///< the choice before anything was observed
  double noise = 0;         ///< deviation of the logarithm of an observed price
  std::uint32_t every = 1;  ///< windows from one observation to the next
  std::uint32_t delay = 1;  ///< windows until an observation is known
  double cost = 0;          ///< price of an observation
  EstimateRule estimate = {};
  /// The best choice of each class, by the least level of the class, in order. Empty: the choice
  /// with the lowest price at the estimate.
  std::vector<std::pair<double, double>> classes = {};
};

struct Outcome {
  double chosen = 0;  ///< sum of the prices of all windows, with those of observations
  double known = 0;   ///< if each window had the cheapest choice
  double fixed = 0;   ///< the best single choice for all windows
  double error = 0;   ///< root of the mean square of estimate ÷ level, in logarithms
};

/// The controller sees the price of the window that it chose, with noise, and finds the level with
/// that price. Fails if a price is not above 0, or does not rise or fall with the level over the
/// range of the context, with one line.
Result<Outcome> run(const Controller& controller, const PriceOf& price);

}  // namespace rehearse::control
