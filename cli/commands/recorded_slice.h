// The edit that runs a recording on a slice of its GPU (`--slice`).
#pragma once

#include <optional>
#include <string>

#include "cli/commands/edited_run.h"
#include "models/sharing/kernel_law.h"

namespace rehearse::cli {

/// Slows every kernel down to its time on an instance of this MIG profile. Each rank has an instance
/// of its own GPU. Copies between host and device keep their time. Fails with one line if the
/// recording does not name its GPU, the GPU has no MIG, the profile is unknown, or there are
/// collectives (instances cannot reach each other). REQUIRES: the job outlives the edit.
Edit on_slice(const ReplayJob& job, const std::string& profile);

/// A slice as the output names it.
struct SliceName {
  std::string name;  ///< "a100_sxm4_80:2g.20gb"
  Bytes memory;      ///< of the instance
};
/// The instance on which the first rank runs. Fails as the edit does.
Result<SliceName> name_slice(const ReplayJob& job, const std::string& profile);

/// The launch shape of a kernel, if the recording has it.
std::optional<sharing::KernelLaunch> launch_of(const trace::Rank& rank, const trace::GpuOp& op);

}  // namespace rehearse::cli
