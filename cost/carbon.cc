#include "cost/carbon.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/csv_row.h"
#include "sim/base/file.h"

namespace rehearse::cost {
namespace {

/// The number in this many digits; nothing unless all characters are digits.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t digits) {
  int value = 0;
  for (std::size_t i = at; i < at + digits; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

/// Seconds since 1970 of "2026-01-31T18:00Z"; nothing where it is none.
std::optional<std::int64_t> time_of(std::string_view text) {
  if (text.size() != 17 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != 'Z')
    return std::nullopt;
  const auto year = digits_at(text, 0, 4), month = digits_at(text, 5, 2),
             day = digits_at(text, 8, 2), hour = digits_at(text, 11, 2),
             minute = digits_at(text, 14, 2);
  if (!year || !month || !day || !hour || !minute || *hour > 23 || *minute > 59)
    return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)});
  if (!date.ok()) return std::nullopt;
  return std::int64_t{std::chrono::sys_days(date).time_since_epoch().count()} * 86400 +
         *hour * 3600 + *minute * 60;
}

struct Row {
  std::string region;
  std::int64_t time;
  CarbonIntensity intensity;
};

}  // namespace

const GridCarbon* grid_of(std::string_view provider, std::string_view region) {
  for (const GridCarbon& grid : grid_carbon())
    if (grid.region == region && (provider.empty() || grid.provider == provider) &&
        grid.basis == CarbonBasis::kLocationBased)
      return &grid;
  return nullptr;
}

Result<CarbonHours> CarbonHours::parse(std::string_view text, std::string name) {
  CarbonHours hours;
  hours.name_ = name;
  std::map<std::string, std::int64_t> last;
  const std::vector<Row> rows = TRY(read_rows<Row>(text, std::move(name), [&](const CsvRow& row) {
    Row read{row.required("region"), 0,
             CarbonIntensity::g_per_kwh(row.required_number("gco2e_per_kwh"))};
    const std::string time = row.required("time");
    const std::optional<std::int64_t> at = time_of(time);
    if (!at && !time.empty())
      row.report("time", "'" + time + "' is no time", "such as 2026-01-31T18:00Z");
    if (!at) return read;
    read.time = *at;
    const auto [before, first] = last.emplace(read.region, *at);
    if (!first && *at <= before->second)
      row.report("time", "'" + time + "' is not later than the previous one",
                 "ascending times per region");
    before->second = *at;
    return read;
  }));
  if (rows.empty()) return fail_in(hours.name_, "has no rows", "region,time,gco2e_per_kwh");
  std::map<std::string, std::int64_t> from;
  for (const Row& row : rows) {
    std::vector<Span>& spans = hours.by_region_[row.region];
    if (!spans.empty()) spans.back().seconds = static_cast<double>(row.time - from[row.region]);
    from[row.region] = row.time;
    spans.push_back({spans.empty() ? 3600 : spans.back().seconds, row.intensity});
  }
  return hours;
}

Result<CarbonHours> CarbonHours::load(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path));
  return parse(text, path.string());
}

CarbonIntensity CarbonHours::mean(std::string_view region, Seconds lasts) const {
  REHEARSE_CHECK(std::isfinite(lasts.s()) && lasts.s() >= 0);
  const std::vector<Span>& spans = by_region_.find(region)->second;
  if (lasts.s() == 0) return spans.front().intensity;
  double whole = 0, cycle = 0;
  for (const Span& span : spans) {
    whole += span.seconds;
    cycle += span.seconds * span.intensity.si();
  }
  const double cycles = std::floor(lasts.s() / whole);
  double left = lasts.s() - cycles * whole, sum = cycles * cycle;
  for (const Span& span : spans) {
    const double here = std::min(left, span.seconds);
    if (here <= 0) break;
    sum += here * span.intensity.si();
    left -= here;
  }
  return CarbonIntensity::from_si(sum / lasts.s());
}

CarbonIntensity CarbonHours::mean(std::string_view region) const {
  double whole = 0;
  for (const Span& span : by_region_.find(region)->second) whole += span.seconds;
  return mean(region, Seconds::s(whole));
}

}  // namespace rehearse::cost
