// Edits after which the host launches less: kernels that are fused, and regions that become CUDA
// graphs.
#pragma once

#include <string>
#include <vector>

#include "profiler/replay/edit.h"

namespace rehearse::replay {

/// Consecutive kernels of one stream that can become one: nothing but the next of them waits for
/// one of them, and they wait for nothing else.
struct KernelRun {
  std::uint32_t rank;
  std::vector<GpuIndex> kernels;  ///< two or more
};

/// The longest runs of selected kernels; with a selected range, within each of its instances. Fails
/// if the selector matches nothing, or no two kernels that follow one another.
Result<std::vector<KernelRun>> find_runs(const std::vector<Recording>& recordings,
                                         const RecordedProgram& program, const Selector& selector);

/// Makes each run one kernel of its time, which is launched with the first. The others are taken
/// away with the operators that launched nothing else. REQUIRES: a time for each run.
RecordedProgram fuse(const std::vector<Recording>& recordings, RecordedProgram program,
                     const std::vector<KernelRun>& runs, const std::vector<Picoseconds>& times);

/// The host's time to launch a graph of that many kernels.
using GraphLaunch = std::function<Seconds(std::size_t kernels)>;

/// The host works in the range, and in the backward operators of its forward ones, for one launch
/// alone. Kernels begin when the launch does, in their order. Stretches with fewer than two kernels are kept.
/// Fails if no stretch has two, and if a call in one waits for the device, which a graph cannot.
Result<RecordedProgram> launch_as_graph(const std::vector<Recording>& recordings,
                                        RecordedProgram program, const Selector& range,
                                        const GraphLaunch& cost);

}  // namespace rehearse::replay
