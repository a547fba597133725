#include "profiler/bench/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/statistics.h"

namespace rehearse::bench {

namespace {

Seconds mean_of(const std::vector<Seconds>& samples) {
  Seconds sum = Seconds::s(0);
  for (const Seconds s : samples) sum += s;
  return sum / static_cast<double>(samples.size());
}

/// The state of one subject's measurement.
class Run {
 public:
  Run(Subject& subject, const Method& method) : subject_(&subject), method_(&method) {}

  bool failed() const { return !result_.status; }
  bool warm() const { return failed() || agrees_ || busy_ >= method_->longest_warm_up; }
  bool done() const { return failed() || done_; }

  void warm_up() {
    const std::optional<Batch> batch = run();
    if (!batch) return;
    const Seconds each = mean_of(batch->samples);
    agrees_ = last_ > Seconds::s(0) && std::abs(each / last_ - 1) <= method_->agreement &&
              !batch->throttled;
    last_ = each;
    // The time of a launch, including the gap to the next, determines the number per batch.
    const double fits = method_->batch / (batch->busy / static_cast<double>(launches_));
    launches_ = static_cast<std::size_t>(
        std::clamp(fits, 1.0, static_cast<double>(method_->most_launches)));
  }

  void begin() { busy_ = Seconds::s(0); }

  void sample() {
    const std::optional<Batch> batch = run();
    if (!batch) return;
    if (batch->throttled) {
      ++result_.dropped;
    } else {
      samples_.insert(samples_.end(), batch->samples.begin(), batch->samples.end());
      ++batches_;
      if (batch->capped) ++capped_;
      if (batch->sm_clock_hz > 0) {
        clocks_ += batch->sm_clock_hz;
        ++clocked_;
      }
    }
    // A launch that takes longer than the whole time limit is still measured three times.
    const bool out_of_time = busy_ >= method_->longest && batches_ + result_.dropped >= 3;
    if (samples_.size() >= method_->least_samples) {
      result_.summary = summarize(samples_);
      complete_ = true;
      const bool known = result_.summary.half_width <= method_->half_width ||
                         samples_.size() >= method_->most_samples;
      const bool unsteady = (known || samples_.size() >= 2 * method_->least_samples) && drifts();
      done_ = out_of_time || (known && !unsteady);
      if (unsteady && !done_)
        samples_.erase(samples_.begin(),
                       samples_.begin() + static_cast<std::ptrdiff_t>(samples_.size() / 2));
    } else if (out_of_time) {  // long operations: few samples, and the half width says so
      done_ = true;
      complete_ = !samples_.empty();
      if (complete_) result_.summary = summarize(samples_);
    }
  }

  Measurement take() {
    if (result_.status && !complete_)
      result_.status =
          done_ ? Status(fail("the device was throttled throughout",
                              "an unthrottled device: check its cooling, then measure again"))
                : Status(fail("stopped before it was measured"));
    if (batches_ > 0) result_.capped = static_cast<double>(capped_) / static_cast<double>(batches_);
    if (clocked_ > 0) result_.sm_clock_hz = clocks_ / static_cast<double>(clocked_);
    return std::move(result_);
  }

 private:
  /// Whether the halves of the samples differ by more than chance and by more than the warm-up
  /// allows.
  bool drifts() const {
    const std::span<const Seconds> all(samples_);
    const Summary early = summarize(all.first(all.size() / 2)),
                  late = summarize(all.subspan(all.size() / 2));
    const double apart = std::abs(early.mean / late.mean - 1);
    return apart > method_->agreement && apart > early.half_width + late.half_width;
  }

  std::optional<Batch> run() {
    Result<Batch> batch = subject_->run(launches_);
    if (!batch) {
      result_.status = forward(batch);
      return std::nullopt;
    }
    const auto wrong = [](Seconds s) { return !(std::isfinite(s.s()) && s > Seconds::s(0)); };
    if (batch->samples.empty() || std::ranges::any_of(batch->samples, wrong) ||
        wrong(batch->busy)) {
      result_.status = fail("the device reported no time above zero");
      return std::nullopt;
    }
    busy_ += batch->busy;
    return std::move(*batch);
  }

  Subject* subject_;
  const Method* method_;
  Measurement result_;
  std::size_t launches_ = 1;
  Seconds busy_ = Seconds::s(0), last_ = Seconds::s(0);
  bool agrees_ = false, done_ = false, complete_ = false;
  std::vector<Seconds> samples_;
  std::uint64_t batches_ = 0, capped_ = 0, clocked_ = 0;
  double clocks_ = 0;

 public:
  Seconds busy() const { return busy_; }
};

}  // namespace

double student_95(std::size_t samples) {
  return student_limit(0.025, static_cast<double>(samples) - 1);
}

Summary summarize(std::span<const Seconds> samples) {
  std::vector<double> sorted;
  for (const Seconds sample : samples) sorted.push_back(sample.s());
  std::ranges::sort(sorted);
  const auto at = [&](double share) { return Seconds::s(quantile(sorted, share)); };
  const auto n = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;  // around the mean: the samples differ little
  for (const double s : sorted) squares += (s - mean) * (s - mean);
  const double half_width =
      sorted.size() < 2 ? std::numeric_limits<double>::infinity()
                        : student_95(sorted.size()) * std::sqrt(squares / (n - 1) / n) / mean;
  return {.median = at(0.5),
          .mean = Seconds::s(mean),
          .min = Seconds::s(sorted.front()),
          .p10 = at(0.1),
          .p90 = at(0.9),
          .samples = sorted.size(),
          .half_width = half_width};
}

std::vector<Measurement> measure(std::span<Subject* const> subjects, const Method& method,
                                 const std::function<bool()>& stop) {
  std::vector<Run> runs;
  for (Subject* subject : subjects) runs.emplace_back(*subject, method);
  const auto stopped = [&] { return stop && stop(); };
  const auto all = [&](auto holds) { return std::ranges::all_of(runs, holds); };
  const auto busy = [&] {
    Seconds sum = Seconds::s(0);
    for (const Run& run : runs) sum += run.busy();
    return sum;
  };
  while (!stopped() && !all([](const Run& r) { return r.failed(); }) &&
         (busy() < method.warm_up || !all([](const Run& r) { return r.warm(); })))
    for (Run& run : runs)
      if (!run.failed()) run.warm_up();
  for (Run& run : runs) run.begin();
  while (!stopped() && !all([](const Run& r) { return r.done(); }))
    for (Run& run : runs)
      if (!run.done()) run.sample();
  std::vector<Measurement> results;
  for (Run& run : runs) results.push_back(run.take());
  return results;
}

}  // namespace rehearse::bench
