#include "models/store/prefetch.h"

#include <algorithm>

namespace rehearse::store {

std::vector<BatchTimes> times_of(const Traffic& traffic, const Prefetch& prefetch) {
  const Seconds zero = Seconds::s(0);
  std::vector<BatchTimes> times;
  times.reserve(traffic.batches.size());
  for (std::size_t b = 0; b < traffic.batches.size(); ++b) {
    const BatchTraffic& batch = traffic.batches[b];
    BatchTimes at{zero, zero, zero, zero, zero};
    if (b > 0) at.read_begin = times[b - 1].read_end;
    if (b > prefetch.ahead)
      at.read_begin = std::max(at.read_begin, times[b - 1 - prefetch.ahead].step_end);
    if (prefetch.write && batch.after)
      at.read_begin = std::max(at.read_begin, times[*batch.after].written);
    at.read_end = at.read_begin + prefetch.read * static_cast<double>(batch.reads + batch.fills);
    at.step_begin = std::max(at.read_end, b > 0 ? times[b - 1].step_end : zero);
    at.step_end = at.step_begin + prefetch.step;
    at.written = std::max(at.step_end, b > 0 ? times[b - 1].written : zero);
    if (prefetch.write) at.written += *prefetch.write * static_cast<double>(batch.leaves);
    times.push_back(at);
  }
  return times;
}

Seconds time_per_batch(const std::vector<BatchTimes>& times, std::size_t first) {
  const Seconds before = first > 0 ? times[first - 1].step_end : Seconds::s(0);
  return (times.back().step_end - before) / static_cast<double>(times.size() - first);
}

Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first) {
  double requests = 0, units = 0;
  for (std::size_t b = first; b < traffic.batches.size(); ++b) {
    const BatchTraffic& batch = traffic.batches[b];
    requests += static_cast<double>(batch.misses + batch.fills);
    units += static_cast<double>(batch.reads + batch.fills);
  }
  return drive.latency * requests + drive.unit * units / drive.rate;
}

}  // namespace rehearse::store
