// More threads for stages that hold a pipeline back, according to runs of it. The laws
// (limits.h) do not include waiting for a shared core or link, or for a lock.
#pragma once

#include "models/input/pipeline.h"
#include "models/input/simulate.h"

namespace rehearse::input {

/// Increases queues for bursts, and workers and threads of the busiest stages, within
/// Stage::most_workers, most_threads and this memory, until a run comes within 1 % of the laws or a
/// further increase has no effect. If the busiest stages may have no more threads, removes idle
/// threads of the other stages, which share their cores. Returns the fastest run; fails as simulate
/// does.
Result<Flow> grow(Pipeline& pipeline, Bytes memory);

}  // namespace rehearse::input
