// The training (or inference) steps of a recording.
#pragma once

#include <string>
#include <vector>

#include "profiler/replay/recording.h"

namespace rehearse::replay {

/// The source of the bounds of the steps, best first.
enum class StepSource {
  kMarks,       ///< annotations such as ProfilerStep#7
  kRanges,      ///< a range that occurs once per step: data loader, optimizer
  kRepetition,  ///< a copy between host and device that recurs at even distances
  kKernels,     ///< in a recording without ranges: recurring kernels in the same order
  kGraphs,      ///< recurring launches of CUDA graphs, as in the decode loop of a server
  kSpan,        ///< nothing repeats: the whole recording is one step
};

std::string_view to_string(StepSource source);

struct Step {
  std::string name;
  Nanoseconds start;
  Nanoseconds end;  ///< of a marked step: the mark's end; else the start of the next
  /// Index into Recording::threads() of the thread that the marks are on; zero for a recording
  /// without a host.
  std::size_t thread;
  bool partial = false;  ///< begins or ends outside the recording: not for comparison
};

struct Steps {
  StepSource source;
  std::vector<Step> steps;  ///< in order of time; never empty for a recording with any row
};

Steps find_steps(const Recording& recording);

}  // namespace rehearse::replay
