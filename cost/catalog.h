// The catalog of prices, carbon and power: published facts, each with its source. Its
// files are cost/catalog/*.csv, compiled into the program; docs/concepts/catalog.md describes
// them.
//
// Invariants of the shipped tables (checked when they are read, and by tests/unit/catalog_test.cc):
//  1. An unknown value is absent, never zero. A price of zero is free by definition.
//  2. Every row names sources that are in sim/cluster/catalog/sources.csv, and a date.
// They are read once, at first use, and kept for the life of the program; safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/origin.h"

namespace rehearse::cost {

class UsdRate : public Quantity<UsdRate> {
 public:
  static constexpr UsdRate usd_per_h(double v) { return UsdRate(v / 3600); }
  constexpr double usd_per_h() const { return si() * 3600; }

 private:
  friend Quantity<UsdRate>;
  constexpr explicit UsdRate(double si) : Quantity(si) {}
};

/// Mass of greenhouse gases, as that of carbon dioxide of equal effect, per energy. Its si() is
/// g/J.
class CarbonIntensity : public Quantity<CarbonIntensity> {
 public:
  static constexpr CarbonIntensity g_per_kwh(double v) { return CarbonIntensity(v / 3.6e6); }
  constexpr double g_per_kwh() const { return si() * 3.6e6; }

 private:
  friend Quantity<CarbonIntensity>;
  constexpr explicit CarbonIntensity(double si) : Quantity(si) {}
};

}  // namespace rehearse::cost

namespace rehearse {

/// Price per hour of an instance × its run time gives a cost.
template <>
struct AmountOf<cost::UsdRate, Seconds> {
  using Amount = Usd;
};

}  // namespace rehearse

namespace rehearse::cost {

/// The region name for all regions of a provider without their own row.
inline constexpr std::string_view kAnyRegion = "any";

/// The price of an instance in a region, from one source. At least one of the prices is present.
struct InstancePrice {
  std::string provider;
  /// A name in cluster::instances(), or "gpu:t4": one GPU added to an instance, without the
  /// instance.
  std::string instance;
  std::string region;
  std::string zone;  ///< zone of the spot price; empty: the whole region
  std::optional<UsdRate> on_demand;
  std::optional<UsdRate> spot;
  cluster::Origin origin;

  /// The GPU it pays for and how many: of the instance, or the added one. Nothing where the catalog
  /// does not know the GPU.
  std::optional<std::string_view> gpu() const;
  double gpu_count() const;
};

enum class CarbonBasis {
  kLocationBased,  ///< carbon of the grid
  kCfeAdjusted,    ///< less the provider's share of carbon-free energy
};
std::string_view to_string(CarbonBasis);

/// The carbon intensity of electricity in a provider's region, or in a country, state or grid zone.
/// There may be several sources for one place: use one source throughout.
struct GridCarbon {
  std::string provider = {};  ///< empty: a country, state or zone
  std::string region;         ///< region of the provider, or country code; may be empty
  std::string location;       ///< in words; may be empty
  CarbonIntensity intensity;
  CarbonBasis basis;
  std::string data_year = {};  ///< year of the measurement, if known
  cluster::Origin origin;
};

/// Power usage effectiveness: energy of a data centre ÷ energy of its computers.
struct Pue {
  std::string provider;
  std::string region;
  double pue;
  cluster::Origin origin;
};

/// Power or energy of a component, idle (`min`) and at full load (`max`).
struct PowerCoefficient {
  std::string provider;   ///< "any": of all
  std::string component;  ///< "cpu_per_vcpu", "gpu", "memory", …
  std::string item;       ///< "Cascade Lake", "a100", …
  std::optional<double> min;
  double max;
  std::string unit;  ///< unit of both
  cluster::Origin origin;
};

/// Storage, requests and transfer out of a cloud.
struct StoragePrice {
  std::string provider;
  std::string item;
  std::string region;
  std::string kind;  ///< "storage", "request", "egress", …
  double price;
  std::string unit;  ///< "USD/GB-month", …
  cluster::Origin origin;
};

/// Price or limit of a function service ("serverless").
struct FunctionPrice {
  std::string service;
  std::string architecture;
  std::string item;
  double value;
  std::string unit;
  std::string scope;  ///< condition of the price; empty: always
  cluster::Origin origin;
};

const std::vector<InstancePrice>& instance_prices();
const std::vector<GridCarbon>& grid_carbon();
const std::vector<Pue>& pues();
const std::vector<PowerCoefficient>& power_coefficients();
const std::vector<StoragePrice>& storage_prices();
const std::vector<FunctionPrice>& function_prices();

/// The table from text in the format of the shipped file; `name` is the file name in messages.
/// Prices may have any source, and the columns confidence and notes are optional.
Result<std::vector<InstancePrice>> parse_instance_prices(std::string_view text, std::string name);

}  // namespace rehearse::cost
