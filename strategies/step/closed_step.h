// The step time of a layout without a graph: for searches over thousands of plans.
//
// Each pass of a microbatch through a chunk takes the sum over its layers, and each layer begins when
// the host has launched those before. The orders of the stages determine when passes run
// (order_times.h), and gradients and optimizer follow. Within a layer, inline communications add up,
// and those that overlap an op share its time. Prefetched or deferred communications (their longest
// stream) overlap everything else:
//   max(a, b) + overlap_loss min(a, b)
// because kernels and communication slow each other.
//
// Compared with the engine at closed fidelity, the result is equal if only sums of gradients after
// backward are prefetched or deferred. Otherwise both are between the step in which these
// communications take no time and the step in which they are inline and not hidden by launches
// (docs/concepts/job.md).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/comm/interference.h"
#include "models/job/shared_links.h"
#include "models/workload/layout.h"
#include "sim/base/result.h"
#include "strategies/job_of_layout.h"

namespace rehearse::step {

/// The price of a collective on a stage, of a message between two stages, and of the exchange of
/// each rank of a stage with all servers together.
using CollectivePrice = std::function<Result<Seconds>(const workload::Op&, const workload::Stage&)>;
using MessagePrice =
    std::function<Result<Seconds>(const workload::Stage&, const workload::Stage&, Bytes)>;
using ServersPrice =
    std::function<Result<Seconds>(const workload::Stage&, const workload::Servers&, Bytes)>;

/// A collective of all groups of its kind on a stage.
struct StageCollective {
  const workload::Op* op;
  const workload::Stage* stage;
};
/// The links that collectives of different stages can overload together, and each collective's
/// messages on them per byte. Their addresses are stable.
using LinksOfStages =
    std::function<Result<const job::SharedLinks::Shared*>(std::span<const StageCollective>)>;

struct StepPrices {
  strategies::Prices op;
  CollectivePrice collective;
  MessagePrice message;
  ServersPrice to_servers;
  LinksOfStages shared_links = {};  ///< absent: no two stages share a link
};

/// The treatment of prefetched and deferred communications. Inline ones add to the launches of their
/// layer too.
enum class Background : std::uint8_t { kOverlapped, kFree, kInline };

struct StepOptions {
  strategies::JobOptions job = {};
  /// The share of the shorter of computing and communicating that is added when they overlap. FSDP
  /// runs of MPT on A100 and H100 fit 0.1. Equivalent to `job::Rules::slowdown` in the engine.
  double overlap_loss = comm::kOverlapPenalty;
  Background background = Background::kOverlapped;
};

struct StepTime {
  Seconds step;
  /// Computing of one rank of the stage that ends last.
  Seconds compute;
  /// Waiting for other stages, on the stage that ends last.
  Seconds bubble;
  std::vector<Seconds> computing;  ///< by stage, on one rank
};

/// Fails as job_of (strategies/job_of_layout.h) does, if a price fails, if orders deadlock, and if
/// ranks of one stage are on several kinds of devices: only a graph can determine their waiting.
Result<StepTime> closed_step(const workload::Layout& layout, const StepPrices& prices,
                             const StepOptions& options);

}  // namespace rehearse::step
