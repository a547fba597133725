// Prices of instances: the catalog's with their dates, overridden by a user's own.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/catalog.h"

namespace rehearse::cost {

using Day = std::chrono::sys_days;

enum class Market : std::uint8_t { kOnDemand, kSpot };
inline constexpr std::string_view kMarketNames[] = {"on demand", "spot"};
/// The names of the markets in job files and JSON.
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

/// The text "stale: of 2025, more than 180 days old" if the quote is stale on that day.
std::optional<std::string> stale(const Quote& quote, Day today);

class PriceBook {
 public:
  static const PriceBook& shipped();
  /// The shipped prices, except that an instance that the file names has only the file's prices.
  /// The file has the form of cost/catalog/instance_prices.csv (docs/formats/prices.md). Fails with
  /// every mistake, by line.
  static Result<PriceBook> over_shipped(const std::filesystem::path& file);
  static Result<PriceBook> over_shipped(std::string_view text, std::string name);

  /// An on-demand price is that of the region, or, if `region` is empty, the lowest of all regions.
  /// Spot prices are per zone, so a spot price is the median of a region's zones, or the lowest
  /// such median. Nothing if there is no price: none is made up.
  std::optional<Quote> quote(std::string_view instance, std::string_view region,
                             Market market) const;

  /// The regions that have a price for an instance of the provider (any provider, if empty), each
  /// once, sorted.
  std::vector<std::string> regions(std::string_view provider) const;

 private:
  explicit PriceBook(std::vector<InstancePrice> rows) : rows_(std::move(rows)) {}
  std::vector<InstancePrice> rows_;
};

}  // namespace rehearse::cost
