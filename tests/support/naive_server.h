// An inference server as its rules read: every token is written down, every step is run by itself,
// and every question is answered by looking at all of it.
#pragma once

#include <span>
#include <vector>

#include "sim/serving/pools.h"
#include "sim/serving/request.h"
#include "sim/serving/rules.h"
#include "sim/serving/step.h"

namespace rehearse::test {

struct NaiveRun {
  std::vector<serving::Step> steps;
  std::vector<std::int64_t> held;  ///< blocks, in each step
  std::int64_t preempted = 0, dropped = 0;
};

/// The steps for requests that are all in the queue at the start. Without a prefix cache; all drafts are accepted, and a
/// step takes 1 ms, by which requests leave at their deadlines.
NaiveRun naive_server(const serving::Rules& rules, std::span<const serving::Request> requests);

/// When the first and the last token of each request are out, with pools of replicas in turn. All
/// drafts and prefix caches are ignored, and a step takes 1 ms, 50 us per token of prompts and 100 us
/// per decode row.
struct NaiveTokens {
  std::vector<Picoseconds> first, last;
  std::int64_t preempted = 0, waited = 0;  ///< requests; prompts, for blocks
};
NaiveTokens naive_pools(const serving::Pool& prefill, const serving::Pool& decode,
                        const serving::Transfer& transfer,
                        std::span<const serving::Request> requests);

}  // namespace rehearse::test
