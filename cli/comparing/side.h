// A side of a comparison: the quantities of one result, by which results of any command compare.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/document.h"
#include "cli/output/quantity.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// A quantity that results may have.
struct ComparedField {
  std::string_view path;  ///< of keys in the JSON contract: "memory_per_device", "ttft.p50"
  std::string_view label;
  const Unit* unit;
  bool is_rate = false;  ///< more is better, and the ratio of two is a ratio of speeds
};

/// The results as a whole, and the parts of the time of a step.
std::span<const ComparedField> whole_fields();
std::span<const ComparedField> part_fields();

struct Side {
  std::string name;
  /// One for each compared field; empty where the result lacks it.
  std::vector<std::optional<Quantity>> whole = {}, parts = {};
  std::vector<Method> methods = {};  ///< of the result, as far as known
  std::string verdict = {};          ///< on its memory, where it has one: "fits", "does not fit"
};

Side side_of(std::string name, const Document& document);
/// A result that a command wrote with `--format json`. Fails if it has no step time and no rate.
Result<Side> read_side(const std::filesystem::path& path);

/// How many times as fast `b` is as `a`, with a 90 % interval: the errors of both count as independent,
/// so that the interval is too wide where both share a law. By the first rate that both have, because
/// steps may process different amounts, else by the step time; none if both have neither.
struct Speedup {
  Estimate<double> ratio;
  const ComparedField* by;
};
std::optional<Speedup> speedup(const Side& a, const Side& b);

/// Whether every quantity and every interval is equal: what tells the two apart has no effect.
bool same_results(const Side& a, const Side& b);

}  // namespace rehearse::cli
