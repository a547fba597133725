// Stragglers among recorded ranks: the ranks that take longer than the others for the same work,
// the ops and the first step in which they do, and the step time without it.
//
// Ops of one name are the same work if all ranks that have the name have it equally often; the n-th
// op of one rank then corresponds to the n-th of the others. Waiting is not work: collectives are
// left out.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "profiler/replay/advice.h"

namespace rehearse::replay {

struct SlowRank {
  std::size_t rank;                      ///< index into the recordings
  std::string op;                        ///< in which it loses most
  double ratio = 1;                      ///< its time in these ops relative to the other ranks'
  std::string since;                     ///< the step from which on it is slow; empty if in few
  Seconds lost = Seconds::s(0);          ///< in these ops, over the whole recording
  Seconds step_without = Seconds::s(0);  ///< if this rank were as fast as the others
};

struct Stragglers {
  std::vector<SlowRank> ranks;  ///< the largest loss first
  std::string group;            ///< the process group of exactly these ranks, if there is one
  /// The step if all ranks were equally fast: each op takes the mean of all ranks' times.
  Seconds step_if_equal = Seconds::s(0);
};

/// A rank is slow if it takes kSlow longer in ops of some name than the others do on average, and
/// loses more than kLoss of its time by it.
inline constexpr double kSlow = 0.05, kLoss = 0.01;
inline constexpr std::size_t kMostSlowRanks = 16;  ///< in a result

/// Whether an op is work of its rank alone: no collective, and no waiting.
bool is_own_work(const Recorded& recorded, const program::ProgramOp& op);

/// The ops of these ranks (indices into the recordings) take the mean time of the corresponding ops
/// of the others. Fails if no work corresponds.
Result<RecordedProgram> as_others(RecordedProgram program, const std::set<std::size_t>& ranks);

/// REQUIRES: `replay` is the recordings as recorded. The result has no ranks if fewer than two were
/// recorded, or no work corresponds.
Result<Stragglers> find_stragglers(const std::vector<Recording>& recordings,
                                   const ReplayGraph& replay, const Run& run);

}  // namespace rehearse::replay
