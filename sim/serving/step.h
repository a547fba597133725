// One step of an inference server: the tokens that one forward pass computes, and what it costs.
// Who decides what a step holds (run.h) knows no model and no GPU; who prices a step (StepPricer)
// knows no queue.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::serving {

/// Tokens of one prompt that a step computes.
struct PrefillChunk {
  std::int64_t new_tokens;
  std::int64_t context;  ///< tokens of the same request that are cached before the step

  friend bool operator==(const PrefillChunk&, const PrefillChunk&) = default;
};

struct Step {
  std::vector<PrefillChunk> prefill = {};
  std::int64_t decode_rows = 0;  ///< requests that get their next token, and have no chunk
  std::int64_t drafted = 0;      ///< proposed tokens that it verifies, of all decode rows
  double decode_context = 0;     ///< cached tokens before the step, summed over decode rows
  std::int64_t finished_prefills =
      0;  ///< chunks that end their prompt: these rows give a token too

  friend bool operator==(const Step&, const Step&) = default;
};

/// A step takes the longer of both on a server that prepares a step while the one before runs, and
/// their sum on others.
struct StepTime {
  Seconds device = Seconds::s(0);
  Seconds host = Seconds::s(0);  ///< to form the step, launch it and hand out its tokens
  double use = 1;                ///< share of `device` in which kernels run
};

/// The time of a request outside of the steps, between its sending and its entry into the queue.
struct RequestTime {
  Seconds serial = Seconds::s(0);   ///< client and front end take and tokenise one after another
  Seconds latency = Seconds::s(0);  ///< transport, which overlaps among requests
};

class StepPricer {
 public:
  virtual ~StepPricer() = default;

  /// A run asks once per step that differs from the step before: some 100,000 times for an hour of
  /// load. An answer should take a microsecond or two. REQUIRES: a step with at least one token.
  virtual StepTime price(const Step& step) const = 0;
  virtual RequestTime request(std::int64_t input_tokens) const = 0;
  /// All times of this pricer relative to what it answers: 1, with a 90 % interval. The error of a
  /// run is common to its steps, so a run at each end gives the interval of what it measures.
  virtual Estimate<double> reach() const = 0;
};

}  // namespace rehearse::serving
