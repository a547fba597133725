// What a framework on a cluster makes of the costs of single operations.
//
// Benchmarks of operations run cool and alone; a training step sustains less. These constants say
// how much less. Those that ship were fitted on published jobs (docs/accuracy.md says on which
// rows); `rehearse calibrate job` fits the one that decides most, the scale, to measured steps.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/compute/op_cost.h"
#include "models/workload/transformer.h"
#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"

namespace rehearse::step {

struct Conditions {
  compute::Sustained sustained = {};
  /// Of all compute time, on top of `sustained`: what measured steps of this very cluster and
  /// framework say. 0.5 to 3.
  double scale = 1;
  /// Time of matrix products in FP8 training ÷ that in half precision, beside the conversions that
  /// the workload has. Transformer Engine on H100 takes 0.70. 0.4 to 1.
  double fp8 = 0.70;
  Seconds host_per_kernel = Seconds::us(5);
  Seconds fixed = Seconds::ms(20);  ///< once per step
  /// At the slow end of the interval: jobs of published tables took from 20 ms (MPT) to 70 ms
  /// (Megatron-LM on 64 and more GPUs) besides computing; frameworks that gather statistics of
  /// gradients take more (docs/accuracy.md). What was measured or given is `fixed` itself.
  Seconds most_fixed = Seconds::ms(70);
  /// That the device idles with each kernel, on top: what a recording shows of launch gaps, input
  /// and copies.
  Seconds idle_per_kernel = Seconds::s(0);
  /// What the longer of a computation and the communication beside it is slowed by: this share of
  /// the shorter.
  double beside = 0.1;
  /// The 90 % interval of compute time, as factors of it. Real runs only get slower.
  double fastest = 0.92, slowest = 1.25;
  Provenance provenance = Provenance::kExtrapolated;
  std::string source;  ///< for people
};

/// The shipped ones: for a device by its architecture, else the general ones, with a wider
/// interval; for elementwise kernels by how they are written.
Conditions conditions_for(const cluster::Gpu& device, workload::Elementwise elementwise);

/// `scale` of models with mixtures of experts, where nothing was measured: what their exchanges
/// take of the multiprocessors, waiting for the host to know numbers of tokens, kernels too small
/// for the laws. Fitted on published jobs; fused: recorded of DeepSeek-V3
/// (docs/concepts/expert-parallel.md).
constexpr double mixture_scale(bool fused_experts) { return fused_experts ? 1.15 : 1.5; }

/// The section `sustained` of a job file, or of a calibration of jobs, over the conditions on each
/// kind of device. What is wrong stands in the file's status then.
void read_conditions(const YamlMap& map, std::span<Conditions> all);

}  // namespace rehearse::step
