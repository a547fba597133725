#include "models/sharing/slice_rate.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace rehearse::sharing {

namespace {

Estimate<double> rate_of(Seconds whole, const Estimate<Seconds>& on_slice) {
  return mapped(on_slice, [&](Seconds time) { return std::min(1.0, whole / time); });
}

}  // namespace

Estimate<double> rate_by_law(const JobLaw& law, SliceRatio slice, double size) {
  return rate_of(law.time({}, size), predict(law, slice, size));
}

Estimate<double> rate_by_step(Seconds step, Seconds host, WorkKind kind, bool training,
                              SliceRatio slice, const SliceConstants& constants) {
  REHEARSE_CHECK(step.s() > 0 && host.s() >= 0 && host <= step, "{} of {}", host.s(), step.s());
  JobLaw law = {.host = host,
                .alpha = constants.alpha_of(kind),
                .beta = constants.beta(training),
                .kappa = constants.kappa,
                .spread = constants.spread};
  const double part = 1 - std::pow(host / step, law.sharpness);
  law.per_size = step * std::pow(part, 1 / law.sharpness);
  Estimate<double> rate = rate_by_law(law, slice, 1);
  std::swap(law.fixed, law.per_size);
  rate.high = std::max(rate.high, rate_by_law(law, slice, 1).high);
  return rate;
}

Estimate<double> rate_by_share(const cluster::MigDevice& device, std::uint32_t profile) {
  const cluster::MigProfile& p = device.profile(profile);
  const double compute = static_cast<double>(p.compute_slices) / device.compute_slices;
  const double memory = static_cast<double>(p.memory_slices) / device.positions;
  return {compute, std::min(compute, memory), 1, Provenance::kDatasheet};
}

SliceMemory memory_on_slice(const cluster::MigDevice& device, std::uint32_t profile, Bytes used,
                            std::uint32_t multiprocessors) {
  constexpr double kContextMib = 4.27;  // per multiprocessor
  constexpr double kSpread = 0.01;      // of A100: 0.2 % on the mean, 2.5 % at worst
  const double fewer =
      static_cast<double>(multiprocessors) - cluster::multiprocessors_of(device, profile);
  const Bytes on_slice = std::max(Bytes::b(0), used - Bytes::mib(kContextMib) * fewer);
  const Bytes usable = cluster::slice_of(device, profile).memory;
  return {.used = {.value = on_slice,
                   .low = on_slice * (1 - kSpread),
                   .high = on_slice * (1 + kSpread),
                   .provenance = Provenance::kExtrapolated},
          .usable = usable,
          .fits = on_slice <= usable};
}

}  // namespace rehearse::sharing
