#include "cost/step_account.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/check.h"

namespace rehearse::cost {
namespace {

/// Of the power limit, where the catalog has no idle power: A100 46 of 400 W, V100 35 of 300 W.
constexpr double kIdleShare = 0.115;
/// Least power of a busy device, of its limit: memory-bound kernels (a judgement).
constexpr double kLeastBusy = 0.75;

std::optional<Estimate<Joules>> energy_of(const Estimate<Seconds>& step, double busy,
                                          const cluster::Gpu& device, double devices,
                                          std::vector<std::string>& notes) {
  if (!device.power_limit) {
    notes.push_back(fmt::format("no energy: the catalog has no power limit of {}", device.name));
    return std::nullopt;
  }
  const Watts limit = *device.power_limit;
  const Watts idle = device.idle_power.value_or(limit * kIdleShare);
  const auto power = [&](Watts when_busy) { return idle + (when_busy - idle) * busy; };
  const Watts least = std::max(idle, limit * kLeastBusy);
  return Estimate<Joules>{power(limit) * step.value * devices, power(least) * step.low * devices,
                          limit * step.high * devices, Provenance::kDatasheet};
}

/// The on-demand price in the region, else the lowest of all regions.
const InstancePrice* price_of(const Place& place) {
  const InstancePrice* best = nullptr;
  for (const InstancePrice& price : instance_prices()) {
    if (price.instance != place.instance || !price.on_demand) continue;
    if (!place.region.empty() && price.region != place.region) continue;
    if (best == nullptr || *price.on_demand < *best->on_demand) best = &price;
  }
  return best;
}

const GridCarbon* grid_of(std::string_view provider, std::string_view region) {
  for (const GridCarbon& grid : grid_carbon())
    if (grid.region == region && (provider.empty() || grid.provider == provider) &&
        grid.basis == CarbonBasis::kLocationBased)
      return &grid;
  return nullptr;
}

std::optional<double> pue_of(std::string_view provider) {
  for (const Pue& row : pues())
    if (row.provider == provider && row.region == kAnyRegion) return row.pue;
  return std::nullopt;
}

}  // namespace

StepAccount account_of(const Estimate<Seconds>& step, double busy, const cluster::Gpu& device,
                       double devices, const Place& place) {
  REHEARSE_CHECK(busy >= 0 && busy <= 1);
  StepAccount account;
  account.energy = energy_of(step, busy, device, devices, account.notes);
  std::string provider;
  if (place.instance.empty()) {
    account.notes.push_back(
        "no price: the cluster is not made of instances (cluster: {instance: …, count: …})");
  } else {
    const Result<const cluster::Instance*> instance = cluster::find_instance(place.instance);
    if (instance) provider = (*instance)->provider;
    if (const InstancePrice* price = price_of(place)) {
      const auto money = [&](Seconds time) { return *price->on_demand * time * place.instances; };
      account.money = {money(step.value), money(step.low), money(step.high), step.provenance};
      account.notes.push_back(fmt::format("price: {} on demand in {}, {:.2f} USD/h, as of {}",
                                          price->instance, price->region,
                                          price->on_demand->usd_per_h(), price->origin.as_of));
    } else {
      account.notes.push_back(fmt::format(
          "no price of {} {}", place.instance,
          place.region.empty() ? std::string("in the catalog") : "in region " + place.region));
    }
  }
  if (place.region.empty()) {
    account.notes.push_back("no carbon: no region is given (region: us-east-1)");
  } else if (const GridCarbon* grid = grid_of(provider, place.region);
             grid != nullptr && account.energy) {
    const std::optional<double> pue = pue_of(provider);
    const auto grams = [&](Joules energy) {
      return energy.kwh() * grid->intensity.g_per_kwh() * pue.value_or(1);
    };
    const Estimate<Joules>& e = *account.energy;
    account.carbon = {grams(e.value), grams(e.low), grams(e.high), Provenance::kDatasheet};
    account.notes.push_back(
        fmt::format("carbon: {:.0f} gCO2e/kWh in {}, {}", grid->intensity.g_per_kwh(), place.region,
                    pue ? fmt::format("PUE {:.2f}", *pue) : "PUE not known: cooling left out"));
  } else {
    account.notes.push_back(
        fmt::format("no carbon: the catalog knows no grid of region {}", place.region));
  }
  return account;
}

}  // namespace rehearse::cost
