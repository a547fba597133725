#include "profiler/replay/compare.h"

#include <algorithm>
#include <cmath>

#include "sim/base/statistics.h"

namespace rehearse::replay {
namespace {

double median_or_zero(std::vector<double> values) {
  return values.empty() ? 0 : upper_median(std::move(values));
}

/// The longer of the mean host and the mean device period.
class LongerPeriod {
 public:
  void add(std::optional<Seconds> host, std::optional<Seconds> device) {
    if (host) host_ += host->s();
    if (device) device_ += device->s();
    steps_ += 1;
  }
  bool empty() const { return steps_ == 0; }
  Seconds mean() const { return Seconds::s(std::max(host_, device_) / steps_); }

 private:
  double host_ = 0, device_ = 0, steps_ = 0;
};

}  // namespace

Comparison compare(const std::vector<Recording>& recordings, const ReplayGraph& replay,
                   const graph::Timeline& timeline) {
  Comparison result;
  std::vector<double> errors, start_offsets;
  double ranks_with_steps = 0;
  Nanoseconds residual(0), span(0);
  for (std::size_t rank = 0; rank < replay.program.replays.size(); ++rank) {
    const RankReplay& r = replay.program.replays[rank];
    const auto end_of = [&](OpIndex op) { return timeline[replay.lowered.op(rank, op)].end; };
    residual += r.residual;
    span += r.span;
    LongerPeriod measured_period, simulated_period;
    std::optional<Nanoseconds> measured_before;
    std::optional<Picoseconds> simulated_before;
    for (const StepOps& ops : r.steps) {
      const Picoseconds begin = ops.begins_after ? end_of(*ops.begins_after) : Picoseconds(0);
      const Seconds measured = (ops.step.end - ops.step.start).seconds();
      StepComparison step{.rank = rank,
                          .name = ops.step.name,
                          .partial = ops.step.partial,
                          .host = Pair{measured, (end_of(ops.ends_with) - begin).seconds()},
                          .device = std::nullopt};
      if (ops.measured_device_end) {
        Picoseconds simulated_end(0);
        for (const OpIndex op : ops.last_device_ops)
          simulated_end = std::max(simulated_end, end_of(op));
        step.device =
            Pair{(*ops.measured_device_end - measured_before.value_or(ops.step.start)).seconds(),
                 (simulated_end - simulated_before.value_or(begin)).seconds()};
        measured_before = ops.measured_device_end;
        simulated_before = simulated_end;
      }
      if (!ops.of_host && step.device) step.host.reset();
      if (!step.partial) {
        for (const std::optional<Pair>& pair : {step.host, step.device}) {
          if (!pair || pair->measured <= Seconds::s(0)) continue;
          errors.push_back(std::abs(pair->error()));
          if (std::abs(pair->error()) > std::abs(result.worst_error))
            result.worst_error = pair->error();
        }
        const auto side = [](const std::optional<Pair>& pair, Seconds Pair::*which) {
          return pair ? std::optional((*pair).*which) : std::nullopt;
        };
        measured_period.add(side(step.host, &Pair::measured), side(step.device, &Pair::measured));
        simulated_period.add(side(step.host, &Pair::simulated),
                             side(step.device, &Pair::simulated));
      }
      result.steps.push_back(std::move(step));
    }
    if (!measured_period.empty()) {
      result.step_time.measured += measured_period.mean();
      result.step_time.simulated += simulated_period.mean();
      ranks_with_steps += 1;
    }
    for (std::size_t i = 0; i < r.device_first.size(); ++i) {
      const Seconds simulated = timeline[replay.start_of(rank, r.device_first[i])].start.seconds();
      const Seconds recorded = recordings[rank].gpu(static_cast<GpuIndex>(i)).start.seconds();
      start_offsets.push_back(std::abs((simulated - recorded).s()));
    }
  }
  result.median_error = median_or_zero(std::move(errors));
  if (ranks_with_steps > 0) {
    result.step_time.measured = result.step_time.measured / ranks_with_steps;
    result.step_time.simulated = result.step_time.simulated / ranks_with_steps;
  }
  if (result.step_time.measured > Seconds::s(0))
    result.start_error = median_or_zero(std::move(start_offsets)) / result.step_time.measured.s();
  if (span > Nanoseconds(0)) result.residual_share = residual / span;
  return result;
}

}  // namespace rehearse::replay
