#include "cli/recommending/amounts.h"

#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "sim/base/largest.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct Amount {
  double value;
  std::size_t unit;  ///< index into the names
};

/// The way out of an unknown unit. A name that is near by its letters is not suggested, for it may
/// be a thousand times off; '30B tokens' is written out.
std::string way_out(double value, std::string_view unit, std::span<const std::string_view> units) {
  constexpr std::pair<char, int> kPowers[] = {{'k', 3}, {'K', 3}, {'M', 6},
                                              {'B', 9}, {'G', 9}, {'T', 12}};
  for (const std::string_view name : units) {
    if (std::string(unit) + "s" == name) return fmt::format("did you mean '{}'?", name);
    for (const auto& [letter, power] : kPowers)
      if (unit.front() == letter && trim(unit.substr(1)) == name)
        return fmt::format("write '{:g}e{} {}'", value, power, name);
  }
  return "one of " + join(units, ", ");
}

/// A number above zero and one of the units.
Result<Amount> parse_amount(std::string_view text, std::span<const std::string_view> units,
                            std::string_view what) {
  const std::string_view whole = trim(text);
  Amount amount{};
  const auto [rest, error] =
      std::from_chars(whole.data(), whole.data() + whole.size(), amount.value);
  if (error != std::errc{} || !std::isfinite(amount.value) || amount.value <= 0)
    return fail(fmt::format("'{}' is not {}", whole, what),
                fmt::format("a number above zero and a unit, such as '300e9 {}'", units[0]));
  if (const std::string range = range_missed<double>(amount.value); !range.empty())
    return fail(fmt::format("'{}' is out of range", whole), range);
  const std::string_view unit = trim(whole.substr(static_cast<std::size_t>(rest - whole.data())));
  if (unit.empty())
    return fail(fmt::format("'{}' has no unit", whole), "one of " + join(units, ", "));
  for (amount.unit = 0; amount.unit < units.size(); ++amount.unit)
    if (unit == units[amount.unit]) return amount;
  return fail(fmt::format("unknown unit '{}' of {}", unit, what),
              way_out(amount.value, unit, units));
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
  constexpr std::string_view kUnits[] = {"tokens", "samples", "steps", "epochs"};
  const Amount amount = TRY(parse_amount(text, kUnits, "an amount of training"));
  Target target;
  (amount.unit == 0   ? target.tokens
   : amount.unit == 1 ? target.samples
   : amount.unit == 2 ? target.steps
                      : target.epochs) = amount.value;
  return target;
}

Result<double> parse_carbon(std::string_view text) {
  constexpr std::string_view kUnits[] = {"gCO2e", "kgCO2e", "tCO2e"};
  constexpr double kGrams[] = {1, 1e3, 1e6};
  const Amount amount = TRY(parse_amount(text, kUnits, "an amount of carbon"));
  return amount.value * kGrams[amount.unit];
}

}  // namespace rehearse::cli
