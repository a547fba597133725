// A recording as it would be on a slice of the GPU on which it was made.
#pragma once

#include <string>

#include "cli/commands/replay_job.h"
#include "models/sharing/kernel_law.h"

namespace rehearse::cli {

struct RecordedSlice {
  std::string name;  ///< "a100_sxm4_80:2g.20gb"
  sharing::KernelSlice slice;
};

/// Fails with one line: no name of a GPU in the recording, a GPU without MIG, an unknown profile,
/// more than one rank, collectives (slices have no link to one another).
Result<RecordedSlice> slice_of_recording(const ReplayJob& job, const std::string& profile);

/// Which end of the kernels' slowdowns.
enum class SliceBound : std::uint8_t { kLow, kValue, kHigh };

/// The graph with every kernel as long as the slice makes it. Copies between host and device stay.
Result<replay::ReplayGraph> on_slice(const ReplayJob& job, const replay::ReplayGraph& graph,
                                     const RecordedSlice& slice, SliceBound bound);

}  // namespace rehearse::cli
