// Stragglers: ranks that do the same are not as fast as each other in every step, and what they do
// together waits for the slowest.
#pragma once

#include <vector>

#include "sim/graph/gradients.h"
#include "sim/graph/timeline.h"

namespace rehearse::strategies {

/// Fewer whole steps tell accidents, not how much ranks vary.
inline constexpr std::size_t kStepsToTellVariation = 20;

/// By position in the step: how much later the slowest of `ranks` ranks has a gradient than a rank
/// has it on average. Empty where it cannot be told: one rank, or fewer than kStepsToTellVariation
/// whole steps with the same number of gradients.
///
/// Each rank is taken to vary as this one did from step to step, independently. x, the time of a
/// gradient since the ranks were last together, is then a draw from the S recorded ones, and the
/// slowest of n draws exceeds the mean by  sum over i of x(i) ((i/S)^n - ((i-1)/S)^n) - mean(x),
/// x(i) being the sorted ones: the mean of the maximum of n draws with replacement. It never
/// exceeds the slowest recorded. Ranks are last together at the gradient before, or, where
/// all-reduces run beside the backward pass (`overlap`), at the last gradient of the step before.
///
/// Not seen: ranks that are slower than others all the time, and what slows all of them at once.
std::vector<Seconds> lateness(const std::vector<graph::GradientStep>& steps,
                              const graph::Timeline& timeline, std::uint32_t ranks, bool overlap);

}  // namespace rehearse::strategies
