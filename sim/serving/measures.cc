#include "sim/serving/measures.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/base/statistics.h"

namespace rehearse::serving {
namespace {

Spread spread(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {
      std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size()),
      quantile(samples, 0.5), quantile(samples, 0.9), quantile(samples, 0.99)};
}

/// The same of samples that occur several times each.
Spread spread(Gaps gaps) {
  std::sort(gaps.begin(), gaps.end());
  std::int64_t count = 0;
  double sum = 0;
  for (const auto& [gap, times] : gaps) {
    count += times;
    sum += gap.seconds().s() * static_cast<double>(times);
  }
  if (count == 0) return {};
  const auto at = [&](double share) {
    double left = share * static_cast<double>(count - 1);
    for (const auto& [gap, times] : gaps)
      if ((left -= static_cast<double>(times)) < 0) return gap.seconds().s();
    return gaps.back().first.seconds().s();
  };
  return {sum / static_cast<double>(count), at(0.5), at(0.9), at(0.99)};
}

}  // namespace

Use use_of(std::span<const Run> replicas, const Measures& of) {
  Use use;
  double busy = 0;
  for (const Run& run : replicas) {
    use.rented +=
        std::max(0.0, (std::min(run.gone, of.end) - std::max(run.rented, of.begin)).seconds().s());
    if (run.ready < std::min(run.gone, of.end))
      use.most_replicas =
          std::max(use.most_replicas,
                   static_cast<double>(std::ranges::count_if(replicas, [&](const Run& other) {
                     return other.ready <= run.ready && run.ready < other.gone;
                   })));
    for (const StepRun& step : run.steps) {
      const double time = (step.each * step.steps).seconds().s();
      const double held = static_cast<double>(step.held) / static_cast<double>(run.blocks);
      busy += time;
      if (step.waiting > 0) use.overloaded += time;
      use.running += time * static_cast<double>(step.running);
      use.occupancy += time * held;
      use.peak_occupancy = std::max(use.peak_occupancy, held);
      use.preemptions += static_cast<double>(step.preempted);
    }
  }
  if (busy > 0) {
    use.overloaded /= busy;
    use.running /= busy;
    use.occupancy /= busy;
  }
  if (use.rented > 0) use.busy = busy / use.rented;
  return use;
}

Measures measure(std::span<const Run> replicas) {
  Measures m;
  std::vector<double> ttft, at_server, tpot, end_to_end, queue, prefill, room, transfer;
  Gaps gaps;
  m.begin = Picoseconds(std::numeric_limits<std::int64_t>::max());
  const auto between = [](Picoseconds from, Picoseconds to) { return (to - from).seconds().s(); };
  for (const Run& run : replicas) {
    for (const Served& r : run.served) {
      m.begin = std::min(m.begin, r.sent);
      m.end = std::max(m.end, r.last);
      if (r.dropped) {
        ++m.dropped;
        continue;
      }
      ttft.push_back(between(r.sent, r.first));
      at_server.push_back(between(r.queued, r.first));
      if (r.output > 1)
        tpot.push_back(between(r.first, r.last) / static_cast<double>(r.output - 1));
      end_to_end.push_back(between(r.sent, r.last));
      queue.push_back(between(r.queued, r.scheduled));
      prefill.push_back(between(r.scheduled, r.prefilled));
      if (r.arrived > Picoseconds(0)) {
        const Picoseconds sent = std::max(r.prefilled, r.room);
        room.push_back(between(r.prefilled, sent));
        transfer.push_back(between(sent, r.arrived));
      }
      m.output_tokens += static_cast<double>(r.output);
      m.input_tokens += static_cast<double>(r.input);
      m.reused_tokens += static_cast<double>(r.reused);
      m.loaded_tokens += static_cast<double>(r.loaded);
    }
    gaps.insert(gaps.end(), run.gaps.begin(), run.gaps.end());
  }
  m.requests = static_cast<double>(ttft.size());
  m.duration = (m.end - m.begin).seconds().s();
  static_cast<Use&>(m) = use_of(replicas, m);
  m.ttft = spread(std::move(ttft));
  m.ttft_at_server = spread(std::move(at_server));
  m.tpot = spread(std::move(tpot));
  m.end_to_end = spread(std::move(end_to_end));
  m.queue = spread(std::move(queue));
  m.prefill = spread(std::move(prefill));
  m.room = spread(std::move(room));
  m.transfer = spread(std::move(transfer));
  m.itl = spread(std::move(gaps));
  return m;
}

}  // namespace rehearse::serving
