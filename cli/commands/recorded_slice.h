// Replays a recording on a slice of its GPU (`--slice`).
#pragma once

#include <optional>
#include <string>

#include "cli/commands/replay_job.h"
#include "models/sharing/kernel_law.h"
#include "sim/base/estimate.h"

namespace rehearse::cli {

/// Simulated with the kernels' slowdowns as they are expected, and the steps at either end of them.
struct SlicedRun {
  std::string name;  ///< "a100_sxm4_80:2g.20gb"
  Bytes memory;      ///< of the instance
  ReplayRun run;
  Seconds low, high;

  /// The step with the interval that a replay's step of that length has, and as much more as the
  /// kernels' slowdowns leave open.
  Estimate<Seconds> widened(Estimate<Seconds> step) const;
};

/// How a kernel was launched, where the recording says.
std::optional<sharing::KernelLaunch> launch_of(const trace::Rank& rank, const trace::GpuOp& op);

/// The program, as recorded or edited, with every kernel as long as an instance of this profile makes
/// it; each rank on an instance of its own GPU. Copies between host and device stay. Fails with one
/// line: no name of a GPU in the recording, a GPU without MIG, an unknown profile, collectives
/// (instances cannot reach each other).
Result<SlicedRun> run_on_slice(const ReplayJob& job, const replay::RecordedProgram& program,
                               const std::string& profile, const RunProgram& run = run_program);

}  // namespace rehearse::cli
