// Runs the points of a study and compares them with the published values.
#pragma once

#include <string>
#include <vector>

#include "cli/study/study.h"
#include "sim/work/fingerprint.h"
#include "sim/work/queue.h"

namespace rehearse::cli {

struct StudyJob {
  std::string name;
  Estimate<Seconds> step_time;
  std::uint32_t ranks;
  bool fits;  ///< in the memory of its devices, as far as is known
};

struct StudyPoint {
  Setting parameters = {};
  std::vector<StudyJob> jobs = {};  ///< in the order of the file
  std::vector<Term> measured = {};  ///< in the order of the measures
};

/// An expectation, and what comes out.
struct Compared {
  std::size_t measure = 0;                   ///< its index
  Term least = {}, most = {};                ///< over the points that it is about
  Term least_of_all = {}, most_of_all = {};  ///< over all points: the span of what is not known
  std::vector<CurvePoint> curve = {};
  CurveErrors errors = {};  ///< of the curve
  StudyVerdict verdict = StudyVerdict::kShown;
};

/// What constants were fitted on, and what comes out there.
struct Fitted {
  std::size_t fit = 0;      ///< its index
  std::size_t measure = 0;  ///< likewise
  std::vector<CurvePoint> curve = {};
};

struct StudyResult {
  Study study;
  std::vector<StudyPoint> points = {};
  std::vector<Compared> compared = {};          ///< in the order of the expectations
  std::vector<Fitted> fitted = {};              ///< fits of a measure, on points of the sweep
  StudyVerdict verdict = StudyVerdict::kShown;  ///< missed where any is, matched where any claims
};

/// All that the results of studies depend on: the program, the files, and those that these name.
Result<work::Fingerprint> fingerprint_of(const std::vector<Study>& studies);

/// The points of all studies are the items of one queue. Fails with the mistakes of a job, or with
/// the first point that cannot be predicted, by its parameters; and as work::run_all does.
/// Predictions are central; their intervals do not count for the verdict.
Result<std::vector<StudyResult>> run_studies(std::vector<Study> studies,
                                             work::ExecutionOptions execution);

}  // namespace rehearse::cli
