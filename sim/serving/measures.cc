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

Measures measure(std::span<const Run> replicas, std::int64_t blocks) {
  Measures m;
  std::vector<double> ttft, at_server, tpot, end_to_end, queue;
  Gaps gaps;
  Picoseconds begin(std::numeric_limits<std::int64_t>::max()), end{0};
  double busy = 0;
  for (const Run& run : replicas) {
    for (const Served& r : run.served) {
      ttft.push_back((r.first - r.sent).seconds().s());
      at_server.push_back((r.first - r.queued).seconds().s());
      if (r.output > 1)
        tpot.push_back((r.last - r.first).seconds().s() / static_cast<double>(r.output - 1));
      end_to_end.push_back((r.last - r.sent).seconds().s());
      queue.push_back((r.scheduled - r.queued).seconds().s());
      m.output_tokens += static_cast<double>(r.output);
      m.input_tokens += static_cast<double>(r.input);
      m.reused_tokens += static_cast<double>(r.reused);
      begin = std::min(begin, r.sent);
      end = std::max(end, r.last);
    }
    gaps.insert(gaps.end(), run.gaps.begin(), run.gaps.end());
    for (const StepRun& step : run.steps) {
      const double time = (step.each * step.steps).seconds().s();
      const double held = static_cast<double>(step.held) / static_cast<double>(blocks);
      busy += time;
      m.running += time * static_cast<double>(step.running);
      m.occupancy += time * held;
      m.peak_occupancy = std::max(m.peak_occupancy, held);
      m.preemptions += static_cast<double>(step.preempted);
    }
  }
  m.requests = static_cast<double>(ttft.size());
  m.duration = (end - begin).seconds().s();
  if (busy > 0) {
    m.running /= busy;
    m.occupancy /= busy;
  }
  if (m.duration > 0) m.busy = busy / m.duration / static_cast<double>(replicas.size());
  m.ttft = spread(std::move(ttft));
  m.ttft_at_server = spread(std::move(at_server));
  m.tpot = spread(std::move(tpot));
  m.end_to_end = spread(std::move(end_to_end));
  m.queue = spread(std::move(queue));
  m.itl = spread(std::move(gaps));
  return m;
}

}  // namespace rehearse::serving
