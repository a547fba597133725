// Stalls of a step on links, from runs of the same job that differ in one property.
//
//   interconnect   step − step with ideal links within nodes
//   network        that − step with ideal links everywhere
//   input          step fed by its pipeline − step with samples that are there
//   fetch          of that, what goes away where reads take no time
//
//   node sharing   step − step with each device on a node of its own
//
// The first two are of the step with samples that are there, so that the first three add up to what
// links and input add to a step. Input stalls a step only where the job says how it is fed; else
// input and fetch are absent, not zero.
//
// Node sharing is of that step, too, and is no part of the sum: above zero devices lose by what
// they share on a node (its NICs, PCIe, sockets), below zero they gain by what joins them there.
#pragma once

#include <span>

#include "cost/recommend.h"
#include "models/input/feed.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

/// The first two, at the fidelity that `step` was predicted at. Fails where a run does.
Result<cost::Stalls> stalls_of(const step::Spec& spec, const cluster::Cluster& cluster,
                               const step::Step& step, step::Fidelity fidelity);

/// Node sharing, at that fidelity: the same ranks, each on a node with all that its node has but
/// the other devices. Zero where no node has two devices; nothing where a cluster of one node is
/// not of an instance whose network the catalog knows. Fails where the run does, or where the nodes
/// are joined by links of their own.
Result<std::optional<Seconds>> node_sharing(const step::Spec& spec, const cluster::Cluster& cluster,
                                            std::span<const cost::Rented> rented,
                                            const step::Step& step, step::Fidelity fidelity);

/// Sets input and fetch. REQUIRES: `step` was fed by the pipeline (cli/config/job_input.h) that,
/// with reads that take no time, is `free`.
Status add_input_stalls(const input::Feed& free, const cluster::Cluster& cluster,
                        const step::Step& step, cost::Stalls& stalls);

}  // namespace rehearse::cli
