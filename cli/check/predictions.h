// Replays stored recordings and compares the errors with those of an earlier version of the
// simulator.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/check/finding.h"
#include "cli/globals.h"
#include "cli/output/value.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// The result of a recording, and its earlier result.
struct GuardedRecording {
  std::string name;  ///< path below the folder
  struct Errors {
    double step = 0;   ///< of the step time: simulated / measured - 1
    double start = 0;  ///< median distance of device ops from their recorded start, of a step
  };
  std::optional<Errors> now = {};     ///< nothing: it cannot be read any more
  std::optional<Errors> before = {};  ///< nothing: new
  std::string trouble = {};
};

struct PredictionGuard {
  std::vector<GuardedRecording> recordings;  ///< by name
  bool has_baseline = false;
  CheckFindings findings;
};

/// By so much a magnitude of an error must grow to be worse, in parts of a step: replays are exact
/// to far less, and recordings that are explained to a percent are explained.
inline constexpr double kWorse = 0.005;

/// Replays every recording below the folder. `baseline` is what `to_json` made of an earlier guard;
/// empty: none, and nothing fails. Fails where there is no recording, or the baseline is none.
Result<PredictionGuard> guard_predictions(const std::filesystem::path& folder,
                                          const std::filesystem::path& baseline,
                                          const Globals& globals);

/// "predictions" of the JSON contract.
Value prediction_rows(const PredictionGuard& guard);

}  // namespace rehearse::cli
