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

std::optional<Estimate<Joules>> energy_of(const Estimate<Seconds>& step,
                                          std::span<const PoweredDevices> devices,
                                          std::vector<std::string>& notes) {
  Estimate<Joules> sum{Joules::j(0), Joules::j(0), Joules::j(0), Provenance::kDatasheet};
  for (const PoweredDevices& kind : devices) {
    REHEARSE_CHECK(kind.busy >= 0 && kind.busy <= 1);
    if (kind.gpu == nullptr) continue;
    if (!kind.gpu->power_limit) {
      notes.push_back(fmt::format("no energy: the catalog has no power limit of {}", kind.name));
      return std::nullopt;
    }
    const Watts limit = *kind.gpu->power_limit;
    const Watts idle = kind.gpu->idle_power.value_or(limit * kIdleShare);
    const auto power = [&](Watts when_busy) { return idle + (when_busy - idle) * kind.busy; };
    const Watts least = std::max(idle, limit * kLeastBusy);
    sum.value += power(limit) * step.value * kind.count;
    sum.low += power(least) * step.low * kind.count;
    sum.high += limit * step.high * kind.count;
  }
  return sum;
}

/// The on-demand price in the region, else the lowest of all regions.
const InstancePrice* price_of(const Rented& rented, const std::string& region) {
  const InstancePrice* best = nullptr;
  for (const InstancePrice& price : instance_prices()) {
    if (price.instance != rented.instance || !price.on_demand) continue;
    if (!region.empty() && price.region != region) continue;
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

/// Of all that is rented, where every price is known.
std::optional<Estimate<Usd>> money_of(const Estimate<Seconds>& step, const Place& place,
                                      std::vector<std::string>& notes) {
  if (place.rented.empty()) {
    notes.push_back(
        "no price: the cluster is not made of instances (cluster: {instance: …, count: …})");
    return std::nullopt;
  }
  Estimate<Usd> sum{Usd::usd(0), Usd::usd(0), Usd::usd(0), step.provenance};
  bool complete = true;
  for (const Rented& rented : place.rented) {
    const InstancePrice* price = price_of(rented, place.region);
    if (price == nullptr) {
      notes.push_back(fmt::format(
          "no price of {} {}", rented.instance,
          place.region.empty() ? std::string("in the catalog") : "in region " + place.region));
      complete = false;
      continue;
    }
    sum.value += *price->on_demand * step.value * rented.count;
    sum.low += *price->on_demand * step.low * rented.count;
    sum.high += *price->on_demand * step.high * rented.count;
    notes.push_back(fmt::format("price: {} on demand in {}, {:.2f} USD/h, as of {}",
                                price->instance, price->region, price->on_demand->usd_per_h(),
                                price->origin.as_of));
  }
  if (!complete) return std::nullopt;
  return sum;
}

std::string provider_of(const Place& place) {
  for (const Rented& rented : place.rented)
    if (const Result<const cluster::Instance*> instance = cluster::find_instance(rented.instance))
      return (*instance)->provider;
  return "";
}

}  // namespace

StepAccount account_of(const Estimate<Seconds>& step, std::span<const PoweredDevices> devices,
                       const Place& place) {
  StepAccount account;
  account.energy = energy_of(step, devices, account.notes);
  account.money = money_of(step, place, account.notes);
  const std::string provider = provider_of(place);
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
