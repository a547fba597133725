// The throughput of a whole job on another device, where nothing is known of its operations:
//
//   throughput ∝ FLOPS^a · bandwidth^b,  a = 0.29, b = 0.6
//
// fitted to seven models trained on eight GPUs from V100 to H100 (Lambda's GPU benchmark), where
// each GPU is predicted from the others to 13 % in half precision and 15 % in FP32 (with TF32, as
// that benchmark runs it). From one known GPU alone the median error is 11 %. The exponents are
// below one, and their sum too: faster devices spend a larger part of a step on what neither speeds
// up. It does not hold across vendors, for jobs bound by the host, nor where the batch differs by
// much.
#pragma once

#include <span>

#include "models/compute/device_facts.h"
#include "sim/base/estimate.h"

namespace rehearse::compute {

struct ScalingLaw {
  double flops = 0.29, bandwidth = 0.6;  ///< exponents
};

/// Throughput on `to` ÷ throughput on `from`, as extrapolated; an interval of a factor 1.4 within
/// one vendor, 2 across. `dtype` says which peaks count: FP32 is TF32 where a device has that.
Estimate<double> throughput_ratio(const DeviceFacts& from, const DeviceFacts& to,
                                  workload::Dtype dtype, const ScalingLaw& law = {});

/// A job's throughput on one device.
struct ThroughputRow {
  std::size_t job;  ///< rows of one job are compared with each other alone
  double flops, bandwidth, throughput;
};

/// The exponents with the least squares of log throughput over all rows, each job with a constant
/// of its own. REQUIRES: two rows of a job at least; exponents that the rows cannot tell apart are
/// 0.
ScalingLaw fit_scaling(std::span<const ThroughputRow> rows);

/// The peak that counts, FLOP/s.
double scaling_flops(const DeviceFacts& facts, workload::Dtype dtype);

}  // namespace rehearse::compute
