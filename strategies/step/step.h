// Step: one predicted training step of a job under a plan on a cluster: time, memory, occupancy.
//
//   Result<Step> step = predict(spec, cluster, {});
//
// A workload is laid out (strategies), its ops priced (models/compute), the job lowered and run at
// the requested fidelity (models/job, sim/engine), its memory added up (models/memory).
// sim/program/attribution.h explains the run.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "models/job/lower.h"
#include "models/memory/memory.h"
#include "models/workload/layout.h"
#include "sim/base/warning.h"
#include "sim/cluster/cluster.h"
#include "sim/graph/timeline.h"
#include "sim/program/occupancy.h"
#include "sim/program/origin.h"
#include "sim/program/path_parts.h"
#include "strategies/plan.h"
#include "strategies/step/conditions.h"
#include "strategies/step/host_memory.h"
#include "strategies/step/run_size.h"

namespace rehearse::step {

/// Computing ops take this many times as long; `*` in the pattern matches any text.
struct OpFactor {
  std::string pattern;
  double factor;
};

struct Spec {
  workload::Workload workload;  ///< for one sample
  /// The catalog name of the device on which measured operation times were taken. On other devices
  /// the time is scaled by the ratio of the cost model's times. Empty: the devices of the ranks.
  std::string measured_on = {};
  strategies::Training training;
  strategies::Plan plan;
  Conditions conditions;
  /// Measured times of single operations, by device in the catalog.
  std::map<std::string, compute::MeasuredOps, std::less<>> measured_ops = {};
  /// Replaces `conditions` on devices of these names. host_per_kernel and fixed
  /// always come from `conditions`.
  std::map<std::string, Conditions, std::less<>> conditions_on = {};
  std::vector<OpFactor> op_factors = {};  ///< by the name of an op; all that match apply
};

/// A pass of a transformer block takes the longer of both.
struct BlockWork {
  Seconds launches = Seconds::s(0);  ///< of the host
  Seconds kernels = Seconds::s(0);   ///< of the device, without communication
};

/// One change and its effect.
struct Counterfactual {
  std::string change;  ///< "tensor-parallel communication free"
  Seconds step;
};

/// A kind of device in use.
struct DeviceUse {
  std::string name;  ///< in the catalog, or cluster::kCpu
  std::uint32_t ranks;
  Seconds busy;  ///< computing, over all devices of the kind
};

struct Step {
  workload::Layout layout;
  // The run, which has millions of ops where many stages have many microbatches; all empty if the
  // step has none (has_run()).
  program::Program job = {};
  job::LoweredJob lowered = {};
  graph::Timeline timeline = {};
  Estimate<Seconds> time;
  /// What limits the step, which widens the interval of `time`, stalls included. `stall` is how much
  /// of the upper end is for runs that stall.
  Regime regime = regimes().front();
  Seconds stall = Seconds::s(0);
  Seconds mean_stall = Seconds::s(0);  ///< of all runs, beyond the value of `time` (regimes.h)
  /// The part of `time` that is saved if messages and copies take no time.
  Seconds communication = Seconds::s(0);
  /// The intervals of that part and of the rest.
  program::Interval computing = {}, links = {};
  Seconds fixed = Seconds::s(0);  ///< once per step, on ranks of stages; may overlap communication
  /// The mean over ranks. `input` is waiting for samples; only a caller who knows what feeds the
  /// step adds it, here and to `time`.
  program::Occupancy occupancy = {};
  /// The share of the step in passes of blocks that last as long as their launches: on the critical
  /// path.
  double host_share = 0;
  BlockWork block = {};  ///< of a block and microbatch: forward, backward and recomputation
  std::vector<Counterfactual> counterfactuals = {};  ///< the most effective first
  std::vector<memory::StageMemory> memory = {};      ///< by stage, on its fullest kind of device
  std::optional<HostMemory> host_memory = {};        ///< absent: all state is on devices
  std::vector<DeviceUse> devices = {};               ///< in the order of their first rank
  Flops model_flops = Flops::flop(0);                ///< of all ranks in a step
  Flops hardware_flops = Flops::flop(0);             ///< with recomputation
  FlopRate peak = FlopRate::flop_per_s(0);           ///< of all ranks, for the dtype
  std::array<double, 4> share_by_provenance = {};    ///< of compute time, by Provenance
  std::vector<Warning> warnings = {};
  std::optional<RunSize> size = {};             ///< with PredictOptions::size
  std::optional<program::PathParts> path = {};  ///< with PredictOptions::path

  bool has_run() const { return !job.programs.empty(); }
  /// Frees the run, except for LoweredJob::folded.
  void drop_run();
  Estimate<double> samples_per_s() const;
  /// The fullest device or host: what it needs ÷ what it has.
  double memory_share() const;
  /// Borderline counts as fitting.
  bool fits() const;
  double model_utilization() const;     ///< MFU
  double hardware_utilization() const;  ///< HFU
};

}  // namespace rehearse::step
