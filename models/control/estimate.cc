#include "models/control/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rehearse::control {

void Estimator::observe(double logarithm, double windows) {
  switch (rule_.kind) {
    case EstimateKind::kLast: estimate_ = logarithm; break;
    case EstimateKind::kWindow:
      last_.push_back(logarithm);
      if (last_.size() > rule_.windows) last_.erase(last_.begin());
      estimate_ =
          std::accumulate(last_.begin(), last_.end(), 0.0) / static_cast<double>(last_.size());
      break;
    case EstimateKind::kExponential:
      estimate_ = begun_ ? estimate_ + rule_.share * (logarithm - estimate_) : logarithm;
      break;
    case EstimateKind::kBelief: update_belief(logarithm, windows); break;
  }
  begun_ = true;
}

/// The recursion of online change-point detection: each beginning either continues or gives way to a
/// new segment; each is weighted by the density of the observation under it (Adams and MacKay,
/// arXiv 0710.3742, 2007), and its level is updated as a normal mean of known noise is.
void Estimator::update_belief(double logarithm, double windows) {
  const double noise = std::max(rule_.noise * rule_.noise, 1e-12);
  const double continues = begun_ ? std::pow(1 - rule_.hazard, windows) : 0;
  for (Beginning& b : belief_) b.weight *= continues;
  belief_.push_back({1 - continues, rule_.mean, rule_.spread * rule_.spread});
  // Densities relative to the largest, because all may be too small.
  std::vector<double> exponents;
  for (const Beginning& b : belief_) {
    const double variance = b.variance + noise, off = logarithm - b.mean;
    exponents.push_back(-0.5 * (off * off / variance + std::log(variance)));
  }
  const double largest = *std::max_element(exponents.begin(), exponents.end());
  double sum = 0;
  for (std::size_t i = 0; i < belief_.size(); ++i) {
    Beginning& b = belief_[i];
    b.weight *= std::exp(exponents[i] - largest);
    const double gain = b.variance / (b.variance + noise);
    b.mean += gain * (logarithm - b.mean);
    b.variance *= 1 - gain;
    sum += b.weight;
  }
  if (!(sum > 0)) {  // nothing else explains it
    belief_ = {belief_.back()};
    sum = belief_.front().weight = 1;
  }
  constexpr double kNegligible = 1e-6;
  std::erase_if(belief_, [&](const Beginning& b) { return b.weight < kNegligible * sum; });
  double all = 0, mean = 0;
  for (const Beginning& b : belief_) {
    all += b.weight;
    mean += b.weight * b.mean;
  }
  for (Beginning& b : belief_) b.weight /= all;
  estimate_ = mean / all;
}

}  // namespace rehearse::control
