// How well steps and memory on slices are predicted: from the whole GPU alone, from one slice more,
// from nothing measured.
#pragma once

#include <string>
#include <vector>

#include "sim/base/estimate.h"
#include "tests/validation/studies/sharing/mig_tables.h"
#include "tests/validation/studies/sharing/unmeasured_fit.h"

namespace rehearse::cli {

struct SliceRow {
  std::string name;     ///< "MISO bert on 3g.20gb, batch 4"
  std::string job;      ///< "MISO bert"
  std::string profile;  ///< "3g.20gb"
  double error;         ///< predicted ÷ measured - 1; of runs or fails 1 where it is wrong
  bool covered = true;  ///< measured inside the 90 % interval
};

/// Predictions of one kind. None of their rows gave a constant, but of `fitted`.
struct SliceCase {
  std::string name;
  std::string about;  ///< what was known and from where the constants come
  bool intervals = true;
  std::size_t fitted = 0;  ///< rows of these jobs that gave the job's own law
  std::vector<SliceRow> rows = {};
};

struct SliceAccuracy {
  std::vector<SliceCase> cases;
  sharing::SliceConstants constants;  ///< fitted to all jobs
  sharing::UnmeasuredFit unmeasured;  ///< likewise
};

/// REQUIRES: jobs of both publications, as read_sliced_jobs gives them.
Result<SliceAccuracy> measure_slice_accuracy(const std::vector<SlicedJob>& jobs);

}  // namespace rehearse::cli
