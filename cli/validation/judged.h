// The result of `rehearse validate`: predictions compared with measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/document.h"
#include "cli/validation/plan_choice.h"
#include "cli/validation/suite.h"
#include "sim/base/estimate.h"
#include "strategies/step/fit_factors.h"

namespace rehearse::cli {

/// The relation of the program's constants to a measurement.
enum class Use : std::uint8_t { kFitted, kRowLeftOut, kSourceLeftOut };
/// The names in files of measurements and in JSON.
inline constexpr std::string_view kUseNames[] = {"fitted", "row_left_out", "source_left_out"};
/// For people.
inline constexpr std::string_view kUseWords[] = {"fitted", "left out by row", "left out by source"};

/// One measurement; all numbers in the unit of its case.
struct JudgedRow {
  std::string name;
  double measured;
  Estimate<double> predicted;  ///< low and high equal the value if the interval is unknown
  Use use = Use::kSourceLeftOut;
  /// Jobs: the group of plans to choose from, and the samples of a step.
  std::string group = {};
  double samples = 0;
  std::optional<step::StepParts> parts = {};  ///< of its step

  double error() const { return predicted.value / measured - 1; }
  bool has_interval() const { return predicted.low < predicted.high; }
};

/// Rows that are summarized together.
struct JudgedCase {
  std::string name;       ///< "jobs/mpt"
  std::string_view unit;  ///< "s"; empty for shares
  std::vector<JudgedRow> rows = {};
};

/// Rows, columns or files that were skipped for one reason.
struct Skipped {
  std::string_view what;  ///< "row", "column" or "file"
  std::string reason;
  std::string first;  ///< "jobs.csv:7"
  std::size_t count = 1;
};

struct Judgement {
  std::vector<JudgedCase> cases;
  std::vector<Skipped> skipped;
  std::vector<Method> methods = {};  ///< of the predictions

  /// Returns the case with this name, and creates it if needed.
  JudgedCase& case_of(const std::string& name, std::string_view unit);
  void skip(std::string_view what, std::string reason, std::string first);
};

/// Returns one summary per case: of the rows that were left out of fits, or of all rows if there
/// are none.
std::vector<SuiteSummary> summarize(const Judgement& judgement);

/// How well the predictions choose among measured plans: one element per table of jobs that has
/// groups of plans; and one with a measured step given, if a group has three plans. Tables are the
/// first parts of the names of cases.
///
/// The step that is given is that of the plan predicted best, which a user would try first. The
/// others are predicted by the factors that `calibrate job` fits to it, and judged.
std::vector<PlanChoice> choices_of(const Judgement& judgement);

/// Adds errors by case and use, the rows with the largest errors, all rows, and the skipped ones.
void add_judgement(const Judgement& judgement, Document& document);

}  // namespace rehearse::cli
