// What of a step is waiting for links, by runs of the same job that differ in one thing.
//
//   interconnect   step − step with ideal links within nodes
//   network        that − step with ideal links everywhere
//
// So both together are what communication adds to the step. Preparing samples and reading them
// stall a step only where the job says how it is fed; else these two are absent, not zero.
#pragma once

#include "cost/recommend.h"
#include "models/step/predict.h"

namespace rehearse::cli {

/// At the fidelity that `step` was predicted at. Fails where a run does.
Result<cost::Stalls> stalls_of(const step::Spec& spec, const cluster::Cluster& cluster,
                               const step::Step& step, step::Fidelity fidelity);

}  // namespace rehearse::cli
