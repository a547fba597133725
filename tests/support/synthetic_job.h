// A made-up training job and its recording in two formats, which must be read alike.
#pragma once

#include <cstdint>
#include <string>

#include "profiler/trace/trace.h"

namespace rehearse::test {

struct SyntheticJob {
  std::uint64_t seed = 1;  ///< of the durations
  int steps = 3;
  int layers = 4;
  bool step_marks = true;
  bool operators = true;  ///< else only calls and device work
};

/// A rank that trains on one GPU: forward on one thread, backward on another, gradients reduced on
/// a second stream that waits for events, an optimizer, a wait at the end of each step. A launch
/// takes 8 us; ops of a stream are 1 us apart. Process 10, threads 70 and 80.
trace::Trace make_job(const SyntheticJob& job);

/// The first rank of a trace in the format of Kineto, and in that of the capture library.
std::string as_kineto(const trace::Trace& trace);
std::string as_capture(const trace::Trace& trace);

}  // namespace rehearse::test
