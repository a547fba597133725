// Quantity: a number with its unit and, where it is predicted, its interval and provenance. Every
// format renders a quantity by the rules of its unit, which are defined only here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::cli {

/// The magnitude in which a table column shows a unit: "ms", 1e-3.
struct Scale {
  std::string_view name;  ///< as in headings; empty: none was chosen
  double si = 1;
  int digits = 4;      ///< significant ones (0: all), or decimals where `fixed`
  bool fixed = false;  ///< so that the decimal points of a column are aligned
};

/// The scales of tables. A quantity has the same unit and digits in every table.
namespace in {
inline constexpr Scale kHours{"h", 3600, 3};
inline constexpr Scale kSeconds{"s", 1, 4};
inline constexpr Scale kMs{"ms", 1e-3, 3, true};
inline constexpr Scale kUs{"us", 1e-6, 1, true};
inline constexpr Scale kShortUs{"us", 1e-6, 4};  ///< of single operations, which may take 1 us
inline constexpr Scale kGib{"GiB", 1024. * 1024 * 1024, 1, true};
inline constexpr Scale kMib{"MiB", 1024. * 1024, 3, true};
inline constexpr Scale kMb{"MB", 1e6, 3};
inline constexpr Scale kKb{"kB", 1e3, 1, true};
inline constexpr Scale kGbPerS{"GB/s", 1e9, 4};
inline constexpr Scale kMhz{"MHz", 1e6, 0, true};
inline constexpr Scale kUsd{"USD", 1, 4};
inline constexpr Scale kJoules{"J", 1, 3};
inline constexpr Scale kKj{"kJ", 1e3, 4};
inline constexpr Scale kKwh{"kWh", 3.6e6, 3};
inline constexpr Scale kWatts{"W", 1, 1, true};
inline constexpr Scale kGrams{"gCO2e", 1, 4};
inline constexpr Scale kKg{"kgCO2e", 1e3, 3};
inline constexpr Scale kPercent{"%", 0.01, 1, true};
inline constexpr Scale kWholePercent{"%", 0.01, 0, true};
inline constexpr Scale kTimes{"×", 1, 3};
inline constexpr Scale kMillions{"M", 1e6, 3};
}  // namespace in

/// The unit of a number.
struct Unit {
  std::string_view si;                 ///< in JSON
  std::string (*words)(double value);  ///< in the magnitude that suits the value; may be null
  Scale scale;                         ///< in tables for programs, for a column that chose none

  /// For people.
  std::string text(double value) const;
};

namespace unit {
extern const Unit kTime, kSize, kByteRate, kEnergy, kMoney, kCarbon, kRate, kSamples, kTokens,
    kFrequency;
/// Numbers without a unit: parts of a whole, relative changes (with a sign), ratios.
extern const Unit kShare, kChange, kFactor;
/// Plain numbers.
extern const Unit kCount;
}  // namespace unit

struct Quantity {
  double value;
  const Unit* unit;
  std::optional<std::pair<double, double>> interval = {};  ///< of 90 %: low, high
  std::optional<Provenance> provenance = {};
  bool bare = false;  ///< JSON has the number alone: its key names the unit

  Quantity(double number, const Unit& of) : value(number), unit(&of) {}
  Quantity(const Estimate<double>& e, const Unit& of)
      : value(e.value), unit(&of), interval({e.low, e.high}), provenance(e.provenance) {}
  Quantity(Seconds q) : Quantity(q.s(), unit::kTime) {}
  Quantity(Bytes q) : Quantity(q.b(), unit::kSize) {}
  Quantity(ByteRate q) : Quantity(q.bytes_per_s(), unit::kByteRate) {}
  Quantity(Joules q) : Quantity(q.j(), unit::kEnergy) {}
  Quantity(Usd q) : Quantity(q.usd(), unit::kMoney) {}
  template <class Q>
  requires(!std::is_same_v<Q, double>) Quantity(const Estimate<Q>& e) : Quantity(Q(e.value)) {
    interval = {e.low.si(), e.high.si()};
    provenance = e.provenance;
  }
};

/// A quantity whose JSON is the number alone, because its key names the unit ("measured_s").
Quantity bare(Quantity quantity);
/// A ratio, which JSON has as a number.
inline Quantity share(double value) { return bare({value, unit::kShare}); }
inline Quantity change(double value) { return bare({value, unit::kChange}); }
inline Quantity factor(double value) { return bare({value, unit::kFactor}); }

/// "1.94 s per step (1.86 – 2.03 s)"; without an interval the value alone.
std::string range_words(const Quantity& quantity, std::string_view what = "");
/// The same with the provenance in the brackets.
std::string sourced_words(const Quantity& quantity);
/// A number in a table, without its unit: "1234.5".
std::string digits_of(double value, const Scale& scale);
/// "1234567.8" -> "1,234,567.8", for people.
std::string with_commas(std::string digits);

/// A part of a predicted whole, with the relative interval of the whole.
Estimate<Seconds> part_of(const Estimate<Seconds>& whole, Seconds part);
Estimate<double> scaled(const Estimate<double>& e, double by);

}  // namespace rehearse::cli
