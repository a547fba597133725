#include "cli/output/quantity.h"

#include <cmath>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

std::string time_words(double s) {
  if (s >= 2 * 86400.) return significant(s / 86400) + " days";
  if (s >= 2 * 3600.) return significant(s / 3600) + " h";
  if (s >= 120) return significant(s / 60) + " min";
  return to_string(Seconds::s(s));
}

template <class Q>
std::string text_in(double si) {
  return to_string(Q::from_si(si));
}

std::string money_words(double usd) {
  if (usd < 100) return to_string(Usd::usd(usd));
  return grouped(static_cast<std::uint64_t>(std::llround(usd))) + " USD";
}

std::string carbon_words(double g) {
  if (g >= 1e6) return significant(g / 1e6) + " tCO2e";
  return g >= 1e3 ? significant(g / 1e3) + " kgCO2e" : significant(g) + " gCO2e";
}

std::string rate_words(double per_s) { return with_commas(significant(per_s, 4)) + " /s"; }
std::string samples_words(double per_s) {
  return with_commas(significant(per_s, 4)) + " samples/s";
}
std::string tokens_words(double per_s) { return with_commas(significant(per_s, 4)) + " tokens/s"; }
std::string frequency_words(double hz) { return fmt::format("{:.0f} MHz", hz * 1e-6); }
std::string share_words(double share) {
  const int decimals = std::abs(share) < 0.00995 ? 2 : 1;
  return fmt::format("{:.{}f} %", share * 100, decimals);
}
std::string factor_words(double factor) { return significant(factor) + " ×"; }

}  // namespace

namespace unit {

constexpr Unit kTime{"s", time_words, {"s", 1, 6}};
constexpr Unit kSize{"B", text_in<Bytes>, {"B", 1, 0, true}};
constexpr Unit kByteRate{"B/s", text_in<ByteRate>, {"B/s", 1, 6}};
constexpr Unit kEnergy{"J", text_in<Joules>, {"J", 1, 6}};
constexpr Unit kMoney{"USD", money_words, {"USD", 1, 6}};
constexpr Unit kCarbon{"gCO2e", carbon_words, {"gCO2e", 1, 6}};
constexpr Unit kRate{"1/s", rate_words, {"1/s", 1, 6}};
constexpr Unit kSamples{"1/s", samples_words, {"samples/s", 1, 4}};
constexpr Unit kTokens{"1/s", tokens_words, {"tokens/s", 1, 4}};
constexpr Unit kFrequency{"Hz", frequency_words, {"Hz", 1, 6}};
constexpr Unit kShare{"1", share_words, {"%", 0.01, 1, true}};
constexpr Unit kChange{"1", signed_percent, {"%", 0.01, 2, true}};
constexpr Unit kFactor{"1", factor_words, {"", 1, 3}};
constexpr Unit kCount{"", nullptr, {"", 1, 0}};

}  // namespace unit

std::string Unit::text(double value) const {
  return words != nullptr ? words(value) : fmt::format("{:.10g} {}", value, si);
}

namespace {

/// One unit for both ends where it is the same: "1.86 – 2.03 s".
std::string interval_words(const Quantity& q) {
  std::string from = q.unit->text(q.interval->first);
  const std::string to = q.unit->text(q.interval->second);
  const std::size_t space = from.find(' ');
  if (space != std::string::npos && to.find(' ') != std::string::npos &&
      from.substr(space) == to.substr(to.find(' ')))
    from.resize(space);
  return from + " – " + to;
}

}  // namespace

Quantity bare(Quantity quantity) {
  quantity.bare = true;
  return quantity;
}

std::string range_words(const Quantity& q, std::string_view what) {
  const std::string value = q.unit->text(q.value) + std::string(what);
  if (!q.interval || (q.interval->first == q.value && q.interval->second == q.value)) return value;
  return fmt::format("{} ({})", value, interval_words(q));
}

std::string sourced_words(const Quantity& q) {
  if (!q.interval || !q.provenance) return range_words(q);
  return fmt::format("{} ({}, {})", q.unit->text(q.value), interval_words(q),
                     to_string(*q.provenance));
}

std::string digits_of(double value, const Scale& scale) {
  // Rounding to nothing has no sign.
  const double scaled = value / scale.si;
  if (scale.digits == 0 && !scale.fixed) return fmt::format("{:.10g}", scaled);
  if (!scale.fixed) return significant(scaled, scale.digits);
  const double half = 0.5 * std::pow(10, -scale.digits);
  return fmt::format("{:.{}f}", std::abs(scaled) < half ? 0.0 : scaled, scale.digits);
}

std::string with_commas(std::string digits) {
  const std::size_t begin = digits.starts_with('-') || digits.starts_with('+') ? 1 : 0;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  for (std::size_t at = point; at > begin + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

Estimate<Seconds> part_of(const Estimate<Seconds>& whole, Seconds part) {
  if (!(whole.value > Seconds::s(0))) return {part, part, part, whole.provenance};
  return {part, part * (whole.low / whole.value), part * (whole.high / whole.value),
          whole.provenance};
}

Estimate<double> scaled(const Estimate<double>& e, double by) { return e * by; }

}  // namespace rehearse::cli
