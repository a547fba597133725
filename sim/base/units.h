// Physical quantities as types. A size divided by a rate is a time; a size plus a time does not
// compile. A quantity has no default value and no implicit conversion: it is made by a named
// constructor (`Bytes::gib(80)`) and read by a named reader (`bytes.gib()`).
//
// kB, MB, GB are powers of 1000; KiB, MiB, GiB powers of 1024. 400 Gbit/s is 50 GB/s.
// Simulated instants are integers and live in time.h.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "sim/base/result.h"

namespace rehearse {

/// Operations that every quantity has with its own kind: add, subtract, compare, scale by a number,
/// and divide into a plain ratio. `Self` adds the named constructors and readers.
template <class Self>
class Quantity {
 public:
  friend constexpr Self operator+(Self a, Self b) { return from_si(a.value_ + b.value_); }
  friend constexpr Self operator-(Self a, Self b) { return from_si(a.value_ - b.value_); }
  friend constexpr Self operator*(Self a, double k) { return from_si(a.value_ * k); }
  friend constexpr Self operator*(double k, Self a) { return from_si(a.value_ * k); }
  friend constexpr Self operator/(Self a, double k) { return from_si(a.value_ / k); }
  friend constexpr double operator/(Self a, Self b) { return a.value_ / b.value_; }
  friend constexpr auto operator<=>(const Self& a, const Self& b) { return a.value_ <=> b.value_; }
  friend constexpr bool operator==(const Self& a, const Self& b) { return a.value_ == b.value_; }
  constexpr Self& operator+=(Self b) {
    value_ += b.value_;
    return static_cast<Self&>(*this);
  }

  /// The magnitude in the SI unit of this kind (s, B, FLOP, B/s, FLOP/s, W, J) or in USD.
  constexpr double si() const { return value_; }
  static constexpr Self from_si(double value) { return Self(value); }

 protected:
  constexpr explicit Quantity(double value) : value_(value) {}

 private:
  double value_;
};

class Seconds : public Quantity<Seconds> {
 public:
  static constexpr Seconds s(double v) { return Seconds(v); }
  static constexpr Seconds ms(double v) { return Seconds(v * 1e-3); }
  static constexpr Seconds us(double v) { return Seconds(v * 1e-6); }
  static constexpr Seconds ns(double v) { return Seconds(v * 1e-9); }
  constexpr double s() const { return si(); }
  constexpr double ms() const { return si() * 1e3; }
  constexpr double us() const { return si() * 1e6; }

 private:
  friend Quantity<Seconds>;
  constexpr explicit Seconds(double si) : Quantity(si) {}
};

class Bytes : public Quantity<Bytes> {
 public:
  static constexpr Bytes b(double v) { return Bytes(v); }
  static constexpr Bytes mb(double v) { return Bytes(v * 1e6); }
  static constexpr Bytes gb(double v) { return Bytes(v * 1e9); }
  static constexpr Bytes kib(double v) { return Bytes(v * 1024.0); }
  static constexpr Bytes mib(double v) { return Bytes(v * 1048576.0); }
  static constexpr Bytes gib(double v) { return Bytes(v * 1073741824.0); }
  constexpr double b() const { return si(); }
  constexpr double mib() const { return si() / 1048576.0; }
  constexpr double gib() const { return si() / 1073741824.0; }

 private:
  friend Quantity<Bytes>;
  constexpr explicit Bytes(double si) : Quantity(si) {}
};

/// A count of floating-point operations (a multiply-add is two).
class Flops : public Quantity<Flops> {
 public:
  static constexpr Flops flop(double v) { return Flops(v); }
  static constexpr Flops tflop(double v) { return Flops(v * 1e12); }
  constexpr double flop() const { return si(); }
  constexpr double tflop() const { return si() * 1e-12; }

 private:
  friend Quantity<Flops>;
  constexpr explicit Flops(double si) : Quantity(si) {}
};

class ByteRate : public Quantity<ByteRate> {
 public:
  static constexpr ByteRate bytes_per_s(double v) { return ByteRate(v); }
  static constexpr ByteRate gb_per_s(double v) { return ByteRate(v * 1e9); }
  static constexpr ByteRate gbit_per_s(double v) { return ByteRate(v * 1e9 / 8); }
  constexpr double bytes_per_s() const { return si(); }
  constexpr double gb_per_s() const { return si() * 1e-9; }

 private:
  friend Quantity<ByteRate>;
  constexpr explicit ByteRate(double si) : Quantity(si) {}
};

class FlopRate : public Quantity<FlopRate> {
 public:
  static constexpr FlopRate flop_per_s(double v) { return FlopRate(v); }
  static constexpr FlopRate tflop_per_s(double v) { return FlopRate(v * 1e12); }
  constexpr double flop_per_s() const { return si(); }
  constexpr double tflop_per_s() const { return si() * 1e-12; }

 private:
  friend Quantity<FlopRate>;
  constexpr explicit FlopRate(double si) : Quantity(si) {}
};

class Watts : public Quantity<Watts> {
 public:
  static constexpr Watts w(double v) { return Watts(v); }
  constexpr double w() const { return si(); }

 private:
  friend Quantity<Watts>;
  constexpr explicit Watts(double si) : Quantity(si) {}
};

class Joules : public Quantity<Joules> {
 public:
  static constexpr Joules j(double v) { return Joules(v); }
  static constexpr Joules kwh(double v) { return Joules(v * 3.6e6); }
  constexpr double j() const { return si(); }
  constexpr double kwh() const { return si() / 3.6e6; }

 private:
  friend Quantity<Joules>;
  constexpr explicit Joules(double si) : Quantity(si) {}
};

class Usd : public Quantity<Usd> {
 public:
  static constexpr Usd usd(double v) { return Usd(v); }
  constexpr double usd() const { return si(); }

 private:
  friend Quantity<Usd>;
  constexpr explicit Usd(double si) : Quantity(si) {}
};

/// The meaningful products. `Rate` times `Time` is `Amount`; the three quotients follow.
template <class Rate, class Time>
struct AmountOf;
template <>
struct AmountOf<ByteRate, Seconds> {
  using Amount = Bytes;
};
template <>
struct AmountOf<FlopRate, Seconds> {
  using Amount = Flops;
};
template <>
struct AmountOf<Watts, Seconds> {
  using Amount = Joules;
};

template <class Rate>
constexpr typename AmountOf<Rate, Seconds>::Amount operator*(Rate rate, Seconds time) {
  return AmountOf<Rate, Seconds>::Amount::from_si(rate.si() * time.si());
}
template <class Rate>
constexpr typename AmountOf<Rate, Seconds>::Amount operator*(Seconds time, Rate rate) {
  return rate * time;
}
constexpr Seconds operator/(Bytes amount, ByteRate rate) {
  return Seconds::s(amount.si() / rate.si());
}
constexpr Seconds operator/(Flops amount, FlopRate rate) {
  return Seconds::s(amount.si() / rate.si());
}
constexpr Seconds operator/(Joules amount, Watts rate) {
  return Seconds::s(amount.si() / rate.si());
}
constexpr ByteRate operator/(Bytes amount, Seconds time) {
  return ByteRate::bytes_per_s(amount.si() / time.si());
}
constexpr FlopRate operator/(Flops amount, Seconds time) {
  return FlopRate::flop_per_s(amount.si() / time.si());
}
constexpr Watts operator/(Joules amount, Seconds time) { return Watts::w(amount.si() / time.si()); }

/// Reads "2.4 ms", "80 GiB", "200 Gbit/s". The unit is required; a bare number is an error that
/// names the units this kind accepts. The value must be finite.
/// Instantiated for every quantity above.
template <class Q>
Result<Q> parse_quantity(std::string_view text);

/// The same as a number in SI units.
template <class Q>
Result<double> parse_si(std::string_view text) {
  return parse_quantity<Q>(text).map([](Q quantity) { return quantity.si(); });
}

/// "2.40 ms", "11.2 GiB": three significant digits (or `digits`) in the unit that suits the size.
std::string to_string(Seconds, int digits = 3);
std::string to_string(Bytes);
std::string to_string(Flops);
std::string to_string(ByteRate);
std::string to_string(FlopRate);
std::string to_string(Watts);
std::string to_string(Joules);
std::string to_string(Usd);

}  // namespace rehearse
