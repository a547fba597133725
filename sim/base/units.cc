#include "sim/base/units.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "sim/base/largest.h"
#include "sim/base/text.h"

namespace rehearse {
namespace {

struct Unit {
  std::string_view name;
  double in_si;
};

constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
constexpr double kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024;

// Per kind, smallest unit first: printing takes the largest unit not above the value.
constexpr auto kSeconds = std::to_array<Unit>({{"ps", 1e-12},
                                               {"ns", 1e-9},
                                               {"us", 1e-6},
                                               {"ms", 1e-3},
                                               {"s", 1},
                                               {"min", kMinute},
                                               {"h", kHour},
                                               {"d", kDay}});
constexpr auto kBytes =
    std::to_array<Unit>({{"B", 1}, {"KiB", kKi}, {"MiB", kMi}, {"GiB", kGi}, {"TiB", kTi}});
constexpr auto kDecimalBytes =
    std::to_array<Unit>({{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}});
constexpr auto kFlops = std::to_array<Unit>({{"FLOP", 1},
                                             {"kFLOP", 1e3},
                                             {"MFLOP", 1e6},
                                             {"GFLOP", 1e9},
                                             {"TFLOP", 1e12},
                                             {"PFLOP", 1e15},
                                             {"EFLOP", 1e18},
                                             {"ZFLOP", 1e21}});
constexpr auto kByteRates =
    std::to_array<Unit>({{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}});
constexpr auto kBitRates = std::to_array<Unit>({{"bit/s", 1 / 8.0},
                                                {"kbit/s", 1e3 / 8},
                                                {"Mbit/s", 1e6 / 8},
                                                {"Gbit/s", 1e9 / 8},
                                                {"Tbit/s", 1e12 / 8},
                                                {"KiB/s", kKi},
                                                {"MiB/s", kMi},
                                                {"GiB/s", kGi},
                                                {"TiB/s", kTi}});
constexpr auto kFlopRates = std::to_array<Unit>({{"FLOP/s", 1},
                                                 {"kFLOP/s", 1e3},
                                                 {"MFLOP/s", 1e6},
                                                 {"GFLOP/s", 1e9},
                                                 {"TFLOP/s", 1e12},
                                                 {"PFLOP/s", 1e15},
                                                 {"EFLOP/s", 1e18}});
constexpr auto kWatts = std::to_array<Unit>({{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}, {"MW", 1e6}});
constexpr auto kJoules =
    std::to_array<Unit>({{"mJ", 1e-3}, {"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}, {"GJ", 1e9}});
constexpr auto kWattHours = std::to_array<Unit>({{"Wh", 3600}, {"kWh", 3.6e6}, {"MWh", 3.6e9}});
constexpr auto kUsd = std::to_array<Unit>({{"USD", 1}});
constexpr auto kThousandsOfUsd = std::to_array<Unit>({{"kUSD", 1e3}, {"MUSD", 1e6}});

/// `print` holds the units for output, `also` the additional units for input.
struct Kind {
  std::string_view what;
  std::span<const Unit> print;
  std::span<const Unit> also = {};
};

template <class Q>
constexpr Kind kKind = {};
template <>
constexpr Kind kKind<Seconds>{"a time", kSeconds};
template <>
constexpr Kind kKind<Bytes>{"a size", kBytes, kDecimalBytes};
template <>
constexpr Kind kKind<Flops>{"a number of operations", kFlops};
template <>
constexpr Kind kKind<ByteRate>{"a transfer rate", kByteRates, kBitRates};
template <>
constexpr Kind kKind<FlopRate>{"a rate of operations", kFlopRates};
template <>
constexpr Kind kKind<Watts>{"a power", kWatts};
template <>
constexpr Kind kKind<Joules>{"an energy", kJoules, kWattHours};
template <>
constexpr Kind kKind<Usd>{"an amount of money", kUsd, kThousandsOfUsd};

std::vector<std::string_view> unit_names(const Kind& kind) {
  std::vector<std::string_view> names;
  for (const Unit& u : kind.print) names.push_back(u.name);
  for (const Unit& u : kind.also) names.push_back(u.name);
  return names;
}

/// The letters of a unit in lower case, but for b and B: bits are no bytes.
std::string letters_of(std::string_view unit) {
  std::string letters;
  for (const char c : unit)
    if (c == 'b' || c == 'B')
      letters += c;
    else if (c != '/' && c != ' ')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

/// A unit with similar letters may be wrong by a factor of a thousand, so only units that differ in
/// nothing but case and strokes are suggested.
std::string suggest_unit(std::string_view unit, std::span<const std::string_view> names) {
  std::vector<std::string_view> same;
  for (const std::string_view name : names)
    if (letters_of(name) == letters_of(unit)) same.push_back(name);
  return same.size() == 1 ? fmt::format("did you mean '{}'?", same.front())
                          : "one of " + join(names, ", ");
}

/// A rate in bits, written "100 Gb/s" or "100 Gbps", in bytes; nothing for other units.
std::optional<std::string> bits_in_bytes(double number, std::string_view unit) {
  for (const std::string_view second : {"b/s", "bps"}) {
    if (!unit.ends_with(second)) continue;
    const std::string_view prefix = unit.substr(0, unit.size() - second.size());
    for (const Unit& u : kBitRates)
      if (u.name.ends_with("bit/s") && u.name.substr(0, u.name.size() - 5) == prefix)
        return fmt::format("for bits write '{:g} {}', which is {}", number, u.name,
                           to_string(ByteRate::bytes_per_s(number * u.in_si)));
  }
  return std::nullopt;
}

Result<double> parse_si(std::string_view text, const Kind& kind) {
  const std::string_view whole = trim(text);
  double number = 0;
  const auto [rest, error] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
  const std::vector<std::string_view> names = unit_names(kind);
  if (error != std::errc{} || !std::isfinite(number))
    return fail(fmt::format("'{}' is not {}", whole, kind.what),
                fmt::format("a number and a unit, such as '2.5 {}'", names[0]));
  std::string unit(trim(whole.substr(static_cast<std::size_t>(rest - whole.data()))));
  if (unit.empty())
    return fail(fmt::format("'{}' has no unit", whole), "one of " + join(names, ", "));
  // Long times in words: "5 days".
  for (const std::string_view word : {"hour", "day"})
    if (unit == word || (unit.starts_with(word) && unit == std::string(word) + "s"))
      unit = word.substr(0, 1);
  if (unit == "µs" || unit == "μs") unit = "us";  // micro sign and Greek mu
  for (const auto units : {kind.print, kind.also})
    for (const Unit& u : units)
      if (u.name == unit) return number * u.in_si;
  const std::string problem = fmt::format("unknown unit '{}' for {}", unit, kind.what);
  if (kind.print.data() == kByteRates.data())
    if (const auto bits = bits_in_bytes(number, unit)) return fail(problem, *bits);
  return fail(problem, suggest_unit(unit, names));
}

std::string print_si(double value, std::span<const Unit> units, int digits = 3) {
  const double size = std::abs(value);
  const Unit* unit = &units.front();
  // 999.6 ms would print as "1000 ms": step up where the digits shown round to the next unit.
  for (const Unit& u : units)
    if (size >= u.in_si * (1 - 0.5 * std::pow(10, -digits))) unit = &u;
  if (value == 0) unit = &units.front();
  return fmt::format("{} {}", significant(value / unit->in_si, digits), unit->name);
}

}  // namespace

template <class Q>
Result<Q> parse_quantity(std::string_view text) {
  const double si = TRY(parse_si(text, kKind<Q>));
  if (std::string range = range_missed<Q>(si); !range.empty())
    return fail(fmt::format("'{}' is out of range", trim(text)), std::move(range));
  return Q::from_si(si);
}
template Result<Seconds> parse_quantity<Seconds>(std::string_view);
template Result<Bytes> parse_quantity<Bytes>(std::string_view);
template Result<Flops> parse_quantity<Flops>(std::string_view);
template Result<ByteRate> parse_quantity<ByteRate>(std::string_view);
template Result<FlopRate> parse_quantity<FlopRate>(std::string_view);
template Result<Watts> parse_quantity<Watts>(std::string_view);
template Result<Joules> parse_quantity<Joules>(std::string_view);
template Result<Usd> parse_quantity<Usd>(std::string_view);

std::string to_string(Seconds s, int digits) {
  return s.s() == 0 ? "0 s" : print_si(s.s(), kSeconds, digits);
}
std::string to_string(Bytes b) { return print_si(b.b(), kBytes); }
std::string to_string(Flops f) { return print_si(f.flop(), kFlops); }
std::string to_string(ByteRate r) { return print_si(r.bytes_per_s(), kByteRates); }
std::string to_string(FlopRate r) { return print_si(r.flop_per_s(), kFlopRates); }
std::string to_string(Watts w) { return print_si(w.w(), kWatts); }
std::string to_string(Joules j) { return print_si(j.j(), kJoules); }
std::string to_string(Usd u) {
  // A step may cost less than a cent.
  return std::abs(u.usd()) < 1 ? significant(u.usd()) + " USD" : fmt::format("{:.2f} USD", u.usd());
}

}  // namespace rehearse
