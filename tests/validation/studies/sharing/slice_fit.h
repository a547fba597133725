// The constants of the law of a slice from jobs that were timed on slices.
#pragma once

#include <string>
#include <vector>

#include "models/sharing/slice_law.h"

namespace rehearse::sharing {

struct TimedSlice {
  SliceRatio ratio;
  std::vector<SweepPoint> points = {};
};

struct TimedJob {
  std::string name;
  WorkKind kind;
  bool training;
  std::vector<SweepPoint> whole = {};
  std::vector<TimedSlice> slices = {};
};

/// α of each kind of work, β and κ with the least mean error over the jobs, each job counting the
/// same; and the spreads that hold 90 % of each regime's steps of jobs left out one by one. Jobs
/// whose sweep on the whole GPU does not identify them are passed over. A kind of work without
/// a job keeps 0.5. Fails where no job is left.
Result<SliceConstants> fit_constants(const std::vector<TimedJob>& jobs);

}  // namespace rehearse::sharing
