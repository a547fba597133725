// What a step costs, or any other time that a job runs: energy, money, carbon.
//
// Energy is that of the devices (power.h) and, where they are rented by the instance, of their
// hosts, their share of the network and the data centre's cooling (its PUE). Money is the price of
// whole instances over the time. Carbon is energy times the intensity of the grid: of the region,
// or hour by hour where a file gives the hours.
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
  std::string region;          ///< of their provider; empty: the cheapest that has a price
  Market market = Market::kOnDemand;
  std::shared_ptr<const PriceBook> prices = {};   ///< absent: those that ship
  std::shared_ptr<const CarbonHours> hours = {};  ///< absent: the region's yearly mean
  /// Of the whole job, from the first of `hours` on; absent: their mean.
  std::optional<Seconds> lasts = {};
  std::optional<Day> today = {};  ///< absent: no price is said to be stale
};

/// Devices of one kind.
struct PoweredDevices {
  std::string name;         ///< for people
  const cluster::Gpu* gpu;  ///< null: a host, which is no device
  double count;
  double busy;  ///< share of the step in which one computes, as a mean, 0 to 1
};

/// What energy is made of; they add up to its value.
struct EnergyParts {
  Joules devices = Joules::j(0);
  Joules hosts = Joules::j(0);
  Joules network = Joules::j(0);
  Joules cooling = Joules::j(0);
};

struct StepAccount {
  /// Absent where the catalog has no power limit of a device.
  std::optional<Estimate<Joules>> energy;
  EnergyParts energy_parts;            ///< of `energy`, where it is there
  std::optional<Estimate<Usd>> money;  ///< absent where there is no price
  /// Grams of CO2 equivalent; needs a region.
  std::optional<Estimate<double>> carbon;
  /// Why something is absent, and what prices and intensities hold for, one line each.
  std::vector<std::string> notes;
};

/// The low end of energy takes devices that wait to be idle and busy ones at three quarters of the
/// limit; the high end, all at the limit for the whole step.
StepAccount account_of(const Estimate<Seconds>& step, std::span<const PoweredDevices> devices,
                       const Place& place);

/// Of all that is rented, where every price is known. Appends to `notes`, one line for each of what
/// is rented: its price, or that there is none.
std::optional<Estimate<Usd>> money_of(const Estimate<Seconds>& step, const Place& place,
                                      std::vector<std::string>& notes);

/// The provider of what is rented; empty where nothing is, or the catalog does not know it.
std::string_view provider_of(const Place& place);

}  // namespace rehearse::cost
