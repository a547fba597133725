// The efficiency of a framework on a cluster, relative to the costs of single operations.
//
// Benchmarks of operations run cool and alone; a training step sustains less. These constants are
// the difference. The shipped ones were fitted on published jobs (docs/accuracy.md lists the
// rows); `rehearse calibrate job` fits factors on parts of a step to measured steps (ByFactor).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/comm/interference.h"
#include "models/compute/op_cost.h"
#include "models/host/host.h"
#include "models/workload/transformer.h"
#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"
#include "sim/program/origin.h"
#include "strategies/job_of_layout.h"
#include "strategies/step/regimes.h"

namespace rehearse::step {

/// How many times as long as predicted the parts of a step take on the user's machines. The parts are
/// those that differ between plans: computing, launches of the host, messages between nodes, and the
/// fixed time. Measured steps determine some of the factors and not others (fit_factors.h). A plan
/// whose step consists of parts that no measured step had keeps their uncertainty: the interval of a
/// step is that of each factor by its share of the step.
enum class Factor : std::uint8_t { kComputing, kHost, kNetwork, kFixed };
inline constexpr std::size_t kFactors = 4;
inline constexpr std::array<std::string_view, kFactors> kFactorNames = {"computing", "host",
                                                                        "network", "fixed"};

template <class T>
using ByFactor = std::array<T, kFactors>;

/// What is known after measured steps: 90 % intervals of the remaining errors.
struct Known {
  ByFactor<program::Interval> factors = {};
  program::Interval step;  ///< of a step as a whole, with all factors known
  /// The regimes (regimes.h) of the measured steps. In any other the regime's interval remains.
  std::vector<std::string> regimes;
};

/// The interval of a step with these shares of its time; errors are independent, and relative
/// (logarithms).
Estimate<Seconds> interval_of(const Estimate<Seconds>& step, const ByFactor<double>& shares,
                              const Known& known);

/// Bounds of Conditions::scale, and of factors on other parts of a step.
inline constexpr double kLeastScale = 0.5, kMostScale = 3, kLeastPart = 0.1, kMostPart = 10;

struct Conditions {
  compute::Sustained sustained = {};
  /// Factor on all compute time in addition to `sustained`, from measured steps of the same cluster
  /// and framework. 0.5 to 3.
  double scale = 1;
  /// Time of matrix products in FP8 training ÷ that in half precision, without the workload's
  /// conversions. Transformer Engine on H100 takes 0.70. 0.4 to 1.
  double fp8 = 0.70;
  Seconds host_per_kernel = Seconds::us(5);
  host::Implementation host = {};
  double host_scale = 1;  ///< factor on its times
  bool blocking = false;  ///< launches wait for their kernels (CUDA_LAUNCH_BLOCKING)
  /// Time of messages between nodes ÷ that on the cluster as it is described. Only who builds the
  /// cluster applies it (comm::with_slower_links).
  double network_scale = 1;
  Seconds fixed = Seconds::ms(20);  ///< once per step
  /// The fixed time at the ends of the interval: jobs of published tables took from 20 ms (MPT)
  /// to 70 ms (Megatron-LM on 64 and more GPUs) in addition to computing; frameworks that gather
  /// statistics of gradients take more (docs/accuracy.md). Recorded loops whose optimizer updates
  /// all parameters in a few kernels take 0.5 to 3 ms. A measured or given value is all three
  /// (set_fixed).
  Seconds least_fixed = Seconds::ms(3), most_fixed = Seconds::ms(70);
  /// Extra device idle time per kernel: launch gaps, input and copies of a recording.
  Seconds idle_per_kernel = Seconds::s(0);
  /// Overlap costs max(a, b) + penalty · min(a, b).
  double overlap_penalty = comm::kOverlapPenalty;
  /// The 90 % interval of compute time, as factors of it. Real runs only get slower.
  double fastest = kKernelBound.low, slowest = kKernelBound.high;
  /// The 90 % interval of a recorded operation's time in this job, as factors of it.
  program::Interval recorded = {};
  /// The interval comes from measured steps of the job, whatever its regime (regimes.h).
  bool measured = false;
  /// How well measured steps of the job determine the parts of a step: the interval, in place of
  /// those of conditions, prices and the host.
  std::optional<Known> known = {};
  Provenance provenance = Provenance::kExtrapolated;
  std::string source;  ///< for people
};

/// The shipped conditions: those of the device's architecture, else the general ones, with a wider
/// interval. Those of elementwise kernels, and the host's, depend on how the kernels are written.
Conditions conditions_for(const cluster::Gpu& device, workload::Elementwise elementwise);

/// The fixed time of a loop that reads no norm of gradients, as networks of convolutions are trained:
/// 3 ms, from 0.5 to 30 ms. Between steps the devices of recorded trainings idle 0.5 ms (RTX
/// 2080 Ti), 0.9 ms (MI300X) and 4.6 ms (H100); steps of Pollux, which gathers statistics of
/// gradients, take 15 to 28 ms on four GPUs in addition to their samples. The geometric mean is 2.6.
void take_plain_loop(Conditions& conditions);

/// The fixed time is known.
void set_fixed(Conditions& conditions, Seconds fixed);

/// Widens the interval of computing to that of FP8, mixtures, and other models and formats.
void widen_kernels(Conditions& conditions);

/// `host` with its scale.
host::Implementation host_of(const Conditions& conditions);

/// The host's times, and the fixed time.
strategies::JobOptions job_options(const Conditions& conditions);
/// The same with what the implementation adds in this situation.
strategies::JobOptions job_options(const Conditions& conditions, const Situation& situation,
                                   const workload::Layout& layout);

/// The default `scale` of models with mixtures of experts, without measurements: multiprocessors
/// taken by exchanges, waiting for the host's token counts, kernels too small for the laws. Fitted
/// on published jobs; the value for fused experts is recorded of DeepSeek-V3
/// (docs/concepts/expert-parallel.md).
constexpr double mixture_scale(bool fused_experts) { return fused_experts ? 1.15 : 1.5; }

/// Reads the section `sustained` of a job file, or of a calibration of jobs, into the conditions of
/// each kind of device. Errors are recorded in the file's status.
void read_conditions(const YamlMap& map, std::span<Conditions> all);

}  // namespace rehearse::step
