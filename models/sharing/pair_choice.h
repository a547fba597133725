// Which pairs of jobs to measure, where not all can be.
//
// The law of pairs (pairs.h) holds its terms to 0: read as how far each may lie from there, that
// says how unsure it is of every pair, and how much surer one measurement would make it of all.
// Pairs are chosen one after another, each the one that takes most of the doubt about all of them
// away (A-optimal, greedily). What was measured does not enter, only which pairs: so the choice can
// be made before anything runs. Of Gavel's V100 pairs 20 chosen so leave errors of 21 % where 20
// taken across the table leave 24 (docs/accuracy.md).
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "models/sharing/pairs.h"

namespace rehearse::sharing {

using JobPair = std::pair<Resident, Resident>;

/// Pairs among which can be chosen: the doubt about each of them by each other is kept.
inline constexpr std::size_t kMostToChooseFrom = 600;

/// Indices of `count` of the pairs, the most telling first; of all, where there are fewer. Those of
/// `known` were measured already and are not chosen. Shares do not count; the order of the pairs
/// decides between equals. REQUIRES: at most kMostToChooseFrom pairs, those known with them.
std::vector<std::size_t> pairs_to_measure(std::span<const JobPair> pairs, std::size_t count,
                                          std::span<const JobPair> known = {});

}  // namespace rehearse::sharing
