#include "models/compute/throughput_scaling.h"

#include <cmath>
#include <map>

namespace rehearse::compute {

double scaling_flops(const DeviceFacts& facts, workload::Dtype dtype) {
  const workload::Dtype counted = dtype == workload::Dtype::kFp32 ? workload::Dtype::kTf32 : dtype;
  return facts.peak(arithmetic_of(facts, counted)).flop_per_s();
}

Estimate<double> throughput_ratio(const DeviceFacts& from, const DeviceFacts& to,
                                  workload::Dtype dtype, const ScalingLaw& law) {
  const double ratio = std::pow(scaling_flops(to, dtype) / scaling_flops(from, dtype), law.flops) *
                       std::pow(to.memory_rate / from.memory_rate, law.bandwidth);
  const double width = from.vendor == to.vendor ? 1.4 : 2;
  return {ratio, ratio / width, ratio * width, Provenance::kExtrapolated};
}

ScalingLaw fit_scaling(std::span<const ThroughputRow> rows) {
  struct Mean {
    double flops = 0, bandwidth = 0, throughput = 0, rows = 0;
  };
  std::map<std::size_t, Mean> means;
  for (const ThroughputRow& r : rows) {
    Mean& m = means[r.job];
    m.flops += std::log(r.flops);
    m.bandwidth += std::log(r.bandwidth);
    m.throughput += std::log(r.throughput);
    m.rows += 1;
  }
  // Two normal equations of deviations from each job's means.
  double ff = 0, fb = 0, bb = 0, ft = 0, bt = 0;
  for (const ThroughputRow& r : rows) {
    const Mean& m = means[r.job];
    const double f = std::log(r.flops) - m.flops / m.rows;
    const double b = std::log(r.bandwidth) - m.bandwidth / m.rows;
    const double t = std::log(r.throughput) - m.throughput / m.rows;
    ff += f * f;
    fb += f * b;
    bb += b * b;
    ft += f * t;
    bt += b * t;
  }
  const double determinant = ff * bb - fb * fb;
  if (!(determinant > 1e-9 * ff * bb)) return {.flops = 0, .bandwidth = 0};
  return {.flops = (ft * bb - bt * fb) / determinant,
          .bandwidth = (bt * ff - ft * fb) / determinant};
}

}  // namespace rehearse::compute
