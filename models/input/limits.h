// The rate bounds of a pipeline: the operational laws (Denning and Buzen, ACM Computing
// Surveys 10(3), 1978). Each resource has a capacity per second, and each unit needs a share of it;
// the least quotient is the bottleneck. Exact in the long run if no work waits for other work of
// its kind; never below the actual rate. For a closed loop: the number in flight over the latency
// (J. D. C. Little, Operations Research 9(3), 1961).
#pragma once

#include <string>
#include <vector>

#include "models/input/pipeline.h"

namespace rehearse::input {

enum class LimitKind : std::uint8_t {
  kThreads,
  kSerial,
  kBandwidth,
  kRequests,
  kHost,
  kStep,
  kLoop
};
inline constexpr std::string_view kLimitNames[] = {"threads",          "serial part", "bandwidth",
                                                   "requests",         "host cores",  "accelerator",
                                                   "samples in flight"};

struct Limit {
  LimitKind kind;
  std::size_t index;   ///< number of the stage or the source; 0 for the others
  double units_per_s;  ///< of the last stage
};

/// All bounds, the tightest first; equal ones are in the order of the kinds above. Stages that take
/// no time have no bound.
std::vector<Limit> limits_of(const Pipeline& pipeline);

/// "threads of decode", "bandwidth of s3", "host cores".
std::string to_string(const Pipeline& pipeline, const Limit& limit);

}  // namespace rehearse::input
