// Changes in a series of levels: distinguishes sudden jumps from slow drift.
//
// Bayesian online change point detection (Adams and MacKay, arXiv 0710.3742). A series is divided
// into segments; each is flat or drifts, a line with normal noise whose level, slope and variance
// have the conjugate normal-inverse-gamma prior, so that the next prediction of a segment is a
// Student distribution in closed form. Every start of the current segment, in both kinds, keeps its
// probability as values arrive. The division of the whole series is the most probable one under the
// same model.
//
// Values are logarithms: jumps and slopes are relative.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "profiler/compare/effect.h"

namespace rehearse::compare {

/// An estimate with its 90 % bounds.
struct Ranged {
  double value = 0, low = 0, high = 0;
};

struct Segment {
  std::size_t first = 0, count = 0;  ///< in the series
  bool drifts = false;
  Ranged begin, end;   ///< its level at its first and at its last value
  double slope = 0;    ///< relative, per value; 0 if it does not drift
  double noise = 0;    ///< relative standard deviation of a value about the level
  double freedom = 1;  ///< degrees of freedom of `noise`
  /// The change from the previous segment's last level to this segment's first, relative; an
  /// effect, to be judged. The first segment has none (scale 0).
  Effect jump = {};
  Effect drift = {};  ///< from its first to its last level; scale 0 if it does not drift
};

/// The belief about the newest value's segment, over all its possible starts.
struct Belief {
  Ranged length;      ///< in values
  Ranged level;       ///< now
  double drifts = 0;  ///< the probability of a drift
};

struct ChangePoints {
  std::vector<Segment> segments;  ///< of the most probable division, in order; never empty
  Belief belief;
  std::vector<double> began;  ///< by value: the probability that a segment began there
};

/// REQUIRES: at least three values, all above zero and finite.
ChangePoints find_changes(std::span<const double> series);

}  // namespace rehearse::compare
