// Runs the points of a study and compares them with the published values.
#pragma once

#include <string>
#include <vector>

#include "cli/study/study.h"
#include "cli/study/verdict.h"
#include "sim/work/fingerprint.h"
#include "sim/work/queue.h"

namespace rehearse::cli {

struct StudyJob {
  std::string name;
  Estimate<Seconds> step_time;
  std::uint32_t ranks;
  bool fits;  ///< in the memory of its devices, as far as it is known
};

struct StudyPoint {
  Setting parameters = {};
  std::vector<StudyJob> jobs = {};  ///< in the order of the file
  std::vector<Term> measured = {};  ///< in the order of the measures
  bool on_front = false;            ///< of Study::front
};

/// An expectation, and the simulated result.
struct Compared {
  std::size_t measure = 0;                   ///< its index
  Term least = {}, most = {};                ///< over the points of the expectation
  Term least_of_all = {}, most_of_all = {};  ///< over all points: the span of the unknowns
  std::vector<CurvePoint> curve = {};
  Errors errors = {};
  StudyVerdict verdict = StudyVerdict::kMissed;
};

/// A fit of constants, and the simulated result at its points.
struct Fitted {
  std::size_t fit = 0;      ///< its index
  std::size_t measure = 0;  ///< likewise
  std::vector<CurvePoint> curve = {};
};

struct StudyResult {
  Study study;
  std::vector<StudyPoint> points = {};
  std::vector<Compared> compared = {};           ///< in the order of the expectations
  std::vector<Fitted> fitted = {};               ///< fits of a measure, on points of the sweep
  StudyVerdict verdict = StudyVerdict::kMissed;  ///< missed if any is, else the best
};

/// A fingerprint of everything that the results depend on: the program, the files, and the files
/// that these name.
Result<work::Fingerprint> fingerprint_of(const std::vector<Study>& studies);

/// Runs the points of all studies as the items of one queue. Without `intervals`, which take several
/// times as long, steps are predicted as values alone, and terms have no known interval. Fails with the mistakes of a job, with
/// the parameters of the first point that cannot be predicted, with a tolerance that was chosen
/// after its error, and as work::run_all does. The verdict uses central predictions and ignores
/// their intervals.
Result<std::vector<StudyResult>> run_studies(std::vector<Study> studies, bool intervals,
                                             work::ExecutionOptions execution);

}  // namespace rehearse::cli
