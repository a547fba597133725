// Selects pairs of jobs to measure.
//
// The law of pairs (pairs.h) regularizes its terms towards 0. This prior gives the uncertainty of
// every pair, and its reduction by one measurement. Pairs are chosen one after another, each the
// one that reduces the total uncertainty the most (A-optimal, greedy). The choice uses no measured
// values, so it can be made before anything runs. With 20 of Gavel's V100 pairs chosen this way the
// error is 21 %, and 24 % with 20 taken across the table (docs/accuracy.md).
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "models/sharing/pairs.h"

namespace rehearse::sharing {

using JobPair = std::pair<Resident, Resident>;

/// The most pairs to choose from: the covariance of every two of them is kept.
inline constexpr std::size_t kMostToChooseFrom = 600;

/// The indices of `count` of the pairs, the most informative first; all, if there are fewer. Those
/// in `known` were measured already and are not chosen. Shares do not matter; the order of the
/// pairs breaks ties. REQUIRES: at most kMostToChooseFrom pairs, including the known ones.
std::vector<std::size_t> pairs_to_measure(std::span<const JobPair> pairs, std::size_t count,
                                          std::span<const JobPair> known = {});

}  // namespace rehearse::sharing
