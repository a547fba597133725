#include "models/store/control.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace rehearse::store {
namespace {

/// The cache with each choice throughout. A study asks for the same under several controllers, so
/// each thread keeps its last.
Result<std::vector<Traffic>> run_choices(const KeyStream& stream, const Cache& cache,
                                         const std::vector<std::uint32_t>& choices) {
  thread_local KeyStream last_stream;
  thread_local std::pair<Cache, std::vector<std::uint32_t>> last;
  thread_local std::vector<Traffic> traffic;
  std::pair<Cache, std::vector<std::uint32_t>> asked(cache, choices);
  asked.first.readahead = 1;
  if (!traffic.empty() && last == asked && last_stream == stream) return traffic;
  traffic.clear();
  std::vector<Traffic> runs;
  for (const std::uint32_t readahead : choices) {
    Cache throughout = cache;
    throughout.readahead = readahead;
    runs.push_back(TRY(store::run(stream, throughout)));
  }
  last = std::move(asked);
  last_stream = stream;
  return traffic = std::move(runs);
}

}  // namespace

Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first, std::size_t end) {
  double requests = 0, units = 0;
  for (std::size_t b = first; b < end; ++b) {
    const BatchTraffic& batch = traffic.batches[b];
    requests += static_cast<double>(batch.misses + batch.fills);
    units += static_cast<double>(batch.reads + batch.fills);
  }
  return drive.latency * requests + drive.unit * units / drive.rate;
}

Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first) {
  return read_time(traffic, drive, first, traffic.batches.size());
}

Result<Controlled> run_controlled(const KeyStream& stream, const Cache& cache, const Drive& drive,
                                  const Control& control) {
  REHEARSE_CHECK(!control.choices.empty() && control.window >= 1, "{} choices, window {}",
                 control.choices.size(), control.window);
  const std::size_t batches = stream.batches();
  const std::size_t window =
      std::min<std::size_t>(control.window, std::max<std::size_t>(batches, 1));
  const std::size_t windows = (batches + window - 1) / window;
  const auto begin_of = [&](std::size_t w) { return std::min(w * window, batches); };
  std::vector<std::uint32_t> best(windows, 0);
  std::vector<Seconds> least(windows, Seconds::s(0));
  const auto runs = TRY(run_choices(stream, cache, control.choices));
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t w = 0; w < windows; ++w) {
      const Seconds time = read_time(runs[i], drive, begin_of(w), begin_of(w + 1));
      if (best[w] != 0 && !(time < least[w])) continue;
      best[w] = control.choices[i];
      least[w] = time;
    }
  Controlled controlled;
  controlled.readahead.assign(batches, cache.readahead);
  for (std::size_t w = control.delay; w < windows; ++w)
    std::fill(controlled.readahead.begin() + static_cast<std::ptrdiff_t>(begin_of(w)),
              controlled.readahead.begin() + static_cast<std::ptrdiff_t>(begin_of(w + 1)),
              best[w - control.delay]);
  controlled.traffic = TRY(run(stream, cache, controlled.readahead));
  return controlled;
}

}  // namespace rehearse::store
