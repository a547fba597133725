// Integer time. Recorded instants and durations are whole nanoseconds, simulated ones whole
// picoseconds, so that sums are exact and runs repeat to the byte.
//
// Both types serve as instants (since the origin of a trace or a run) and as durations, as their
// names in an interface say. int64 picoseconds reach 106 days.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace rehearse {

template <class Self>
class IntegerTime {
 public:
  constexpr explicit IntegerTime(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }

  friend constexpr Self operator+(Self a, Self b) { return Self(a.count_ + b.count_); }
  friend constexpr Self operator-(Self a, Self b) { return Self(a.count_ - b.count_); }
  friend constexpr Self operator-(Self a) { return Self(-a.count_); }
  friend constexpr Self operator*(Self a, std::int64_t k) { return Self(a.count_ * k); }
  friend constexpr Self operator*(Self a, int k) { return Self(a.count_ * k); }
  /// Scales and rounds to the nearest unit.
  friend Self operator*(Self a, double k) {
    return Self(std::llround(static_cast<double>(a.count_) * k));
  }
  friend constexpr double operator/(Self a, Self b) {
    return static_cast<double>(a.count_) / static_cast<double>(b.count_);
  }
  friend constexpr auto operator<=>(const Self& a, const Self& b) { return a.count_ <=> b.count_; }
  friend constexpr bool operator==(const Self& a, const Self& b) { return a.count_ == b.count_; }
  constexpr Self& operator+=(Self b) {
    count_ += b.count_;
    return static_cast<Self&>(*this);
  }

 private:
  std::int64_t count_;
};

class Nanoseconds : public IntegerTime<Nanoseconds> {
 public:
  using IntegerTime::IntegerTime;
  constexpr Seconds seconds() const { return Seconds::s(static_cast<double>(count()) * 1e-9); }
};

class Picoseconds : public IntegerTime<Picoseconds> {
 public:
  using IntegerTime::IntegerTime;
  static constexpr Picoseconds from(Nanoseconds ns) { return Picoseconds(ns.count() * 1000); }
  /// Rounds to the nearest picosecond. The value must be finite and below 106 days.
  static Picoseconds from(Seconds s) {
    REHEARSE_CHECK(std::abs(s.s()) < 9.2e6, "{} s does not fit in 64-bit picoseconds", s.s());
    return Picoseconds(std::llround(s.s() * 1e12));
  }
  constexpr Seconds seconds() const { return Seconds::s(static_cast<double>(count()) * 1e-12); }
};

}  // namespace rehearse
