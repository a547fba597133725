// From a layout to a job: one program per stage and kind of device that its ranks stand on, in
// which compute ops have durations and collectives and sends wait to be priced or carried
// (models/job/lower.h).
//
// Collectives have groups by their axis, as layout.h says. Each group has a stream of its own. Axes
// of one rank leave nothing to communicate.
//
// Between chunks that stand on different stages, activations go forward and their gradients back;
// where degrees differ, each rank of the wider stage has its share of a rank of the other. Sends go
// beside computing.
//
// With servers of parameters, workers send them gradients and receive parameters; a server's
// program follows (server_program.h). Where several ranks send to one server its port is what they
// wait for: a matter for message fidelity; the closed forms of sends do not see it.
//
// Pieces of a matrix that first and last stage share are exchanged between their ranks of equal
// number before the optimizer runs.
#pragma once

#include "models/workload/layout.h"
#include "sim/base/result.h"
#include "sim/program/program.h"
#include "strategies/prices.h"
#include "strategies/stage_groups.h"

namespace rehearse::strategies {

struct JobOptions {
  /// Least time per kernel: the host launches them one after the other, so that a phase of a layer
  /// takes at least its kernels times this.
  Seconds host_per_kernel = Seconds::s(0);
  /// Once per step and rank: what no op stands for.
  Seconds fixed = Seconds::s(0);
  /// So many steps one after the other: what workers that do not wait for each other settle down to
  /// takes several.
  std::uint32_t steps = 1;
};

/// Ops say what their time is for (Program::origins). Fails where degrees of neighbouring stages do
/// not divide each other, orders do not have every pass of every microbatch once, and on copies
/// without a host rate. REQUIRES: `prices` of all ranks of the layout.
Result<program::Program> job_of(const workload::Layout& layout, const Prices& prices,
                                const JobOptions& options);

}  // namespace rehearse::strategies
