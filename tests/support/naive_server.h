// An inference server as its rules read: every token is written down, every step is run by itself,
// and every question is answered by looking at all of it.
#pragma once

#include <span>
#include <vector>

#include "sim/serving/request.h"
#include "sim/serving/rules.h"
#include "sim/serving/step.h"

namespace rehearse::test {

struct NaiveRun {
  std::vector<serving::Step> steps;
  std::vector<std::int64_t> held;  ///< blocks, in each step
  std::int64_t preempted = 0;
};

/// The steps for requests that are all in the queue at the start. Without a prefix cache; all drafts are accepted.
NaiveRun naive_server(const serving::Rules& rules, std::span<const serving::Request> requests);

}  // namespace rehearse::test
