// Expectations of a study: the published values, and the ones on which constants were fitted
// (docs/formats/study.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/study/expression.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

/// The value of each parameter at a point, or the parameters that one value of an axis sets
/// together.
using Setting = std::vector<std::pair<std::string, std::string>>;

/// Some points of a sweep: each of these parameters has one of the listed values.
using Selection = std::vector<std::pair<std::string, std::vector<std::string>>>;

bool is_selected(const Selection& selection, const Setting& point);

/// How the sweep and the published range are compared.
enum class Comparison : std::uint8_t {
  kWithin,  ///< every point lies in the range
  kCovers,  ///< the sweep reaches both ends, or beyond
  kSpans,   ///< the ends are the smallest and the largest value of the sweep
};
inline constexpr std::string_view kComparisonNames[] = {"within", "covers", "spans"};

/// The source of published numbers. A recalled number is known from memory and was not looked up.
enum class SourceKind : std::uint8_t { kArtifact, kPaper, kPage, kAbstract, kRecalled, kNone };
inline constexpr std::string_view kSourceKindNames[] = {"artifact", "paper",    "page",
                                                        "abstract", "recalled", "none"};

/// What an expectation claims.
enum class ClaimKind : std::uint8_t {
  kPrediction,  ///< a published number, which nothing was fitted on
  kMechanism,   ///< sign or shape, without a number of the publication
  kIdentity,    ///< a result that restates the inputs of the study
};
inline constexpr std::string_view kClaimKindNames[] = {"prediction", "mechanism", "identity"};

/// The tolerance of a prediction for which no reason is needed.
inline constexpr double kUsualTolerance = 0.1;

/// A published curve: one number for each of several values of a parameter.
struct Curve {
  Selection at = {};      ///< the values of the other parameters
  std::string over = {};  ///< the parameter; empty: no curve
  std::vector<std::pair<std::string, double>> published = {};

  /// The points that the curve's number at `value` describes.
  Selection points_of(const std::string& value) const;
};

/// Constants of a study, and the data that they were fitted on.
struct Fit {
  std::vector<std::string> constants = {};  ///< for people
  std::optional<std::string> measure = {};  ///< absent: all measures of the points count as fitted
  Curve curve = {};
  std::string source = {};  ///< of rows that are not in this study
};

struct Expectation {
  std::string measure = {};
  double low = 0, high = 0;  ///< equal where one value was published
  Comparison comparison = Comparison::kWithin;
  Curve curve = {};  ///< replaces the numbers above; its `at` applies to all expectations
  ClaimKind kind = ClaimKind::kPrediction;
  /// Relative to each end of a range, or to each number of a curve. Absent with `covers`, and for a
  /// curve if only the next is stated.
  std::optional<double> tolerance = {};
  std::optional<double> mean_tolerance = {};  ///< of a curve, over its numbers
  std::string reason = {};                    ///< of a tolerance that is not the usual one
  std::string source = {}, configuration = {};
  std::optional<SourceKind> source_kind = {};  ///< its own, else that of the study
  YamlMap map;                                 ///< for errors that only the result shows

  bool is_curve() const { return !curve.over.empty(); }
  bool is_value() const { return low == high && !is_curve(); }
};

/// The parameters that vary among the points which one published number describes, with their
/// values: the settings that the publication does not state.
Selection free_parameters(const Expectation& expectation, std::span<const Setting> points);

/// The points and parameters that an expectation can refer to.
struct SweptPoints {
  std::span<const std::string_view> measures;
  std::vector<Setting> points;
};

/// Both report errors with their position, including an expectation that covers a point on which a
/// constant was fitted, and a number without a tolerance. `source_kind` is that of the study.
Fit read_fit(const YamlMap& map, const SweptPoints& swept);
Expectation read_expectation(const YamlMap& map, const SweptPoints& swept,
                             std::span<const Fit> fits, std::optional<SourceKind> source_kind);

}  // namespace rehearse::cli
