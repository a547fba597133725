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
