// The range of numbers in files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/core.h>

#include "sim/base/units.h"

namespace rehearse {

struct Largest {
  double si;
  std::string_view unit;
};

/// No quantity of a job, a machine or its bill is larger. A larger value is a mistake, and
/// arithmetic with it would overflow or run without an end. Readers of a key may allow less. `T` is
/// std::int64_t, double, or a quantity of units.h.
template <class T>
constexpr Largest largest() {
  if constexpr (std::is_same_v<T, std::int64_t>) return {1e15, ""};
  if constexpr (std::is_same_v<T, double>) return {1e30, ""};
  if constexpr (std::is_same_v<T, Seconds>) return {3.2e9, "s"};  // a century
  if constexpr (std::is_same_v<T, Bytes>) return {1e18, "B"};
  if constexpr (std::is_same_v<T, Flops>) return {1e30, "FLOP"};
  if constexpr (std::is_same_v<T, ByteRate>) return {1e18, "B/s"};
  if constexpr (std::is_same_v<T, FlopRate>) return {1e24, "FLOP/s"};
  if constexpr (std::is_same_v<T, Watts>) return {1e12, "W"};
  if constexpr (std::is_same_v<T, Joules>) return {1e18, "J"};
  if constexpr (std::is_same_v<T, Usd>) return {1e15, "USD"};
}

/// No quantity but 0 is smaller: what divides by a smaller one overflows.
inline constexpr double kSmallest = 1e-30;

/// "at most 1e+18 B/s".
inline std::string at_most(const Largest& largest) {
  return fmt::format("at most {:g}{}{}", largest.si, largest.unit.empty() ? "" : " ", largest.unit);
}

/// The range that a number of this kind should be in; empty if it is.
template <class T>
std::string range_missed(double si) {
  if (!(si <= largest<T>().si && si >= -largest<T>().si)) return at_most(largest<T>());
  if (si == 0 || si >= kSmallest || si <= -kSmallest) return {};
  return fmt::format("0, or at least {:g}{}{}", kSmallest, largest<T>().unit.empty() ? "" : " ",
                     largest<T>().unit);
}

}  // namespace rehearse
