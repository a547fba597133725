// The points of a study, and whether they are what was published.
#pragma once

#include <string>
#include <vector>

#include "cli/study/study.h"
#include "sim/base/progress.h"

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

enum class StudyVerdict : std::uint8_t {
  kMatched,
  kMissed,
  kShown,  ///< no tolerance is given: no match is claimed
};
inline constexpr std::string_view kStudyVerdictNames[] = {"matched", "missed", "shown"};

struct StudyResult {
  Study study;
  std::vector<StudyPoint> points = {};
  std::size_t expected = 0;    ///< the measure that the expectation is about
  Term least = {}, most = {};  ///< of it, over the points
  StudyVerdict verdict = StudyVerdict::kShown;
};

/// Fails with the mistakes of a job, or with the first point that cannot be predicted, by its
/// parameters. Predictions are central; their intervals do not count for the verdict.
Result<StudyResult> run_study(Study study, const Progress& progress);

/// Whether the sweep from `least` to `most` is what is expected.
StudyVerdict judge(const Expectation& expectation, double least, double most);

}  // namespace rehearse::cli
