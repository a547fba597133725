// The step time of a layout without a graph: for searches over thousands of plans.
//
// Each pass of a microbatch through a chunk takes the sum over its layers; then the orders of the
// stages say when passes run (order_times.h), and gradients and optimizer follow. Within a layer
// communications that are inline add up, those beside an op take their place beside it, and those
// that are prefetched or deferred (the longest stream of them) run beside all the rest: the longer
// of both counts, and `overlap_loss` of the shorter, since kernels and communication slow each
// other.
//
// Against the engine at closed fidelity: equal where nothing is prefetched or deferred but sums of
// gradients behind backward; else both lie between the step in which what is prefetched or deferred
// takes no time and that in which it is inline (docs/concepts/job.md).
#pragma once

#include <functional>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/result.h"
#include "strategies/job_of_layout.h"

namespace rehearse::step {

/// Of a collective on a stage, of a message between two, and of what each rank of a stage exchanges
/// with all servers together.
using CollectivePrice = std::function<Result<Seconds>(const workload::Op&, const workload::Stage&)>;
using MessagePrice =
    std::function<Result<Seconds>(const workload::Stage&, const workload::Stage&, Bytes)>;
using ServersPrice =
    std::function<Result<Seconds>(const workload::Stage&, const workload::Servers&, Bytes)>;

struct StepPrices {
  strategies::Prices op;
  CollectivePrice collective;
  MessagePrice message;
  ServersPrice to_servers;
};

/// What prefetched and deferred communications are taken for.
enum class Background : std::uint8_t { kBeside, kFree, kInline };

struct StepOptions {
  strategies::JobOptions job = {};
  /// Share of the shorter of computing and communicating that is added where they overlap. FSDP
  /// runs of MPT on A100 and H100 fit 0.1. What `job::Rules::slowdown` is in the engine.
  double overlap_loss = 0.1;
  Background background = Background::kBeside;
};

struct StepTime {
  Seconds step;
  /// Of the stage that ends last: computing, on one rank.
  Seconds compute;
  /// Waiting for other stages, on the stage that ends last.
  Seconds bubble;
  std::vector<Seconds> computing;  ///< by stage, on one rank
};

/// Fails as job_of (strategies/job_of_layout.h) does, where a price does, where orders wait for
/// each other, and where ranks of one stage stand on several kinds of devices: who of them waits
/// for whom is for a graph to find.
Result<StepTime> closed_step(const workload::Layout& layout, const StepPrices& prices,
                             const StepOptions& options);

}  // namespace rehearse::step
