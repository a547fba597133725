// What of a step is waiting for links, by runs of the same job that differ in one thing.
//
//   interconnect   step − step with ideal links within nodes
//   network        that − step with ideal links everywhere
//   input          step fed by its pipeline − step with samples that are there
//   fetch          of that, what goes away where reads take no time
//
// The first two are of the step with samples that are there, so that the first three add up to what
// links and input add to a step. Input stalls a step only where the job says how it is fed; else
// the last two are absent, not zero.
#pragma once

#include "cost/recommend.h"
#include "models/input/pipeline.h"
#include "models/step/predict.h"

namespace rehearse::cli {

/// The first two, at the fidelity that `step` was predicted at. Fails where a run does.
Result<cost::Stalls> stalls_of(const step::Spec& spec, const cluster::Cluster& cluster,
                               const step::Step& step, step::Fidelity fidelity);

/// Sets the other two. REQUIRES: `step` was fed by the pipeline (cli/config/job_input.h).
Status add_input_stalls(const input::Pipeline& pipeline, const cluster::Cluster& cluster,
                        const step::Step& step, cost::Stalls& stalls);

}  // namespace rehearse::cli
