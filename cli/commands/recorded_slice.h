// Replays a recording on a slice of its GPU (`--slice`).
#pragma once

#include <optional>
#include <string>

#include "cli/commands/replay_job.h"
#include "models/sharing/kernel_law.h"
#include "sim/base/estimate.h"

namespace rehearse::cli {

/// A run with the expected slowdowns of the kernels, and its steps at either end of the slowdowns'
/// intervals.
struct SlicedRun {
  std::string name;  ///< "a100_sxm4_80:2g.20gb"
  Bytes memory;      ///< of the instance
  ReplayRun run;
  Seconds low, high;

  /// The step with the interval of a replayed step of that length, widened by the uncertainty of
  /// the kernels' slowdowns.
  Estimate<Seconds> widened(Estimate<Seconds> step) const;
};

/// The launch shape of a kernel, if the recording has it.
std::optional<sharing::KernelLaunch> launch_of(const trace::Rank& rank, const trace::GpuOp& op);

/// Runs the program, as recorded or edited, with every kernel slowed down to its time on an
/// instance of this profile. Each rank has an instance of its own GPU. Copies between host and
/// device keep their time. Fails with one line if the recording does not name its GPU, the GPU has
/// no MIG, the profile is unknown, or there are collectives (instances cannot reach each other).
Result<SlicedRun> run_on_slice(const ReplayJob& job, const replay::RecordedProgram& program,
                               const std::string& profile, const RunProgram& run = run_program);

}  // namespace rehearse::cli
