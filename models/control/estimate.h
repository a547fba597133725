// Estimates of a level from noisy observations of earlier windows, in logarithms: errors are
// relative.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::control {

enum class EstimateKind : std::uint8_t {
  kLast,         ///< the last observation
  kWindow,       ///< the mean of the last `windows`
  kExponential,  ///< a mean in which each new observation has the weight `share`
  kBelief,       ///< the mean over all beginnings of the current segment
};
inline constexpr const char* kEstimateNames[] = {"last", "window", "exponential", "belief"};

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

}  // namespace rehearse::control
