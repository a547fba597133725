// Prices of instances: the catalog's with their dates, overridden by a user's own.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/catalog.h"

namespace rehearse::cost {

using Day = std::chrono::sys_days;

enum class Market : std::uint8_t { kOnDemand, kSpot };
inline constexpr std::string_view kMarketNames[] = {"on demand", "spot"};
/// In job files and JSON.
inline constexpr std::string_view kMarketKeys[] = {"on_demand", "spot"};

/// A price that holds for a job.
struct Quote {
  UsdRate rate;
  std::string region;
  std::string as_of;
  bool recalled;  ///< Origin::recalled
};

/// Older prices are reported as stale.
inline constexpr std::chrono::days kStaleAfter{180};

/// The last day of the date or, of a range, of its first date: "2026-07" is 31 July. Nothing where
/// the text is empty.
std::optional<Day> day_of(std::string_view as_of);

/// "stale: of 2025, more than 180 days old" where it is on that day.
std::optional<std::string> stale(const Quote& quote, Day today);

class PriceBook {
 public:
  static const PriceBook& shipped();
  /// The shipped prices, but of the instances that the file names only the file's. In the form of
  /// cost/catalog/instance_prices.csv (docs/formats/prices.md). Fails with every mistake, by line.
  static Result<PriceBook> over_shipped(const std::filesystem::path& file);
  static Result<PriceBook> over_shipped(std::string_view text, std::string name);

  /// On demand, the price in the region, else (empty) the lowest of all regions. Of spot, which is
  /// by zone, the median of a region's zones, else the lowest such median. Nothing where there is
  /// none: no price is made up.
  std::optional<Quote> quote(std::string_view instance, std::string_view region,
                             Market market) const;

  /// Regions that have a price of the provider's instances, each once, sorted; of any provider
  /// where empty.
  std::vector<std::string> regions(std::string_view provider) const;

 private:
  explicit PriceBook(std::vector<InstancePrice> rows) : rows_(std::move(rows)) {}
  std::vector<InstancePrice> rows_;
};

}  // namespace rehearse::cost
