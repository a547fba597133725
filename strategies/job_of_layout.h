// From a layout to a job: one program per stage and kind of device of its ranks. Compute ops have
// durations; collectives and sends are still to be priced or carried (models/job/lower.h).
//
// Collectives have groups by their axis, as in layout.h. Each group has its own stream. Axes of one
// rank have no communication.
//
// Between chunks on different stages, activations go forward and their gradients back.
// If degrees differ, each rank of the wider stage has its share of a rank of the other. Sends
// overlap computing.
//
// The host of a rank launches its blocks one after the other. Its ops run ahead of the device's: a
// block starts when the host has launched the block before, and the host waits for the device
//   - before each pass of a pipeline, whose shapes it reads, and before the optimizer, for the norm;
//   - in other jobs while passes with kLaunchQueue launches wait for the device (launch_queue.h).
//
// With parameter servers, workers send them gradients and receive parameters; a server's program
// follows (server_program.h). If several ranks send to one server, they wait for its port. Message
// fidelity shows this; the closed forms of sends do not.
//
// Pieces of a matrix that the first and last stage share are exchanged between their ranks of equal
// number before the optimizer runs.
#pragma once

#include "models/workload/layout.h"
#include "sim/base/result.h"
#include "sim/program/program.h"
#include "strategies/layer_run.h"
#include "strategies/prices.h"

namespace rehearse::strategies {

struct JobOptions {
  /// The least time per kernel. The host launches kernels one after the other, so a phase of a
  /// layer takes at least its kernels times this.
  Seconds host_per_kernel = Seconds::s(0);
  /// How long the host takes to launch a transformer block. Without times: kernels alone determine
  /// the step.
  host::Implementation host = {};
  bool blocking = false;  ///< launches wait for their kernels
  bool over_efa = false;  ///< stages send to each other over EFA
  /// Once per step and rank, and once more for each of its transformer blocks: time without an op.
  Seconds fixed = Seconds::s(0), fixed_of_block = Seconds::s(0);
  /// Number of consecutive steps: workers that do not wait for each other need
  /// several to settle.
  std::uint32_t steps = 1;
};

/// The host's times on a stage of these degrees, which is one of `stages`.
HostTimes host_times(const JobOptions& options, const workload::Degrees& degrees,
                     std::size_t stages);
Seconds fixed_of(const JobOptions& options, const workload::Stage& stage);

/// Ops state the purpose of their time (Program::origins). Fails if degrees of neighbouring stages
/// do not divide each other, if orders do not have every pass of every microbatch once, and on
/// copies without a host rate. REQUIRES: `prices` of all ranks of the layout.
Result<program::Program> job_of(const workload::Layout& layout, const Prices& prices,
                                const JobOptions& options);

}  // namespace rehearse::strategies
