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

/// The result of one recording, and its earlier result.
struct GuardedRecording {
  std::string name;  ///< path below the folder
  struct Errors {
    double step = 0;   ///< of the step time: simulated / measured - 1
    double start = 0;  ///< median start error of device ops, as a share of a step
  };
  std::optional<Errors> now = {};     ///< absent: it can no longer be read
  std::optional<Errors> before = {};  ///< absent: it is new
  std::string trouble = {};
};

struct PredictionGuard {
  std::vector<GuardedRecording> recordings;  ///< by name
  bool has_baseline = false;
  CheckFindings findings;
};

/// An error is worse if its magnitude grows by more than this share of a step. Replays are exact to
/// far less, and a recording that is explained to within a percent counts as explained.
inline constexpr double kWorse = 0.005;

/// Replays every recording below the folder. `baseline` is the `to_json` output of an earlier
/// guard; if it is empty, nothing fails. Fails if there is no recording, or if the baseline is not
/// such output.
Result<PredictionGuard> guard_predictions(const std::filesystem::path& folder,
                                          const std::filesystem::path& baseline,
                                          const Globals& globals);

/// The key "predictions" of the JSON contract.
Value prediction_rows(const PredictionGuard& guard);

}  // namespace rehearse::cli
