// Proof: the prediction of a pair and its measurement on this machine, over interleaved rounds.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/proving/pair.h"
#include "sim/base/estimate.h"

namespace rehearse::cli {

/// One round: the baseline is recorded, both programs run unrecorded, and the edit is predicted.
struct Round {
  std::optional<Seconds> recorded;  ///< step that the baseline states while it is recorded
  Estimate<Seconds> predicted;      ///< of the candidate
  Seconds baseline, candidate;      ///< measured
};

/// A median over rounds, with the 90 % interval of the median if there are rounds enough for one.
struct MedianStep {
  Seconds value;
  std::optional<std::pair<Seconds, Seconds>> interval;

  /// Half the width of the interval relative to the median.
  std::optional<double> precision() const;
};

/// The medians over rounds. The ends of the prediction's interval are medians too.
struct Proof {
  std::size_t rounds;
  MedianStep baseline, candidate;
  Estimate<Seconds> predicted;
  std::optional<double> recording_cost;  ///< of the recorded step relative to the measured one
  std::optional<double> precision;       ///< the worst of both measurements and the prediction

  double error() const { return predicted.value / candidate.value - 1; }
  bool inside() const {
    return predicted.low <= candidate.value && candidate.value <= predicted.high;
  }
  double measured_change() const { return candidate.value / baseline.value - 1; }
  double predicted_change() const { return predicted.value / baseline.value - 1; }
  /// Whether both changes have the same sign. Absent if the measured one is below the noise: there
  /// are no intervals of the two programs, or they overlap.
  std::optional<bool> right_direction() const;
};

/// Medians count as known if half of each interval is at most this share of the median.
inline constexpr double kKnown = 0.01;

/// REQUIRES: not empty.
Proof proof_of(const std::vector<Round>& rounds);

/// The outcome of a pair.
struct Proven {
  std::optional<Proof> proof;  ///< absent if the pair was skipped, or if no round ended
  std::string skipped;         ///< the reason
  std::optional<Error> error;  ///< that ended the rounds
};

/// Runs rounds until the medians are known, `most` rounds have run, a command fails, or an interrupt
/// comes, which is an error only before the end of the first round. `progress` is told the number of
/// rounds.
Proven prove(const Pair& pair, std::size_t most, const std::function<void(std::size_t)>& progress);

}  // namespace rehearse::cli
