#include "tests/support/pipeline_run.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::test {
namespace {

using workload::Pass;
using workload::Slot;

constexpr double kNever = -1;
constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

class Run {
 public:
  Run(std::span<const std::span<const Slot>> orders, std::span<const std::vector<PassTimes>> times,
      std::uint32_t microbatches)
      : orders_(orders),
        stages_(orders.size()),
        microbatches_(microbatches),
        places_(stages_ * times[0].size()),
        arrival_(2 * places_ * microbatches, kNever),
        done_(2 * places_ * microbatches, false),
        states_(stages_) {
    times_.reserve(places_);
    for (std::size_t c = 0; c < times[0].size(); ++c)
      for (std::size_t s = 0; s < stages_; ++s) {
        REHEARSE_CHECK(times[s].size() == times[0].size());
        const PassTimes& t = times[s][c];
        times_.push_back(
            {.by_pass = {t.forward.s(), t.backward.s(), t.backward_weights.s(), t.recompute.s()},
             .send_forward = t.send_forward.s(),
             .send_backward = t.send_backward.s()});
      }
    ready_.reserve(2 * stages_);
    for (std::size_t s = stages_; s-- > 0;) ready_.push_back(s);
    // Inputs of the first chunk and gradients of the last are available at once.
    std::fill_n(arrival_.begin(), microbatches, 0.0);
    std::fill(arrival_.end() - microbatches, arrival_.end(), 0.0);
  }

  bool finish() {
    while (!ready_.empty()) {
      const std::size_t stage = ready_.back();
      ready_.pop_back();
      advance(stage);
    }
    for (std::size_t s = 0; s < stages_; ++s)
      if (states_[s].next != orders_[s].size()) return false;
    return true;
  }

  PipelineRun result() const {
    PipelineRun run{.makespan = Seconds::s(0), .busy = {}};
    for (const State& state : states_) {
      run.makespan = std::max(run.makespan, Seconds::s(state.clock));
      run.busy.push_back(Seconds::s(state.busy));
    }
    return run;
  }

 private:
  struct Times {
    double by_pass[4];  // in the order of Pass
    double send_forward, send_backward;
  };
  struct State {
    std::size_t next = 0;
    std::size_t waits_for = kNothing;
    double clock = 0;
    double busy = 0;
  };

  void arrives(std::size_t key, std::size_t stage, double when) {
    arrival_[key] = when;
    if (states_[stage].waits_for != key) return;
    states_[stage].waits_for = kNothing;
    ready_.push_back(stage);
  }

  void advance(std::size_t stage) {
    const std::span<const Slot> order = orders_[stage];
    const std::size_t backwards = places_ * microbatches_;
    State& state = states_[stage];
    for (; state.next < order.size(); ++state.next) {
      const Slot slot = order[state.next];
      const std::size_t place = slot.chunk * stages_ + stage;
      const std::size_t forward = place * microbatches_ + slot.microbatch;
      const std::size_t backward = backwards + forward;
      const Times& times = times_[place];
      const double duration = times.by_pass[static_cast<int>(slot.pass)];
      // A pass that must precede this one on this stage but comes later in the order will never
      // run.
      if (slot.pass != Pass::kForward &&
          !done_[slot.pass == Pass::kBackwardWeights ? backward : forward])
        return;
      if (slot.pass == Pass::kBackwardWeights || slot.pass == Pass::kRecompute) {
        state.clock += duration;
        state.busy += duration;
        continue;
      }
      const std::size_t key = slot.pass == Pass::kForward ? forward : backward;
      if (arrival_[key] == kNever) {
        state.waits_for = key;
        return;
      }
      state.busy += duration;
      state.clock = std::max(state.clock, arrival_[key]) + duration;
      done_[key] = true;
      if (slot.pass == Pass::kForward) {
        if (place + 1 < places_)
          arrives(key + microbatches_, stage + 1 == stages_ ? 0 : stage + 1,
                  state.clock + times.send_forward);
      } else if (place > 0) {
        arrives(key - microbatches_, stage == 0 ? stages_ - 1 : stage - 1,
                state.clock + times.send_backward);
      }
    }
  }

  std::span<const std::span<const Slot>> orders_;
  std::size_t stages_;
  std::uint32_t microbatches_;
  std::size_t places_;           // chunks of all stages, in the order of forward
  std::vector<Times> times_;     // by place
  std::vector<double> arrival_;  // of inputs, forward then backward: by place, microbatch
  std::vector<char> done_;
  std::vector<State> states_;
  std::vector<std::size_t> ready_;
};

}  // namespace

double PipelineRun::bubble() const {
  const Seconds most = *std::max_element(busy.begin(), busy.end());
  return most.s() > 0 ? makespan / most - 1 : 0;
}

std::optional<PipelineRun> run_pipeline(std::span<const std::span<const Slot>> orders,
                                        std::span<const std::vector<PassTimes>> times,
                                        std::uint32_t microbatches) {
  REHEARSE_CHECK(!orders.empty() && orders.size() == times.size());
  Run run(orders, times, microbatches);
  if (!run.finish()) return std::nullopt;
  return run.result();
}

}  // namespace rehearse::test
