// Energy, cost and carbon of a step, or of any other run time.
//
// Energy is that of the devices (power.h) and, if they are rented by the instance, of their
// hosts, their share of the network and the data centre's cooling (its PUE). Cost is the price of
// whole instances over the time. Carbon is energy times the intensity of the grid: of the region,
// or hour by hour if a file gives the hours.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/carbon.h"
#include "cost/prices.h"
#include "sim/base/estimate.h"

namespace rehearse::cost {

/// Machines of one kind.
struct Rented {
  std::string instance;  ///< in the catalog
  double count;
};

/// Where a job runs, as far as it is known.
struct Place {
  std::vector<Rented> rented;  ///< empty: not rented by the instance
  std::string region = {};     ///< region of their provider; empty: the cheapest with a price
  Market market = Market::kOnDemand;
  std::shared_ptr<const PriceBook> prices = {};   ///< absent: those that ship
  std::shared_ptr<const CarbonHours> hours = {};  ///< absent: the region's yearly mean
  /// The duration of the whole job, from the first of `hours`; absent: the mean of `hours` is used.
  std::optional<Seconds> lasts = {};
  std::optional<Day> today = {};  ///< absent: no price is reported as stale
};

/// Devices of one kind.
struct PoweredDevices {
  std::string name;         ///< for people
  const cluster::Gpu* gpu;  ///< null: a host, which is no device
  double count;
  double busy;  ///< share of the step in which one computes, as a mean, 0 to 1
};

/// The parts of energy; they add up to its value.
struct EnergyParts {
  Joules devices = Joules::j(0);
  Joules hosts = Joules::j(0);
  Joules network = Joules::j(0);
  Joules cooling = Joules::j(0);
};

struct StepAccount {
  /// Absent where the catalog has no power limit of a device.
  std::optional<Estimate<Joules>> energy;
  EnergyParts energy_parts;            ///< parts of `energy`, if present
  std::optional<Estimate<Usd>> money;  ///< absent where there is no price
  /// Grams of CO2 equivalent; needs a region.
  std::optional<Estimate<double>> carbon;
  /// Reasons for absent values, and the scope of prices and intensities, one line each.
  std::vector<std::string> notes;
};

/// The low end of energy takes devices that wait to be idle and busy ones at three quarters of the
/// limit; the high end, all at the limit for the whole step.
StepAccount account_of(const Estimate<Seconds>& step, std::span<const PoweredDevices> devices,
                       const Place& place);

/// Cost of everything rented, if every price is known. Appends one line to `notes` for each
/// rented instance: its price, or that there is none.
std::optional<Estimate<Usd>> money_of(const Estimate<Seconds>& step, const Place& place,
                                      std::vector<std::string>& notes);

/// The provider of the rented instances; empty if there are none, or it is not in the catalog.
std::string_view provider_of(const Place& place);

}  // namespace rehearse::cost
