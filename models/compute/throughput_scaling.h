// The throughput of a whole job on another device, where nothing is known of its operations.
//
// A sample takes
//
//   w1 / peak + w2 / memory rate + w3 / (multiprocessors · clock)
//
// w1 for what arithmetic bounds, w2 for what memory bounds, w3 for what the issue of instructions
// bounds: small and elementwise kernels, which gain neither from matrix units nor from faster
// memory. Each known throughput of the job says something of its three weights, which are not
// negative; where that is not enough, they are drawn to the shares of a typical job. With one
// device known they are those shares; with several, the job's own.
//
// Fitted to eight models (convolutional, BERT, recurrent, Transformer-XL, WaveGlow) that Lambda's
// benchmark trained on nine NVIDIA GPUs from Turing to Blackwell, alone, in half precision and in
// FP32 (TF32 where a device has that), the batch as large as memory allows. Errors of devices left
// out: docs/accuracy.md. It does not hold for jobs that the host or the input pipeline bounds, nor
// where batches leave a device idle.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/workload/op.h"
#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/cluster/catalog.h"

namespace rehearse::compute {

/// Of a device: how long it takes over what A100 SXM 80 GB does in 1, by what bounds it.
struct Pace {
  double arithmetic, memory, issue;
  std::string vendor;
  bool fitted = true;  ///< of a generation that the law was fitted to
};

/// `dtype` is the format in which the job multiplies; FP32 is TF32 where a device has that, and
/// what a device lacks is done in the next wider format. Fails where the catalog has no clock.
Result<Pace> pace_of(const cluster::Gpu& gpu, workload::Dtype dtype);

/// Parts of a job's time on A100; they add up to 1.
struct TimeShares {
  double arithmetic = 0.31, memory = 0.47, issue = 0.22;
};

struct KnownThroughput {
  Pace on;
  double throughput;  ///< in any unit, above zero
};

/// In the unit of what is known, as extrapolated: an interval of a factor 1.4 from one device, 1.3
/// from several, 2 where no known device has the vendor of `to` and where a device is of a
/// generation that the law was not fitted to. REQUIRES: one known at least.
Estimate<double> throughput_on(const Pace& to, std::span<const KnownThroughput> known,
                               const TimeShares& typical = {});

/// The shares, to 0.01, under which the throughputs of each job differ least from one constant a
/// job (squares of logarithms). REQUIRES: throughputs above zero.
TimeShares fit_shares(std::span<const std::vector<KnownThroughput>> jobs);

}  // namespace rehearse::compute
