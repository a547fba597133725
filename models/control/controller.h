// Controller: sets a knob for each window of a context, by what it observed under its own earlier
// choices.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::control {

// --- Estimates of a level from noisy observations of earlier windows, in logarithms: errors are
// relative.

enum class EstimateKind : std::uint8_t {
  kLast,         ///< the last observation
  kWindow,       ///< the mean of the last `windows`
  kExponential,  ///< a mean in which each new observation has the weight `share`
  kBelief,       ///< the mean over all beginnings of the current segment
};

struct EstimateRule {
  EstimateKind kind = EstimateKind::kLast;
  std::uint32_t windows = 1;
  double share = 1;
  /// Of the belief: the probability that a window begins a new segment; the deviation of an
  /// observation; the mean and the deviation of the levels of segments. In logarithms.
  double hazard = 0;
  double noise = 0;
  double mean = 0;
  double spread = 1;
};

/// A rule as it gets observations, one after another.
class Estimator {
 public:
  explicit Estimator(const EstimateRule& rule) : rule_(rule) {}

  /// Takes the logarithm of an observation, `windows` after the previous one.
  void observe(double logarithm, double windows = 1);
  /// The logarithm of the level. REQUIRES: an observation.
  double estimate() const { return estimate_; }

 private:
  /// A possible beginning of the current segment, with the normal distribution of its level.
  struct Beginning {
    double weight, mean, variance;
  };
  void update_belief(double logarithm, double windows);

  EstimateRule rule_;
  std::vector<double> last_ = {};
  std::vector<Beginning> belief_ = {};
  bool begun_ = false;
  double estimate_ = 0;
};

// --- Context: a parameter that changes while a system runs, one level for each window of time.
// docs/concepts/controller.md has the laws.

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

// --- The controller.

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
