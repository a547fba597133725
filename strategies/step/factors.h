// Factors: how many times as long as predicted the parts of a step take on the user's machines.
//
// The parts of a step are those that differ between plans: computing, launches of the host, messages
// between nodes, and the fixed time. Measured steps determine some of the factors and not others
// (fit_factors.h). A plan whose step consists of parts that no measured step had keeps their
// uncertainty: the interval of a step is that of each factor by its share of the step.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/units.h"
#include "sim/program/origin.h"

namespace rehearse::step {

enum class Factor : std::uint8_t { kComputing, kHost, kNetwork, kFixed };
inline constexpr std::size_t kFactors = 4;
inline constexpr std::array<std::string_view, kFactors> kFactorNames = {"computing", "host",
                                                                        "network", "fixed"};

template <class T>
using ByFactor = std::array<T, kFactors>;

/// What is known after measured steps: 90 % intervals of the remaining errors.
struct Known {
  ByFactor<program::Interval> factors = {};
  program::Interval step;  ///< of a step as a whole, with all factors known
  /// The regimes (regimes.h) of the measured steps. In any other the regime's interval remains.
  std::vector<std::string> regimes;
};

/// The interval of a step with these shares of its time; errors are independent, and relative
/// (logarithms).
Estimate<Seconds> interval_of(const Estimate<Seconds>& step, const ByFactor<double>& shares,
                              const Known& known);

}  // namespace rehearse::step
