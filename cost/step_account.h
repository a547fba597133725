// What a step costs: energy, money, carbon.
//
// Energy is that of the devices: idle power plus the busy share of the step times what lies between
// idle and the power limit, which is how the Cloud Carbon Footprint coefficients are meant to be
// used (methodology, 2024). Hosts, switches and cooling are outside; carbon has the data centre's
// PUE on top. Money is the on-demand price of whole instances over the step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/catalog.h"
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
};

/// Devices of one kind.
struct PoweredDevices {
  std::string name;         ///< for people
  const cluster::Gpu* gpu;  ///< null: a host, which is outside
  double count;
  double busy;  ///< share of the step in which one computes, as a mean, 0 to 1
};

struct StepAccount {
  /// Absent where the catalog has no power limit of a device.
  std::optional<Estimate<Joules>> energy;
  std::optional<Estimate<Usd>> money;  ///< absent where the catalog lacks a price
  /// Grams of CO2 equivalent; needs a region.
  std::optional<Estimate<double>> carbon;
  /// Why something is absent, and what prices and intensities hold for, one line each.
  std::vector<std::string> notes;
};

/// The low end of energy takes devices that wait to be idle and busy ones at three quarters of the
/// limit; the high end, all at the limit for the whole step.
StepAccount account_of(const Estimate<Seconds>& step, std::span<const PoweredDevices> devices,
                       const Place& place);

}  // namespace rehearse::cost
