// Budgets: the limits of a check on time, energy, memory and cost (docs/formats/budget.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::cli {

/// A limit on one quantity: relative to the baseline, or an absolute value of the candidate.
struct Limit {
  enum class Of { kQuantity, kOps, kCostPerStep, kCostPerEpoch };
  Of of = Of::kQuantity;
  std::string name = {};  ///< "step_time", "cost_per_epoch"; for ops, the pattern of their names
  std::optional<double> rise = {};  ///< a rise of this much or more is not allowed: 0.03
  std::optional<double> most = {};  ///< in the SI unit of the quantity
};

/// "step_time", "ops: *gemm*"
std::string describe(const Limit& limit);
/// "+3 %", "76 GiB"
std::string allowed(const Limit& limit);
/// A value of the limited quantity, with its unit.
std::string amount(const Limit& limit, double value);

/// "3%", "+2 %" -> 0.02. Above 0 %, at most 1000 %.
Result<double> parse_rise(std::string_view text);

/// Fails with every mistake in the file, one line each.
Result<std::vector<Limit>> read_budget(const std::filesystem::path& path);
/// Reads the same from text in memory; `name` is the file name in messages.
Result<std::vector<Limit>> parse_budget(const std::string& text, std::string name);

}  // namespace rehearse::cli
