// Expectations of a study: the published values, the ones on which constants were fitted, and the
// verdict on the results (docs/formats/study.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/study/expression.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

/// The value of each parameter at a point, or those that one value of an axis sets together.
using Setting = std::vector<std::pair<std::string, std::string>>;

/// Some points of a sweep: those whose parameters have one of these values each.
using Selection = std::vector<std::pair<std::string, std::vector<std::string>>>;

bool is_selected(const Selection& selection, const Setting& point);

/// How the sweep and the published range are compared.
enum class Comparison : std::uint8_t {
  kWithin,  ///< every point lies in the range
  kCovers,  ///< the sweep reaches both ends, or beyond
  kSpans,   ///< the least and the most of the sweep are the ends
};
inline constexpr std::string_view kComparisonNames[] = {"within", "covers", "spans"};

/// Where published numbers were read. A recalled one is known from memory, and not looked up.
enum class SourceKind : std::uint8_t { kArtifact, kPaper, kPage, kAbstract, kRecalled, kNone };
inline constexpr std::string_view kSourceKindNames[] = {"artifact", "paper",    "page",
                                                        "abstract", "recalled", "none"};

/// A curve of published numbers: one for each of some values of a parameter.
struct Curve {
  Selection at = {};      ///< where the other parameters are
  std::string over = {};  ///< the parameter; empty: there is no curve
  std::vector<std::pair<std::string, double>> published = {};

  /// The points that a number of the curve is of.
  Selection points_of(const std::string& value) const;
};

/// Constants of a study, and what they were fitted on.
struct Fit {
  std::vector<std::string> constants = {};  ///< for people
  std::optional<std::string> measure = {};  ///< absent: points count as fitted in all they show
  Curve curve = {};
  std::string source = {};  ///< of rows that are none of this study's
};

struct Expectation {
  std::string measure = {};
  double low = 0, high = 0;  ///< equal where one value was published
  Comparison comparison = Comparison::kWithin;
  Curve curve = {};  ///< in place of the numbers above; its `at` is that of all expectations
  /// Relative: of each end of a range, of each number of a curve. Absent, as the next: nothing is
  /// claimed, both are shown.
  std::optional<double> tolerance = {};
  std::optional<double> mean_tolerance = {};  ///< of a curve, over its numbers
  std::string source = {}, configuration = {};
  std::optional<SourceKind> source_kind = {};

  bool is_curve() const { return !curve.over.empty(); }
  bool is_value() const { return low == high && !is_curve(); }
  bool claims() const { return tolerance || mean_tolerance; }
};

/// What expectations are about.
struct SweptPoints {
  std::span<const std::string_view> measures;
  std::vector<Setting> points;
};

/// Both report errors with their position, an expectation of a point among it that a constant was
/// fitted on.
Fit read_fit(const YamlMap& map, const SweptPoints& swept);
Expectation read_expectation(const YamlMap& map, const SweptPoints& swept,
                             std::span<const Fit> fits);

enum class StudyVerdict : std::uint8_t {
  kMatched,
  kMissed,
  kShown,  ///< no tolerance is given: no match is claimed
};
inline constexpr std::string_view kStudyVerdictNames[] = {"matched", "missed", "shown"};

/// Whether the sweep from `least` to `most` is what is expected. REQUIRES: no curve.
StudyVerdict judge(const Expectation& expectation, double least, double most);

/// A number of a curve, and what comes out.
struct CurvePoint {
  std::string value;  ///< of the parameter
  double published;
  Term least, most;  ///< over the points that it is of
  double error;      ///< the largest, simulated ÷ published - 1
};

struct CurveErrors {
  double mean = 0;   ///< of the magnitudes
  double worst = 0;  ///< with its sign
};
CurveErrors errors_of(std::span<const CurvePoint> points);

/// Whether a curve is what is expected.
StudyVerdict judge(const Expectation& expectation, const CurveErrors& errors);

}  // namespace rehearse::cli
