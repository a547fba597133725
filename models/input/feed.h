// What an accelerator that is fed by a pipeline waits for: the pipeline run with the accelerator
// behind it, as one more stage, in one graph.
#pragma once

#include "models/input/pipeline.h"

namespace rehearse::input {

/// Work that comes over and over: it takes so many units of the last stage, which may be a part of
/// one, and then lasts so long.
struct Work {
  double units;  ///< above zero
  Seconds time;  ///< above zero
};

/// Fails on a pipeline whose late samples are no one's: a job takes all.
Status gives_all_samples(const Pipeline& pipeline);

/// How many times as long the work takes, in the long run, as it would with all units there: 1 or
/// more, 1 where it never waits. Units are taken as the work begins, of more than 256 that many at
/// a time, evenly over it. What the pipeline says of an accelerator of its own plays no part. Fails
/// as simulate() and gives_all_samples() do.
Result<double> slowdown(const Pipeline& pipeline, const Work& work);

/// The pipeline whose reads take no time.
Pipeline with_free_storage(Pipeline pipeline);

}  // namespace rehearse::input
