// Matches the ops of one run to those of another, across reordering, renamed kernels and other
// tilings.
#pragma once

#include <cstddef>
#include <vector>

#include "profiler/compare/run.h"

namespace rehearse::compare {

/// Two slots that do the same work. Indices into Run::slots.
struct SlotPair {
  std::size_t baseline, candidate;
};

struct Matches {
  std::vector<SlotPair> pairs;  ///< each slot at most once
  /// The share of op time (of the devices, else of the host) that has a counterpart in the other
  /// run; the smaller of the two runs' shares.
  double matched_share = 0;
  double same_shapes = 0;  ///< share of the matched time with shapes that has equal shapes
};

/// Pairs slots by the strongest criterion first: name and origin, then one of the two, then the
/// position in the step with the most similar name. REQUIRES: runs with steps.
Matches match_ops(const Run& baseline, const Run& candidate);

/// The similarity of two names, from 0 to 1: the share of their pairs of neighbouring letters that
/// both have (Dice).
double likeness(std::string_view a, std::string_view b);

}  // namespace rehearse::compare
