// What a step costs: energy, money, carbon.
//
// Energy is that of the devices: idle power plus the busy share of the step times what lies between
// idle and the power limit, which is how the Cloud Carbon Footprint coefficients are meant to be
// used (methodology, 2024). Hosts, switches and cooling are outside; carbon has the data centre's
// PUE on top. Money is the on-demand price of whole instances over the step.
#pragma once

#include <optional>
#include <string>

#include "cost/catalog.h"
#include "sim/base/estimate.h"

namespace rehearse::cost {

/// Where a job runs, as far as it is known.
struct Place {
  std::string instance;  ///< in the catalog; empty: not rented by the instance
  double instances = 0;
  std::string region;  ///< of the instance's provider; empty: the cheapest that has a price
};

struct StepAccount {
  /// Absent where the catalog has no power limit of the device.
  std::optional<Estimate<Joules>> energy;
  std::optional<Estimate<Usd>> money;
  /// Grams of CO2 equivalent; needs a region.
  std::optional<Estimate<double>> carbon;
  /// Why something is absent, and what prices and intensities hold for, one line each.
  std::vector<std::string> notes;
};

/// `busy` is the share of the step in which a device computes, 0 to 1. The low end of energy takes
/// devices that wait to be idle and busy ones at three quarters of the limit; the high end, all at
/// the limit for the whole step.
StepAccount account_of(const Estimate<Seconds>& step, double busy, const cluster::Gpu& device,
                       double devices, const Place& place);

}  // namespace rehearse::cost
