// Carbon of electricity: by place, and by hour where a file gives the hours.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cost/catalog.h"

namespace rehearse::cost {

/// The catalog's row for a location. Null if it has none; an empty provider matches any.
const GridCarbon* grid_of(std::string_view provider, std::string_view region);

/// Intensities over time, by region (docs/formats/carbon.md). Each value holds until the time of
/// the next one. The last one holds as long as the one before it, or one hour if it is the only
/// one. After the last value the series starts again.
class CarbonHours {
 public:
  /// Columns region, time (2026-01-31T18:00Z) and gco2e_per_kwh; times of a region ascend. Fails
  /// with every mistake, by line.
  static Result<CarbonHours> parse(std::string_view text, std::string name);
  static Result<CarbonHours> load(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  bool has(std::string_view region) const { return by_region_.contains(region); }

  /// The mean intensity over a job that begins at the region's first time and runs for `lasts`:
  /// its energy times this is ∫ power × intensity dt for constant power, to rounding. For zero
  /// time, the first intensity. REQUIRES: has(region); lasts is finite and not negative.
  CarbonIntensity mean(std::string_view region, Seconds lasts) const;
  /// The mean over all times that are given for the region.
  CarbonIntensity mean(std::string_view region) const;

 private:
  struct Span {
    double seconds;
    CarbonIntensity intensity;
  };
  std::string name_;
  std::map<std::string, std::vector<Span>, std::less<>> by_region_;
};

}  // namespace rehearse::cost
