// One training job, made up, and its recording in two formats: what both say must be read alike.
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
  bool operators = true;  ///< else only calls and what devices did
};

/// A rank that trains on one GPU: forward on one thread, backward on another, gradients reduced on
/// a second stream behind events, an optimizer, a wait at the end of each step. A launch takes 8
/// us, ops of a stream lie 1 us apart. Process 10, threads 70 and 80.
trace::Trace make_job(const SyntheticJob& job);

/// The first rank of a trace as Kineto writes it, and as the capture library does.
std::string as_kineto(const trace::Trace& trace);
std::string as_capture(const trace::Trace& trace);

}  // namespace rehearse::test
