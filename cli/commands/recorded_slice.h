// Edits of a recording, and its run with them, on its GPU or, with `--slice`, on a slice of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/replay_job.h"
#include "models/sharing/kernel_law.h"
#include "sim/base/estimate.h"

namespace rehearse::cli {

/// The end of the intervals of the kernels' slowdowns on a slice.
enum class SliceBound : std::uint8_t { kLow, kValue, kHigh };

/// Makes a program of the recording from another.
using Edit =
    std::function<Result<replay::RecordedProgram>(replay::RecordedProgram program, SliceBound)>;

/// Slows every kernel down to its time on an instance of this MIG profile. Each rank has an instance
/// of its own GPU. Copies between host and device keep their time. Fails with one line if the
/// recording does not name its GPU, the GPU has no MIG, the profile is unknown, or there are
/// collectives (instances cannot reach each other). REQUIRES: the job outlives the edit.
Edit on_slice(const ReplayJob& job, const std::string& profile);

/// A slice, and the steps at either end of the intervals of the kernels' slowdowns.
struct StepsOnSlice {
  std::string name;  ///< "a100_sxm4_80:2g.20gb"
  Bytes memory;      ///< of the instance
  Seconds low, high;
};

/// On a slice: with the expected slowdowns of the kernels.
struct EditedRun {
  ReplayRun run;
  std::optional<StepsOnSlice> slice;

  /// The step with the interval of an edited replay, widened by the uncertainty of the kernels'
  /// slowdowns and by `further_error` (profiler/replay/interval.h).
  Estimate<Seconds> step(const ReplayJob& job, double further_error = 0) const;
};

/// The launch shape of a kernel, if the recording has it.
std::optional<sharing::KernelLaunch> launch_of(const trace::Rank& rank, const trace::GpuOp& op);

/// Runs the recording with these edits, in their order. If they include that of a slice, `profile`
/// names it.
Result<EditedRun> run_edited(const ReplayJob& job, const std::vector<Edit>& edits,
                             const std::string& profile);

}  // namespace rehearse::cli
