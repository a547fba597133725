// More threads for stages that hold a pipeline back, as runs of it show them. What the laws
// (limits.h) do not know of is waiting: for a core or a link that others use too, for a lock.
#pragma once

#include "models/input/pipeline.h"
#include "models/input/simulate.h"

namespace rehearse::input {

/// Gives queues room for what comes in bursts, and the busiest stages workers and threads, within
/// Stage::most_workers, most_threads and this memory, until a run comes within 1 % of what the laws
/// allow, or more gains nothing any more. The fastest run; fails as simulate does, before any.
Result<Flow> grow(Pipeline& pipeline, Bytes memory);

}  // namespace rehearse::input
