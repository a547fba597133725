#include "profiler/replay/stream_waits.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "profiler/replay/delays.h"

namespace rehearse::replay {
namespace {

using trace::GpuOp, trace::HostOp, trace::Sync;

// The allowed distance of its start from the end of the awaited work: a kernel may start while the
// other still drains, and an event takes a few microseconds to reach the other stream.
constexpr Nanoseconds kDraining{3000};
constexpr Nanoseconds kEventDelay{6000};

class StreamWaitFinder {
 public:
  StreamWaitFinder(const Recording& recording, const Constants& constants)
      : r_(recording), constants_(constants), bound_(recording.rank().gpu_ops.size()) {
    for (const Stream& stream : r_.streams())
      for (const GpuIndex op : stream.ops) by_end_.push_back(op);
    std::ranges::stable_sort(
        by_end_, [&](GpuIndex a, GpuIndex b) { return r_.gpu(a).end() < r_.gpu(b).end(); });
    set_bounds();
  }

  void from_records() {
    if (r_.rank().syncs.empty()) return;
    std::unordered_map<std::uint32_t, HostIndex> call_of;
    for (std::size_t i = 0; i < r_.rank().host_ops.size(); ++i)
      if (const auto id = r_.rank().host_ops[i].correlation)
        call_of.try_emplace(*id, static_cast<HostIndex>(i));
    const auto time_of = [&](std::optional<std::uint32_t> id, Nanoseconds otherwise) {
      const auto found = id ? call_of.find(*id) : call_of.end();
      return found == call_of.end() ? otherwise : r_.rank().host_ops[found->second].start;
    };
    for (const Sync& sync : r_.rank().syncs) {
      if (sync.kind != trace::SyncKind::kStreamWaitEvent || !sync.stream || !sync.source_stream)
        continue;
      if (sync.correlation) recorded_.insert(*sync.correlation);
      const Nanoseconds waited_at = time_of(sync.correlation, sync.start);
      const Nanoseconds recorded_at = time_of(sync.event_correlation, waited_at);
      const auto before = last_launched(*sync.source_stream, recorded_at);
      const auto after = first_launched(*sync.stream, waited_at);
      if (before && after) add(*before, *after, Evidence::kRecorded);
    }
  }

  void from_calls() {
    // Each op's launch time, to know what had been launched when a stream was told to wait.
    for (const HostThread& thread : r_.threads()) {
      std::optional<Nanoseconds> waiting_since;
      for (const HostIndex i : thread.ops) {
        const HostOp& call = r_.host(i);
        if (call.kind != trace::HostKind::kRuntime && call.kind != trace::HostKind::kDriver)
          continue;
        const bool recorded = call.correlation && recorded_.contains(*call.correlation);
        if (call_kind(r_.name(call)) == CallKind::kStreamWaitEvent && !recorded)
          waiting_since = call.start;
        const auto launched = r_.launched(i);
        if (launched.empty() || !waiting_since) continue;
        match_call(launched.front(), *waiting_since);
        waiting_since.reset();
      }
    }
  }

  void from_timing() {
    std::vector<GpuIndex> by_start = by_end_;
    std::ranges::stable_sort(
        by_start, [&](GpuIndex a, GpuIndex b) { return r_.gpu(a).start < r_.gpu(b).start; });
    for (const GpuIndex i : by_start) {
      const GpuOp& op = r_.gpu(i);
      if (!bound_[i] || op.start - *bound_[i] <= kLate) continue;
      if (const auto before = nearest_end(i)) add(*before, i, Evidence::kTiming);
    }
  }

  std::vector<StreamWait> take() { return std::move(found_); }

 private:
  /// The earliest start that launch and stream order allow; nothing for an op without a launch.
  void set_bounds() {
    for (const Stream& stream : r_.streams())
      for (std::size_t k = 0; k < stream.ops.size(); ++k) {
        const GpuIndex i = stream.ops[k];
        const auto call = r_.launcher(i);
        // Later ops of one launch (a graph) keep their recorded distances.
        if (!call || r_.launched(*call).front() != i) continue;
        const bool kernel = r_.gpu(i).kind == trace::GpuKind::kKernel;
        const Fitted& launch = kernel ? constants_.launch : constants_.copy_launch;
        Nanoseconds bound = r_.host(*call).start + launch.value;
        if (k > 0)
          bound = std::max(bound, r_.gpu(stream.ops[k - 1]).end() + constants_.queue_gap.value);
        bound_[i] = bound;
      }
  }

  void add(GpuIndex before, GpuIndex after, Evidence evidence) {
    const GpuOp &b = r_.gpu(before), &a = r_.gpu(after);
    if (r_.stream_of(before) == r_.stream_of(after) || b.start >= a.start ||
        b.end() > a.start + kDraining)
      return;
    if (!known_.insert({before, after}).second) return;
    found_.push_back({before, after, evidence});
    if (bound_[after]) bound_[after] = std::max(*bound_[after], b.end());
  }

  Nanoseconds launched_at(GpuIndex op) const {
    const auto call = r_.launcher(op);
    return call ? r_.host(*call).start : Nanoseconds(INT64_MIN);
  }

  std::optional<GpuIndex> last_launched(std::uint32_t number, Nanoseconds time) const {
    std::optional<GpuIndex> last;
    for (const Stream& stream : r_.streams())
      if (stream.number == number)
        for (const GpuIndex op : stream.ops)
          if (launched_at(op) < time) last = op;
    return last;
  }
  std::optional<GpuIndex> first_launched(std::uint32_t number, Nanoseconds time) const {
    for (const Stream& stream : r_.streams())
      if (stream.number == number)
        for (const GpuIndex op : stream.ops)
          if (launched_at(op) > time) return op;
    return std::nullopt;
  }

  /// Rule A: of the work launched on other streams before the wait, the op that ended last before
  /// `after`.
  void match_call(GpuIndex after, Nanoseconds waiting_since) {
    const GpuOp& a = r_.gpu(after);
    const auto stop =
        std::upper_bound(by_end_.begin(), by_end_.end(), a.start,
                         [&](Nanoseconds time, GpuIndex op) { return time < r_.gpu(op).end(); });
    constexpr int kLooked = 256;  // further back it no longer binds
    int looked = 0;
    for (auto at = stop; at != by_end_.begin() && looked < kLooked; ++looked) {
      --at;
      if (r_.stream_of(*at) == r_.stream_of(after) || launched_at(*at) >= waiting_since) continue;
      return add(*at, after, Evidence::kCall);
    }
  }

  /// Rule B: the op of another stream whose end lies nearest to the start of `after`.
  std::optional<GpuIndex> nearest_end(GpuIndex after) const {
    const Nanoseconds start = r_.gpu(after).start;
    const auto begin =
        std::lower_bound(by_end_.begin(), by_end_.end(), start - kEventDelay,
                         [&](GpuIndex op, Nanoseconds time) { return r_.gpu(op).end() < time; });
    std::optional<GpuIndex> best;
    Nanoseconds best_distance(INT64_MAX);
    for (auto at = begin; at != by_end_.end() && r_.gpu(*at).end() <= start + kDraining; ++at) {
      if (r_.stream_of(*at) == r_.stream_of(after) || r_.gpu(*at).start >= start) continue;
      const Nanoseconds d = r_.gpu(*at).end() - start;
      const Nanoseconds distance = d < Nanoseconds(0) ? -d : d;
      if (distance < best_distance) {
        best = *at;
        best_distance = distance;
      }
    }
    return best;
  }

  const Recording& r_;
  const Constants& constants_;
  std::vector<std::optional<Nanoseconds>> bound_;
  std::vector<GpuIndex> by_end_;
  std::set<std::pair<GpuIndex, GpuIndex>> known_;
  std::set<std::uint32_t> recorded_;  // correlation of calls whose meaning a record tells
  std::vector<StreamWait> found_;
};

}  // namespace

std::vector<StreamWait> find_stream_waits(const Recording& recording, const Constants& constants,
                                          StreamWaitOptions options) {
  StreamWaitFinder finder(recording, constants);
  finder.from_records();
  if (options.from_calls) finder.from_calls();
  if (options.from_timing) finder.from_timing();
  return finder.take();
}

std::vector<std::optional<GpuIndex>> find_followed(const Recording& r) {
  std::vector<std::optional<GpuIndex>> followed(r.rank().gpu_ops.size());
  std::vector<GpuIndex> by_end;
  for (const Stream& stream : r.streams()) {
    by_end.insert(by_end.end(), stream.ops.begin(), stream.ops.end());
    for (std::size_t k = 1; k < stream.ops.size(); ++k)
      if (r.gpu(stream.ops[k]).start <= r.gpu(stream.ops[k - 1]).end() + kLate)
        followed[stream.ops[k]] = stream.ops[k - 1];
  }
  std::ranges::stable_sort(by_end,
                           [&](GpuIndex a, GpuIndex b) { return r.gpu(a).end() < r.gpu(b).end(); });
  for (const GpuIndex i : by_end) {
    if (followed[i]) continue;
    const GpuOp& op = r.gpu(i);
    auto after = std::upper_bound(by_end.begin(), by_end.end(), op.start + kDraining,
                                  [&](Nanoseconds t, GpuIndex o) { return t < r.gpu(o).end(); });
    // An op cannot follow one that began no earlier.
    while (after != by_end.begin() && r.gpu(*std::prev(after)).start >= op.start) --after;
    if (after != by_end.begin()) followed[i] = *std::prev(after);
  }
  return followed;
}

}  // namespace rehearse::replay
