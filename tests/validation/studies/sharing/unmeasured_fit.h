// The constants for jobs without measurements, fitted on measured jobs with a description.
#pragma once

#include <vector>

#include "tests/validation/studies/sharing/unmeasured.h"

namespace rehearse::sharing {

struct DescribedStep {
  SliceRatio ratio;  ///< against the whole GPU, as ratio_of_gpu
  double size;
  Seconds time;
};

struct DescribedRuns {
  DescribedJob job;
  const cluster::Gpu* gpu;
  std::size_t host;  ///< jobs of equal number ran on one host
  std::vector<DescribedStep> steps = {};
};

struct UnmeasuredFit {
  UnmeasuredConstants constants;  ///< but for the host's time, which is the first host's
  std::vector<Seconds> hosts;     ///< per kernel, by number
};

/// The constants with the least mean error over the jobs, each counting the same; the spread holds
/// 90 % of their steps. REQUIRES: a job.
UnmeasuredFit fit_unmeasured(const std::vector<DescribedRuns>& runs);

}  // namespace rehearse::sharing
