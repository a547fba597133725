#include "cost/prices.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/core.h>

#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cost {
namespace {

int number_of(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

/// The median. Of an even number of prices, it is the lower middle one, so that it is an actual
/// price.
Quote median(std::vector<const InstancePrice*> zones) {
  const auto middle = zones.begin() + static_cast<std::ptrdiff_t>((zones.size() - 1) / 2);
  std::nth_element(
      zones.begin(), middle, zones.end(),
      [](const InstancePrice* a, const InstancePrice* b) { return *a->spot < *b->spot; });
  return {*(*middle)->spot, (*middle)->region, (*middle)->origin.as_of,
          (*middle)->origin.recalled()};
}

}  // namespace

std::optional<Day> day_of(std::string_view as_of) {
  as_of = as_of.substr(0, as_of.find(".."));
  if (as_of.empty()) return std::nullopt;
  using namespace std::chrono;
  const std::vector<std::string_view> parts = split(as_of, '-');
  const year y{number_of(parts[0])};
  if (parts.size() == 1) return Day(y / December / last);
  const month m{static_cast<unsigned>(number_of(parts[1]))};
  if (parts.size() == 2) return Day(y / m / last);
  return Day(y / m / day{static_cast<unsigned>(number_of(parts[2]))});
}

std::optional<std::string> stale(const Quote& quote, Day today) {
  const std::optional<Day> day = day_of(quote.as_of);
  if (!day || today - *day <= kStaleAfter) return std::nullopt;
  return fmt::format("stale: of {}, more than {} days old", quote.as_of, kStaleAfter.count());
}

const PriceBook& PriceBook::shipped() {
  static const PriceBook kBook{instance_prices()};
  return kBook;
}

Result<PriceBook> PriceBook::over_shipped(std::string_view text, std::string name) {
  std::vector<InstancePrice> own = TRY(parse_instance_prices(text, std::move(name)));
  std::set<std::string_view> named;
  for (const InstancePrice& price : own) named.insert(price.instance);
  std::vector<InstancePrice> rows;
  for (const InstancePrice& price : instance_prices())
    if (!named.contains(price.instance)) rows.push_back(price);
  rows.insert(rows.end(), own.begin(), own.end());
  return PriceBook(std::move(rows));
}

Result<PriceBook> PriceBook::over_shipped(const std::filesystem::path& file) {
  const std::string text = TRY(read_file(file));
  return over_shipped(text, file.string());
}

std::optional<Quote> PriceBook::quote(std::string_view instance, std::string_view region,
                                      Market market) const {
  std::optional<Quote> best;
  const auto offer = [&](Quote quote) {
    if (!best || quote.rate < best->rate) best = std::move(quote);
  };
  std::map<std::string_view, std::vector<const InstancePrice*>> zones;  // by region
  for (const InstancePrice& price : rows_) {
    if (price.instance != instance) continue;
    if (!region.empty() && price.region != region && price.region != kAnyRegion) continue;
    if (market == Market::kSpot && price.spot) zones[price.region].push_back(&price);
    if (market == Market::kOnDemand && price.on_demand)
      offer({*price.on_demand, price.region, price.origin.as_of, price.origin.recalled()});
  }
  for (const auto& [where, of_region] : zones) offer(median(of_region));
  return best;
}

std::vector<std::string> PriceBook::regions(std::string_view provider) const {
  std::set<std::string> regions;
  for (const InstancePrice& price : rows_)
    if (provider.empty() || price.provider == provider) regions.insert(price.region);
  return {regions.begin(), regions.end()};
}

}  // namespace rehearse::cost
