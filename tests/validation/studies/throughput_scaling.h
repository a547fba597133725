// The throughput of a whole job on another device, without knowledge of its operations.
//
// A sample takes
//
//   w1 / peak + w2 / memory rate + w3 / (multiprocessors · clock)
//
// w1 is bound by arithmetic, w2 by memory, w3 by the issue of instructions:
// small and elementwise kernels, which gain neither from matrix units nor from faster
// memory. Each known throughput of the job constrains its three non-negative weights.
// If that is not enough, they are drawn towards the shares of a typical job. With one
// known device they are those shares; with several, the job's own.
//
// Fitted to eight models (convolutional, BERT, recurrent, Transformer-XL, WaveGlow) that Lambda's
// benchmark trained on nine NVIDIA GPUs from Turing to Blackwell, alone, in half precision and in
// FP32 (TF32 on devices that have it), with the largest batch that fits in memory. Errors of
// devices left out: docs/accuracy.md. Not valid for jobs bound by the host or the input pipeline,
// or for batches that leave a device idle.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/workload/op.h"
#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/cluster/catalog.h"

namespace rehearse::compute {

/// A device's time for the work that A100 SXM 80 GB does in 1, by bottleneck.
struct Pace {
  double arithmetic, memory, issue;
  std::string vendor;
  bool fitted = true;  ///< of a generation that the law was fitted to
};

/// `dtype` is the format of the job's products; FP32 is TF32 on devices that have it, and
/// a missing format is replaced by the next wider one. Fails if the catalog has no clock.
Result<Pace> pace_of(const cluster::Gpu& gpu, workload::Dtype dtype);

/// Parts of a job's time on A100; they add up to 1.
struct TimeShares {
  double arithmetic = 0.31, memory = 0.47, issue = 0.22;
};

struct KnownThroughput {
  Pace on;
  double throughput;  ///< in any unit, above zero
};

/// In the unit of the known values, as extrapolated. The interval is a factor of 1.4 from one
/// device,
/// 1.3 from several, and 2 if no known device has the vendor of `to` or if a device is of a
/// generation that the law was not fitted to. REQUIRES: at least one known.
Estimate<double> throughput_on(const Pace& to, std::span<const KnownThroughput> known,
                               const TimeShares& typical = {});

/// The shares, to 0.01, under which the throughputs of each job differ least from one constant a
/// job (squares of logarithms). REQUIRES: throughputs above zero.
TimeShares fit_shares(std::span<const std::vector<KnownThroughput>> jobs);

}  // namespace rehearse::compute
