#include "cost/step_account.h"

#include <fmt/core.h>

#include "cost/power.h"
#include "sim/base/check.h"

namespace rehearse::cost {
namespace {

Estimate<Joules> over(const Estimate<Watts>& power, const Estimate<Seconds>& step, double count) {
  return {power.value * step.value * count, power.low * step.low * count,
          power.high * step.high * count, Provenance::kDatasheet};
}

void add(Estimate<Joules>& sum, const Estimate<Joules>& part) {
  sum.value += part.value;
  sum.low += part.low;
  sum.high += part.high;
}

std::optional<Estimate<Joules>> energy_of_devices(const Estimate<Seconds>& step,
                                                  std::span<const PoweredDevices> devices,
                                                  std::vector<std::string>& notes) {
  Estimate<Joules> sum{Joules::j(0), Joules::j(0), Joules::j(0), Provenance::kDatasheet};
  for (const PoweredDevices& kind : devices) {
    if (kind.gpu == nullptr) continue;
    const std::optional<Estimate<Watts>> power = device_power(*kind.gpu, kind.busy);
    if (!power) {
      notes.push_back(fmt::format("no energy: the catalog has no power limit of {}", kind.name));
      return std::nullopt;
    }
    add(sum, over(*power, step, kind.count));
  }
  return sum;
}

/// Adds the energy of hosts, network and cooling of rented machines to that of the devices.
void add_surroundings(StepAccount& account, const Estimate<Seconds>& step, const Place& place) {
  Estimate<Joules>& sum = *account.energy;
  EnergyParts& parts = account.energy_parts;
  for (const Rented& rented : place.rented) {
    const Result<const cluster::Instance*> found = cluster::find_instance(rented.instance);
    if (!found) continue;
    if (const auto power = host_power(**found)) {
      const Estimate<Joules> energy = over(*power, step, rented.count);
      add(sum, energy);
      parts.hosts += energy.value;
    } else {
      account.notes.push_back(
          fmt::format("energy excludes the hosts of {}: their power is unknown", rented.instance));
    }
    if (const auto power = network_power(**found)) {
      const Estimate<Joules> energy = over(*power, step, rented.count);
      add(sum, energy);
      parts.network += energy.value;
    }
  }
  const std::string_view provider = provider_of(place);
  if (const std::optional<double> pue = pue_of(provider, place.region)) {
    parts.cooling = sum.value * (*pue - 1);
    sum = sum * *pue;
  } else if (!provider.empty()) {
    account.notes.push_back(
        fmt::format("energy excludes cooling: the PUE of {} is unknown", provider));
  }
}

/// The grams for this energy, hour by hour if hours are given; nothing, and a note, if the place
/// has no intensity.
std::optional<Estimate<double>> carbon_of(const Estimate<Joules>& energy,
                                          const Estimate<Seconds>& step, const Place& place,
                                          std::vector<std::string>& notes) {
  const auto grams = [](Joules e, CarbonIntensity per) { return e.kwh() * per.g_per_kwh(); };
  if (place.hours && place.hours->has(place.region)) {
    const auto mean = [&](Seconds time) {
      return place.lasts ? place.hours->mean(place.region, *place.lasts * (time / step.value))
                         : place.hours->mean(place.region);
    };
    notes.push_back(fmt::format("carbon: {:.0f} gCO2e/kWh in {}, the mean of the hours of {}",
                                mean(step.value).g_per_kwh(), place.region, place.hours->name()));
    return Estimate<double>{grams(energy.value, mean(step.value)),
                            grams(energy.low, mean(step.low)), grams(energy.high, mean(step.high)),
                            Provenance::kDatasheet};
  }
  const GridCarbon* grid = grid_of(provider_of(place), place.region);
  if (grid == nullptr) {
    notes.push_back(fmt::format("no carbon: the catalog has no grid for region {}", place.region));
    return std::nullopt;
  }
  const std::optional<double> pue = pue_of(provider_of(place), place.region);
  notes.push_back(fmt::format("carbon: {:.0f} gCO2e/kWh in {}{}", grid->intensity.g_per_kwh(),
                              place.region, pue ? fmt::format(", PUE {:.2f}", *pue) : ""));
  return mapped(energy, [&](Joules e) { return grams(e, grid->intensity); });
}

}  // namespace

std::string_view provider_of(const Place& place) {
  for (const Rented& rented : place.rented)
    if (const Result<const cluster::Instance*> instance = cluster::find_instance(rented.instance))
      return (*instance)->provider;
  return "";
}

std::optional<Estimate<Usd>> money_of(const Estimate<Seconds>& step, const Place& place,
                                      std::vector<std::string>& notes) {
  if (place.rented.empty()) {
    notes.push_back(
        "no price: the cluster is not made of instances; set cluster: {instance: NAME, count: N}");
    return std::nullopt;
  }
  const PriceBook& book = place.prices ? *place.prices : PriceBook::shipped();
  const std::string_view market = kMarketNames[static_cast<int>(place.market)];
  Estimate<Usd> sum{Usd::usd(0), Usd::usd(0), Usd::usd(0), step.provenance};
  bool complete = true;
  for (const Rented& rented : place.rented) {
    const std::optional<Quote> price = book.quote(rented.instance, place.region, place.market);
    if (!price) {
      notes.push_back(fmt::format(
          "no {}price of {} {}", place.market == Market::kSpot ? "spot " : "", rented.instance,
          place.region.empty() ? std::string("in the catalog") : "in region " + place.region));
      complete = false;
      continue;
    }
    sum.value += price->rate * step.value * rented.count;
    sum.low += price->rate * step.low * rented.count;
    sum.high += price->rate * step.high * rented.count;
    const std::optional<std::string> old = place.today ? stale(*price, *place.today) : std::nullopt;
    notes.push_back(fmt::format("price: {} {} in {}, {:.2f} USD/h, as of {}{}{}", rented.instance,
                                market, price->region, price->rate.usd_per_h(), price->as_of,
                                price->recalled ? ", recalled" : "", old ? "; " + *old : ""));
  }
  if (!complete) return std::nullopt;
  return sum;
}

StepAccount account_of(const Estimate<Seconds>& step, std::span<const PoweredDevices> devices,
                       const Place& place) {
  StepAccount account;
  account.energy = energy_of_devices(step, devices, account.notes);
  if (account.energy) {
    account.energy_parts.devices = account.energy->value;
    add_surroundings(account, step, place);
  }
  account.money = money_of(step, place, account.notes);
  if (place.region.empty())
    account.notes.push_back("no carbon: set region, such as region: us-east-1");
  else if (account.energy)
    account.carbon = carbon_of(*account.energy, step, place, account.notes);
  return account;
}

}  // namespace rehearse::cost
