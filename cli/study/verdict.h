// The verdict on an expectation of a study, by rule (docs/concepts/study.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/study/expectation.h"

namespace rehearse::cli {

/// From the best to the worst.
enum class StudyVerdict : std::uint8_t {
  kReproduced,  ///< a prediction, within its tolerance at every point
  kInside,      ///< a prediction whose published number lies in the span of the unstated settings
  kMechanism,
  kIdentity,
  kMissed,
};
inline constexpr std::string_view kStudyVerdictNames[] = {"reproduced", "inside the span",
                                                          "mechanism", "identity", "missed"};

/// A number of a curve, published and simulated.
struct CurvePoint {
  std::string value;  ///< of the parameter
  double published;
  Term least, most;  ///< over the points that it describes
  double error;      ///< the largest, simulated ÷ published - 1
};

/// Relative errors. A value or a range has one: how far the sweep lies outside of it.
struct Errors {
  double mean = 0;   ///< of the magnitudes
  double worst = 0;  ///< with its sign
};
Errors errors_of(std::span<const CurvePoint> points);
/// The same for the range of the sweep, from `least` to `most`. REQUIRES: no curve.
Errors errors_of(const Expectation& expectation, double least, double most);

/// `is_inside`: whether the sweep reaches every published number, from both sides.
StudyVerdict judge(const Expectation& expectation, const Errors& errors, bool is_inside);

/// The tolerance of a reproduced expectation that was chosen after its error: other than the usual
/// one, without a reason, and at most a tenth above the error.
struct ChosenTolerance {
  double tolerance, error;
};
std::optional<ChosenTolerance> chosen_tolerance(const Expectation& expectation,
                                                const Errors& errors);

/// The verdict on a study: missed if any of its expectations is, else the best.
StudyVerdict worst_or_best(std::span<const StudyVerdict> verdicts);

}  // namespace rehearse::cli
