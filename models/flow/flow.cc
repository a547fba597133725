#include "models/flow/flow.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/base/random.h"

namespace rehearse::flow {
namespace {

constexpr double kMostTries = 100'000, kMostTriesOfAll = 1e8;

double drawn(const FlowStep& step, Random& random) {
  switch (step.law) {
    case TimeLaw::kConstant: break;
    case TimeLaw::kExponential: return step.time * random.exponential();
    case TimeLaw::kUniform: return step.time * 2 * random.uniform();
  }
  return step.time;
}

struct Tried {
  double seconds = 0;
  bool succeeded = false;
  std::uint32_t tries = 0;
};

Tried try_step(const FlowStep& step, Random& random) {
  const double limit = step.limit.value_or(std::numeric_limits<double>::infinity());
  double wait = step.back_off ? step.back_off->first : 0;
  Tried tried;
  while (true) {
    const double time = drawn(step, random);
    const bool fails = step.fails > 0 && random.uniform() < step.fails;
    ++tried.tries;
    tried.seconds += step.poll ? seen_at(*step.poll, time) : time;
    const bool last = tried.tries > step.retries;
    if (fails && !last) tried.seconds += wait;
    if (tried.seconds > limit) {
      tried.seconds = limit;
      return tried;
    }
    if (!fails || last) {
      tried.succeeded = !fails;
      return tried;
    }
    if (step.back_off) wait = std::min(wait * step.back_off->factor, step.back_off->most);
  }
}

std::size_t next_of(const FlowStep& step, Random& random) {
  if (step.then.size() == 1) return step.then.front().to;
  double at = random.uniform();
  for (const Branch& branch : step.then)
    if ((at -= branch.share) < 0) return branch.to;
  return step.then.back().to;
}

struct Ended {
  double seconds = 0;
  double tries = 0;
  bool completed = false;
};

Result<Ended> run_once(const Flow& flow, Random& random) {
  Ended ended;
  std::size_t at = 0;
  while (at < flow.steps.size()) {
    const FlowStep& step = flow.steps[at];
    const Tried tried = try_step(step, random);
    ended.seconds += flow.transition + tried.seconds;
    ended.tries += tried.tries;
    if (flow.limit && ended.seconds > *flow.limit) {
      ended.seconds = *flow.limit;
      return ended;
    }
    if (ended.tries > kMostTries)
      return fail(fmt::format("a run has {:g} tries and no end", ended.tries),
                  "branches that lead to the end");
    if (!tried.succeeded && !step.otherwise) return ended;
    at = tried.succeeded ? next_of(step, random) : *step.otherwise;
  }
  ended.completed = true;
  return ended;
}

}  // namespace

double seen_at(const Waits& poll, double time) {
  double wait = poll.first, at = poll.first;
  while (at < time && poll.factor > 1 && wait < poll.most) {
    wait = std::min(wait * poll.factor, poll.most);
    at += wait;
  }
  return at < time ? at + std::ceil((time - at) / wait) * wait : at;
}

Result<Outcome> run(const Flow& flow) {
  Outcome outcome;
  double squares = 0, tries = 0;  // squares: of deviations from the running mean (Welford, 1962)
  for (std::uint32_t r = 0; r < flow.runs; ++r) {
    Random random = random_stream(flow.seed, r);
    const Ended ended = TRY(run_once(flow, random));
    tries += ended.tries;
    if (tries > kMostTriesOfAll)
      return fail(fmt::format("{} runs have {:g} tries", r + 1, tries), "fewer runs");
    const double off = ended.seconds - outcome.makespan;
    outcome.makespan += off / (r + 1);
    squares += off * (ended.seconds - outcome.makespan);
    outcome.completed += ended.completed;
    outcome.makespans.push_back(ended.seconds);
  }
  const double runs = flow.runs;
  outcome.completed /= runs;
  outcome.tries = tries / runs;
  if (flow.runs > 1) outcome.standard_error = std::sqrt(squares / (runs - 1) / runs);
  return outcome;
}

}  // namespace rehearse::flow
