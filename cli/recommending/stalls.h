// Stalls of a step on links, from runs of the same job that differ in one property.
//
//   interconnect   step − step with ideal links within nodes
//   network        that − step with ideal links everywhere
//   input          step fed by its pipeline − step with samples that are always ready
//   fetch          part of input that vanishes if reads take no time
//
//   node sharing   step − step with each device on a separate node
//
// The first two refer to the step with samples that are always ready, so that the first three add
// up to the time that links and input add to a step. Without an input pipeline in the job, input
// and fetch are absent, not zero.
//
// Node sharing also refers to that step and is not part of the sum. Above zero, devices lose by
// sharing a node (its NICs, PCIe, sockets). Below zero, they gain by the links of the node.
#pragma once

#include <span>

#include "cost/recommend.h"
#include "models/input/feed.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {

/// Computes the first two, at the fidelity of `step`. Fails if a run fails.
Result<cost::Stalls> stalls_of(const step::Spec& spec, const cluster::Cluster& cluster,
                               const step::Step& step, step::Fidelity fidelity);

/// Computes node sharing at that fidelity: the same ranks, each alone on a node that keeps
/// everything else of its node. Zero if no node has two devices. Nothing if the cluster has one
/// node whose instance type, with its network, is not in the catalog. Fails if a run fails, or if
/// the nodes are joined by links of their own.
Result<std::optional<Seconds>> node_sharing(const step::Spec& spec, const cluster::Cluster& cluster,
                                            std::span<const cost::Rented> rented,
                                            const step::Step& step, step::Fidelity fidelity);

/// Sets input and fetch. `free` is the pipeline with reads that take no time. REQUIRES: `step` was
/// fed by the original pipeline (cli/config/job_input.h).
Status add_input_stalls(const input::Feed& free, const cluster::Cluster& cluster,
                        const step::Step& step, cost::Stalls& stalls);

}  // namespace rehearse::cli
