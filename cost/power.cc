#include "cost/power.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace rehearse::cost {
namespace {

/// Idle power as a share of the power limit, where the catalog has none: A100 46 of 400 W, V100 35
/// of 300 W.
constexpr double kIdleShare = 0.115;
/// The least power of a busy device as a share of its limit: memory-bound kernels (a judgement).
constexpr double kLeastBusy = 0.75;
/// The load of processors if nothing else is known: the default of the CCF methodology.
constexpr double kProcessorLoad = 0.5;
/// Adapters and switches differ by generation, cable and number of hops (a judgement).
constexpr double kNetworkLow = 0.5, kNetworkHigh = 2;

const PowerCoefficient& coefficient(std::string_view component, std::string_view item) {
  const auto& rows = power_coefficients();
  const auto row = std::ranges::find_if(
      rows, [&](const PowerCoefficient& p) { return p.component == component && p.item == item; });
  REHEARSE_CHECK(row != rows.end(), "the catalog has no power data of {}", item);
  return *row;
}

/// Per vCPU, averaged over the provider's processor makes; over all providers if it has none.
Estimate<Watts> vcpu_power(std::string_view provider) {
  const auto& rows = power_coefficients();
  const auto meant = [&](const PowerCoefficient& p, bool any) {
    return p.component == "cpu_per_vcpu" && p.min && (any || p.provider == provider);
  };
  const bool any =
      std::ranges::none_of(rows, [&](const PowerCoefficient& p) { return meant(p, false); });
  double sum = 0, least = std::numeric_limits<double>::infinity(), most = 0;
  int makes = 0;
  for (const PowerCoefficient& p : rows) {
    if (!meant(p, any)) continue;
    sum += *p.min + (p.max - *p.min) * kProcessorLoad;
    least = std::min(least, *p.min);
    most = std::max(most, p.max);
    ++makes;
  }
  REHEARSE_CHECK(makes > 0);
  return {Watts::w(sum / makes), Watts::w(least), Watts::w(most), Provenance::kDatasheet};
}

}  // namespace

std::optional<Estimate<Watts>> device_power(const cluster::Gpu& gpu, double busy) {
  REHEARSE_CHECK(busy >= 0 && busy <= 1);
  if (!gpu.power_limit) return std::nullopt;
  const Watts limit = *gpu.power_limit;
  const Watts idle = gpu.idle_power.value_or(limit * kIdleShare);
  const auto power = [&](Watts when_busy) { return idle + (when_busy - idle) * busy; };
  return Estimate<Watts>{power(limit), power(std::max(idle, limit * kLeastBusy)), limit,
                         Provenance::kDatasheet};
}

std::optional<Estimate<Watts>> host_power(const cluster::Instance& instance) {
  if (!instance.vcpus || !instance.memory) return std::nullopt;
  const double vcpus = *instance.vcpus;
  const Watts memory = Watts::w(coefficient("memory", "dram").max * instance.memory->b() / 1e9);
  const Estimate<Watts> each = vcpu_power(instance.provider);
  return mapped(each, [&](Watts vcpu) { return vcpu * vcpus + memory; });
}

std::optional<Estimate<Watts>> network_power(const cluster::Instance& instance) {
  if (!instance.network) return std::nullopt;
  const double gbit = instance.network->bytes_per_s() * 8 / 1e9;
  const double per_gbit =
      coefficient("network", "adapter").max + coefficient("network", "switch port").max;
  const Watts power = Watts::w(per_gbit * gbit);
  return Estimate<Watts>{power, power * kNetworkLow, power * kNetworkHigh, Provenance::kDatasheet};
}

Joules transfer_energy(Bytes bytes) {
  return Joules::kwh(coefficient("network", "transfer").max * bytes.b() / 1e9);
}

std::optional<double> pue_of(std::string_view provider, std::string_view region) {
  const Pue* best = nullptr;
  for (const Pue& row : pues()) {
    if (row.provider != provider) continue;
    if (row.region == region) return row.pue;
    if (row.region == kAnyRegion && best == nullptr) best = &row;
  }
  return best != nullptr ? std::optional(best->pue) : std::nullopt;
}

}  // namespace rehearse::cost
