// Regimes: what limits a step, as far as it decides how well the step is known.
//
// The width of an interval is what rows left out by source say, in the regime of the step. Real
// runs mostly get slower, so intervals are asymmetric. In some regimes a share of runs stalls, which
// no column of a published table explains; those runs have a time of their own, in addition.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "models/comm/collective_cost.h"
#include "models/host/host.h"
#include "models/workload/layout.h"
#include "sim/base/estimate.h"
#include "sim/cluster/cluster.h"
#include "sim/program/origin.h"

namespace rehearse::step {

/// The 90 % interval of computing on an architecture with published jobs, as factors of the time:
/// of dense transformers in half precision; and of FP8, mixtures and other models and formats, whose
/// sources are few or none (docs/decisions/0074-one-measured-step-and-narrower-intervals.md).
inline constexpr program::Interval kKernelBound{0.92, 1.25}, kOtherKernelBound{0.86, 1.45};

/// Whether launches of the host determine most of a step.
constexpr bool is_host_bound(double host_share) { return host_share > 0.5; }

struct Regime {
  std::string_view name;
  /// The least 90 % interval of steps that do not stall, as factors of the predicted step. Where
  /// kernels decide, none beyond that of computing and of communication.
  program::Interval factors;
  double stalled = 0;  ///< share of the runs that stall
  /// 95 % of the stalled runs take at most so much longer, for each microbatch and each further
  /// stage.
  Seconds stall = Seconds::s(0);
  std::string_view source;  ///< the rows; empty: no row was measured in this regime

  bool known() const { return !source.empty(); }
  bool mostly_stalls() const { return stalled > 0.5; }  ///< the median run does
  /// A 90 % interval need not contain a run that does not.
  bool nearly_all_stall() const { return stalled > 0.9; }
};

/// All regimes.
std::span<const Regime> regimes();

/// What tells a regime.
struct Situation {
  double host_share = 0;  ///< of the step: launches on the critical path
  std::uint32_t nodes = 1;
  std::optional<comm::NetworkKind> network = {};  ///< between the nodes; absent: of no known kind
  double network_width = 0.5;      ///< by what factor less one reports of such networks differ
  std::uint32_t tensor_nodes = 1;  ///< that a tensor group spans
  bool pipeline_over_nodes = false;
  /// There are several data-parallel ranks, and every one holds all gradients (no ZeRO).
  bool whole_gradients = false;
  bool divided_update = false;  ///< there are several, and they divide the update (ZeRO)
  std::uint32_t data = 1, stages = 1;
  std::uint32_t microbatches = 1;
  Bytes passed = Bytes::b(0);          ///< that a rank sends to the next stage, per microbatch
  double samples_in_tensor_group = 1;  ///< microbatch × tensor degree
};

/// `microbatch`: samples of a rank at a time. Without the host's share.
Situation situation_of(const workload::Layout& layout, const cluster::Cluster& cluster,
                       double microbatch, bool zero);

const Regime& regime_of(const Situation& situation);

/// The part of a regime's interval that is not of a factor on a part of the step: the
/// host's is its own.
program::Interval beyond_factors(const Regime& regime);

/// The step with at least this interval, as factors.
Estimate<Seconds> widened(const Estimate<Seconds>& step, const program::Interval& factors);

/// The step with at least the interval that the host's own gives to its share of the step.
Estimate<Seconds> with_host(const Estimate<Seconds>& step, double host_share,
                            const host::Implementation& host);

/// The stall of the median run of an implementation whose stalls were measured; zero where most
/// runs do not stall. A stage waits for each of its neighbours, once for each microbatch, and for
/// 0.35 of that for each further stage, whose exchanges fill and drain the pipeline in one direction.
/// Gradients that every data-parallel rank holds whole are summed in one more exchange.
Seconds median_stall(const Regime& regime, const workload::Layout& layout,
                     const host::Implementation& host, bool whole_gradients);

/// The longest of 95 % of the stalls of a step; zero where a tenth of the runs stall, or fewer.
Seconds stall_of(const Regime& regime, const workload::Layout& layout);

/// How much longer than median_stall() runs stall in the mean, those that do not included; zero
/// where stall_of() is.
Seconds mean_stall(const Situation& situation, const workload::Layout& layout,
                   const host::Implementation& host);

}  // namespace rehearse::step
