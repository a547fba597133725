// One training step of a job under a plan on a cluster: how long, how full, where the time goes.
//
//   Result<Step> step = predict(spec, cluster, {});
//
// A workload is laid out (strategies), its ops priced (models/compute), the job lowered and run at
// the fidelity asked for (models/job, sim/engine), its memory added up (models/memory). Parts of
// the step are found by runs that differ in one thing: what is left when every message is free is
// compute and bubble; what goes away with it is communication that nothing hid.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/job/lower.h"
#include "models/memory/memory.h"
#include "models/workload/layout.h"
#include "sim/base/warning.h"
#include "sim/cluster/cluster.h"
#include "sim/graph/timeline.h"
#include "sim/program/origin.h"
#include "strategies/plan.h"
#include "strategies/step/conditions.h"

namespace rehearse::step {

struct Spec {
  workload::Workload workload;  ///< for one sample
  /// Of operations that carry a measured time: the device in the catalog. On others they take that
  /// time by the ratio of what the cost model says of both. Empty: whichever the ranks stand on.
  std::string measured_on = {};
  strategies::Training training;
  strategies::Plan plan;
  Conditions conditions;
  /// What was measured of operations by themselves, by device in the catalog.
  std::map<std::string, compute::MeasuredOps, std::less<>> measured_ops = {};
  /// On devices of these names, in the place of `conditions`. How long the host takes per kernel
  /// and what a step has once are those of `conditions` for all.
  std::map<std::string, Conditions, std::less<>> conditions_on = {};
};

/// A partition of the step, as a mean over ranks.
struct Breakdown {
  Seconds compute = Seconds::s(0);
  Seconds recompute = Seconds::s(0);  ///< of what forward had computed before
  Seconds optimizer = Seconds::s(0);
  Seconds exposed_communication = Seconds::s(0);
  /// Waiting with free messages: for other stages, and for slower devices of the own one.
  Seconds bubble = Seconds::s(0);
  Seconds input = Seconds::s(0);   ///< waiting for samples; only a caller who knows what feeds it
                                   ///< sets it, and with it `Step::time`
  Seconds launch = Seconds::s(0);  ///< the device waits for the host
  Seconds fixed = Seconds::s(0);
};

/// One change, and what it is worth.
struct Counterfactual {
  std::string change;  ///< "tensor-parallel communication free"
  Seconds step;
};

/// A kind of device that ranks stand on.
struct DeviceUse {
  std::string name;  ///< in the catalog, or cluster::kCpu
  std::uint32_t ranks;
  Seconds busy;  ///< computing, over all of them
};

struct Step {
  workload::Layout layout;
  program::Program job;
  job::LoweredJob lowered;
  graph::Timeline timeline;
  Estimate<Seconds> time;
  /// What `time`'s interval is made of: of all but exposed communication, and of that.
  program::Interval computing = {}, links = {};
  Breakdown breakdown;
  std::vector<Counterfactual> counterfactuals;     ///< the most effective first
  std::vector<memory::StageMemory> memory;         ///< by stage, on its fullest kind of device
  std::vector<DeviceUse> devices;                  ///< in the order of their first rank
  Flops model_flops = Flops::flop(0);              ///< of the step, all ranks
  Flops hardware_flops = Flops::flop(0);           ///< with recomputation
  FlopRate peak = FlopRate::flop_per_s(0);         ///< of all ranks, of the dtype
  std::array<double, 4> share_by_provenance = {};  ///< of compute time, by Provenance
  std::vector<Warning> warnings;

  Estimate<double> samples_per_s() const;
  double model_utilization() const;     ///< MFU
  double hardware_utilization() const;  ///< HFU
};

}  // namespace rehearse::step
