#include "strategies/bubble.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::strategies {
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
        times_(times),
        stages_(orders.size()),
        microbatches_(microbatches),
        places_(stages_ * times[0].size()),
        arrival_(2 * places_ * microbatches, kNever),
        done_(2 * places_ * microbatches, kNever),
        next_(stages_, 0),
        clock_(stages_, 0),
        waits_for_(stages_, kNothing) {
    for (std::size_t p = 0; p < stages_; ++p) {
      REHEARSE_CHECK(times[p].size() == times[0].size());
      ready_.push_back(stages_ - 1 - p);
    }
    // Inputs of the first chunk and gradients of the last are there.
    std::fill_n(arrival_.begin(), microbatches, 0.0);
    std::fill_n(arrival_.begin() + static_cast<std::ptrdiff_t>((2 * places_ - 1) * microbatches),
                microbatches, 0.0);
  }

  bool finish() {
    while (!ready_.empty()) {
      const std::size_t stage = ready_.back();
      ready_.pop_back();
      advance(stage);
    }
    for (std::size_t s = 0; s < stages_; ++s)
      if (next_[s] != orders_[s].size()) return false;
    return true;
  }

  PipelineRun result() const {
    PipelineRun run{.makespan = Seconds::s(*std::max_element(clock_.begin(), clock_.end())),
                    .busy = {}};
    for (std::size_t s = 0; s < stages_; ++s) {
      double busy = 0;
      for (const Slot& slot : orders_[s]) busy += duration(times_[s][slot.chunk], slot.pass);
      run.busy.push_back(Seconds::s(busy));
    }
    return run;
  }

 private:
  static double duration(const PassTimes& times, Pass pass) {
    switch (pass) {
      case Pass::kForward:
        return times.forward.s();
      case Pass::kBackward:
        return times.backward.s();
      case Pass::kBackwardWeights:
        return times.backward_weights.s();
      case Pass::kRecompute:
        return times.recompute.s();
    }
    return 0;
  }

  /// Where a forward (0) or backward (1) of this place is noted.
  std::size_t key(bool backward, std::size_t place, std::uint32_t microbatch) const {
    return (backward * places_ + place) * microbatches_ + microbatch;
  }

  void arrives(std::size_t key, std::size_t stage, double when) {
    arrival_[key] = when;
    if (waits_for_[stage] != key) return;
    waits_for_[stage] = kNothing;
    ready_.push_back(stage);
  }

  void advance(std::size_t stage) {
    for (; next_[stage] < orders_[stage].size(); ++next_[stage]) {
      const Slot& slot = orders_[stage][next_[stage]];
      const PassTimes& times = times_[stage][slot.chunk];
      const std::size_t place = slot.chunk * stages_ + stage;
      const std::size_t forward = key(false, place, slot.microbatch);
      const std::size_t backward = key(true, place, slot.microbatch);
      double start = clock_[stage];
      if (slot.pass == Pass::kForward || slot.pass == Pass::kBackward) {
        const std::size_t needed = slot.pass == Pass::kForward ? forward : backward;
        if (arrival_[needed] == kNever) {
          waits_for_[stage] = needed;
          return;
        }
        start = std::max(start, arrival_[needed]);
      }
      // What must have run here before never will if it comes later in the order.
      if (slot.pass != Pass::kForward &&
          done_[slot.pass == Pass::kBackwardWeights ? backward : forward] == kNever)
        return;
      const double end = start + duration(times, slot.pass);
      clock_[stage] = end;
      if (slot.pass == Pass::kForward) {
        done_[forward] = end;
        if (place + 1 < places_)
          arrives(key(false, place + 1, slot.microbatch), (place + 1) % stages_,
                  end + times.send_forward.s());
      } else if (slot.pass == Pass::kBackward) {
        done_[backward] = end;
        if (place > 0)
          arrives(key(true, place - 1, slot.microbatch), (place - 1) % stages_,
                  end + times.send_backward.s());
      }
    }
  }

  std::span<const std::span<const Slot>> orders_;
  std::span<const std::vector<PassTimes>> times_;
  std::size_t stages_;
  std::uint32_t microbatches_;
  std::size_t places_;           // chunks of all stages, in the order of forward
  std::vector<double> arrival_;  // of what a pass takes in
  std::vector<double> done_;     // end of a pass
  std::vector<std::size_t> next_;
  std::vector<double> clock_;
  std::vector<std::size_t> waits_for_;
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

}  // namespace rehearse::strategies
