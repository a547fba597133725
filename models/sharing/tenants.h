// Tenants: jobs that share devices, in one run of the engine.
//
// Each tenant has the program of one period (a step, or a recording of several), which is repeated.
// Its work on a shared device becomes work on the resources of that device, under a policy
// (tenant_program.h):
//
//   mps        kernels run concurrently on shares of the multiprocessors and of the memory's
//              bandwidth; a cap limits a tenant's multiprocessors
//   priority   the same, but a tenant's kernels take all they can before those of the next get any
//   timeslice  the whole device by turns of a quantum, with a switch between two turns
//   crossover  turns of an iteration: a tenant computes while others synchronize
//   exclusive  turns of a whole step, its communication included
//
// The first three divide pools of the device by amounts, priorities and turns. The last two are
// leases of the devices. Under each of them, an op of a tenant that runs alone
// is as fast as without sharing. docs/concepts/tenants.md has the laws with examples.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/graph/timeline.h"
#include "sim/program/lower.h"
#include "sim/program/program.h"

namespace rehearse::sharing {

/// Demand of an op on the device of its ranks at full speed, as shares of the device.
struct DeviceOp {
  std::uint32_t program;  ///< in Program::programs
  program::OpIndex op;
  double multiprocessors = 1;
  double bandwidth = 0;  ///< memory bandwidth
  double host_link = 0;  ///< a copy between host and device
};

/// Assumed, not measured: this share of the multiprocessors draws all of the memory's bandwidth,
/// for memory-bound kernels with enough blocks.
inline constexpr double kDrawAll = 0.5;

/// Adds a tenant's program to a graph, with the rules of its job. Under `common_links` its messages
/// share links with those of other tenants. The result has no graph.
using AddProgram = std::function<Result<program::Lowered>(
    const program::Program& program, bool common_links, program::Assembly& onto)>;

/// A program of one period, and its run without other tenants. Rank r is on device r.
struct Tenant {
  std::string name;
  program::Program program;
  std::vector<DeviceOp>
      on_device;  ///< each op once; those with work of their own have it in seconds
  /// The ends of these ops bound its steps; if empty, the period is the only step.
  std::vector<program::OpRef> step_bounds;
  AddProgram add;
  program::Lowered alone;
  graph::Timeline timeline;
};
/// `add` by default is that of programs whose collectives have durations and that send nothing.
Result<Tenant> make_tenant(
    std::string name, program::Program program, std::vector<DeviceOp> on_device,
    std::vector<program::OpRef> step_bounds = {},
    AddProgram add = [](const program::Program& timed, bool, program::Assembly& onto) {
      return program::add(timed, onto);
    });

enum class Policy : std::uint8_t { kMps, kPriority, kTimeSlice, kCrossover, kExclusive };
inline constexpr std::string_view kPolicyNames[] = {"mps", "priority", "timeslice", "crossover",
                                                    "exclusive"};

struct Sharing {
  Policy policy = Policy::kTimeSlice;
  /// The share of the multiprocessors per tenant, in (0, 1]; empty: no limit. Only for kMps.
  std::vector<double> caps = {};
  /// The length of a turn: nvidia-smi's shortest compute policy (2, 10 or 30 ms, as Red Hat's guide
  /// to slicing lists them). Only for kTimeSlice.
  Seconds quantum = Seconds::ms(2);   ///< kTimeSlice alone
  Seconds change = Seconds::us(100);  ///< switching time between turns; assumed, not measured
};

/// The resources that tenants contend for. A resource that is switched off is private to each
/// tenant.
struct Contended {
  bool bandwidth = true;
  bool change = true;  ///< switching takes time
  bool links = true;  ///< those that messages of several tenants cross, and between host and device
  bool whole_kernels = false;  ///< every kernel requests all multiprocessors and all bandwidth
};

/// Periods of tenants, as they ran.
class Together {
 public:
  graph::Timeline timeline;

  std::size_t periods(std::size_t tenant) const { return parts_[tenant].ends.size(); }
  Picoseconds begin(std::size_t tenant, std::size_t period) const;
  Picoseconds end(std::size_t tenant, std::size_t period) const;
  /// One period as a timeline of Tenant::alone, from its begin on. Only ops of ranks have times.
  graph::Timeline of_period(std::size_t tenant, std::size_t period) const;

 private:
  friend Result<Together> run_together(std::span<const Tenant> tenants, const Sharing& sharing,
                                       std::span<const std::uint32_t> periods,
                                       const Contended& contended,
                                       std::span<const Picoseconds> begins);
  struct Part {
    std::size_t size;                     // of the graph of Tenant::alone
    std::vector<std::uint32_t> first_op;  // of Tenant::alone
    program::Lowered lowered;
    std::vector<OpId> ends;  // of its periods
    Picoseconds begins;      // of the first
  };
  std::vector<Part> parts_;
};

/// Runs this many periods of each tenant, from time zero or from `begins`. Fails if the policy is
/// impossible: a crossover of a tenant that synchronises nothing.
Result<Together> run_together(std::span<const Tenant> tenants, const Sharing& sharing,
                              std::span<const std::uint32_t> periods,
                              const Contended& contended = {},
                              std::span<const Picoseconds> begins = {});

/// The causes of a tenant's loss.
struct Loss {
  Seconds compute = Seconds::s(0);           ///< fewer multiprocessors
  Seconds memory_bandwidth = Seconds::s(0);  ///< of the device
  Seconds waiting = Seconds::s(0);           ///< for its turn
  Seconds changes = Seconds::s(0);           ///< switching between turns
  Seconds communication = Seconds::s(0);     ///< links, and copies between host and device

  Seconds total() const { return compute + memory_bandwidth + waiting + changes + communication; }
};

struct TenantStep {
  Seconds alone = Seconds::s(0), shared = Seconds::s(0);
  Loss loss = {};                          ///< adds up to shared − alone
  Seconds when_contended = Seconds::s(0);  ///< shared, if every kernel requested the whole device
  std::size_t periods = 0;                 ///< counted periods
  graph::Timeline last = {};               ///< the last counted period

  double slowdown() const { return shared / alone; }
};

/// The 90 % interval of the slowdown, from the widest errors known for the policy.
///
/// It contains 90 % of the measured job pairs on one GPU, relative to the law of turns without a
/// known pair (pairs.h; Gavel's tables, stanford-futuredata/gavel): 0.80 to 1.28 times the
/// predicted slowdown for 281 pairs on K80, which slices time, and 0.50 to 2.6 times for 305 pairs
/// on V100, which share space. A crossover is between turns without cost and whole steps in turns.
Estimate<double> slowdown_of(const TenantStep& step, Policy policy);
/// The reason for the width in words, for people.
std::string_view why_that_wide(Policy policy);

/// The length of a step of a tenant, from the timeline of a period.
using StepOf = std::function<Seconds(std::size_t tenant, const graph::Timeline& period)>;

/// Steps of concurrent tenants, counted while all of them run, without the first periods. Steps of
/// similar length overlap in the same place again and again: unless tenants wait for turns of
/// steps, the mean is over four phases. Losses are separated by runs that add one source of
/// contention each. Fails as run_together, and if periods differ by a factor of more than a
/// thousand.
Result<std::vector<TenantStep>> share_devices(std::span<const Tenant> tenants,
                                              const Sharing& sharing, const StepOf& step_of);
/// The steps of tenants whose period is their step.
Result<std::vector<TenantStep>> share_devices(std::span<const Tenant> tenants,
                                              const Sharing& sharing);

}  // namespace rehearse::sharing
