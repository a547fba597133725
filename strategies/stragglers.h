// Stragglers: identical ranks are not equally fast in every step, and their collectives
// wait for the slowest.
#pragma once

#include <vector>

#include "sim/graph/timeline.h"
#include "sim/program/gradients.h"

namespace rehearse::strategies {

/// With fewer whole steps, accidents cannot be separated from variation.
inline constexpr std::size_t kStepsToTellVariation = 20;

/// By position in the step: the lateness of the slowest of `ranks` ranks for a gradient, relative
/// to the average rank. Empty if it cannot be determined: one rank, or fewer than
/// kStepsToTellVariation whole steps with the same number of gradients.
///
/// Each rank is assumed to vary independently like this one from step to step. x, the time of a
/// gradient since the last synchronization, is then a draw from the S recorded ones, and the
/// slowest of n draws exceeds the mean by  sum over i of x(i) ((i/S)^n - ((i-1)/S)^n) - mean(x),
/// x(i) being the sorted ones: the mean of the maximum of n draws with replacement. It never
/// exceeds the slowest recorded. Ranks last synchronized at the previous gradient, or, if
/// all-reduces overlap the backward pass (`overlap`), at the last gradient of the previous step.
///
/// `timeline` is of a run of the program of this rank alone, whose ops have their own numbers.
/// Not modelled: ranks that are always slower, and causes that slow all of them at once.
std::vector<Seconds> lateness(const std::vector<program::GradientStep>& steps,
                              const graph::Timeline& timeline, std::uint32_t ranks, bool overlap);

}  // namespace rehearse::strategies
