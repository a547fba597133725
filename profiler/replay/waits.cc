#include "profiler/replay/waits.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace rehearse::replay {
namespace {

using trace::CopyDirection, trace::GpuKind, trace::GpuOp, trace::HostMemory, trace::HostOp,
    trace::Sync;

// Host and device clocks agree to a few microseconds, and some files know only whole ones.
constexpr Nanoseconds kClockSlack{3000};

class WaitFinder {
 public:
  explicit WaitFinder(const Recording& recording) : r_(recording) {
    for (const Sync& sync : r_.rank().syncs)
      if (sync.correlation) sync_of_.try_emplace(*sync.correlation, &sync);
    order_launches();
  }

  std::vector<HostWait> find() {
    for (const HostThread& thread : r_.threads()) {
      last_stream_.reset();
      last_recorded_.reset();
      for (const HostIndex i : thread.ops) visit(i);
    }
    return std::move(waits_);
  }

 private:
  /// Per stream, its ops and when each was launched, so that "launched before" is a search.
  void order_launches() {
    for (const Stream& stream : r_.streams()) {
      std::vector<Nanoseconds>& times = launch_times_.emplace_back();
      Nanoseconds latest(std::numeric_limits<std::int64_t>::min());
      for (const GpuIndex op : stream.ops) {
        // Streams run in order of launch, so launch times never decrease but for clock noise.
        if (const auto call = r_.launcher(op)) latest = std::max(latest, r_.host(*call).start);
        times.push_back(latest);
      }
    }
  }

  /// The last op of a stream that was launched before `time`.
  std::optional<GpuIndex> last_launched(std::size_t stream, Nanoseconds time) const {
    const std::vector<Nanoseconds>& times = launch_times_[stream];
    const auto after = std::ranges::lower_bound(times, time);
    if (after == times.begin()) return std::nullopt;
    return r_.streams()[stream].ops[static_cast<std::size_t>(after - times.begin()) - 1];
  }

  bool ended_by(GpuIndex op, const HostOp& call) const {
    return r_.gpu(op).end() <= call.end() + kClockSlack;
  }

  void add(HostIndex call, std::vector<GpuIndex> ops, bool before_end = false) {
    const HostOp& c = r_.host(call);
    const bool waited = std::ranges::any_of(
        ops, [&](GpuIndex op) { return r_.gpu(op).end() > c.start + kClockSlack; });
    waits_.push_back({call, std::move(ops), before_end, waited});
  }

  void visit(HostIndex i) {
    const HostOp& op = r_.host(i);
    switch (call_kind(r_, i)) {
      case CallKind::kSyncDevice: return wait_device(i);
      case CallKind::kSyncStream: return wait_stream(i);
      case CallKind::kSyncEvent: return wait_event(i);
      case CallKind::kCopy: wait_copy(i, false); break;
      case CallKind::kBlockingCopy: wait_copy(i, true); break;
      case CallKind::kQueueFull: return add(i, last_ended_in(i));
      case CallKind::kEventRecord:
        last_recorded_ = last_stream_ ? last_launched(*last_stream_, op.start) : std::nullopt;
        return;
      default: break;
    }
    if (const auto launched = r_.launched(i); !launched.empty())
      last_stream_ = r_.stream_of(launched.back());
  }

  void wait_device(HostIndex i) {
    const HostOp& call = r_.host(i);
    std::vector<GpuIndex> ops;
    for (std::size_t s = 0; s < r_.streams().size(); ++s)
      if (const auto last = last_launched(s, call.start); last && ended_by(*last, call))
        ops.push_back(*last);
    add(i, std::move(ops));
  }

  void wait_stream(HostIndex i) {
    const HostOp& call = r_.host(i);
    std::optional<std::size_t> stream = last_stream_;
    if (const Sync* sync = sync_record(call); sync && sync->stream)
      if (const auto recorded = stream_numbered(*sync->stream)) stream = recorded;
    const auto last = stream ? last_launched(*stream, call.start) : std::nullopt;
    if (last && ended_by(*last, call) && explains(*last, call)) return add(i, {*last});
    // The guess contradicts the times, or does not account for them: then it was the stream whose
    // work ended last within the call.
    std::optional<GpuIndex> best;
    for (std::size_t s = 0; s < r_.streams().size(); ++s)
      if (const auto other = last_launched(s, call.start);
          other && ended_by(*other, call) && r_.gpu(*other).end() > call.start)
        if (!best || r_.gpu(*other).end() > r_.gpu(*best).end()) best = other;
    if (!best && last && ended_by(*last, call)) best = last;
    add(i, best ? std::vector{*best} : std::vector<GpuIndex>());
  }

  /// Whether waiting for `op` accounts for how long the call took, but for a wake-up.
  bool explains(GpuIndex op, const HostOp& call) const {
    return call.end() - std::max(call.start, r_.gpu(op).end()) <= kLongestWake;
  }

  void wait_event(HostIndex i) {
    const HostOp& call = r_.host(i);
    if (const Sync* sync = sync_record(call); sync && sync->source_stream) {
      const auto stream = stream_numbered(*sync->source_stream);
      const auto recorded = recorded_at(sync->event_correlation).value_or(call.start);
      if (stream) {
        const auto last = last_launched(*stream, recorded);
        if (!last) return add(i, {});
        if (ended_by(*last, call)) return add(i, {*last});
      }
    }
    // Which event it was is not recorded: the latest work that ended inside the call, else the work
    // before the event that this thread recorded last.
    std::vector<GpuIndex> ops = last_ended_in(i);
    if (ops.empty() && last_recorded_ && ended_by(*last_recorded_, call)) ops = {*last_recorded_};
    add(i, std::move(ops));
  }

  /// The ops of the device that ended last while the call lasted.
  std::vector<GpuIndex> last_ended_in(HostIndex i) const {
    const HostOp& call = r_.host(i);
    std::optional<GpuIndex> best;
    for (std::size_t s = 0; s < r_.streams().size(); ++s) {
      const auto& ops = r_.streams()[s].ops;
      const auto after =
          std::upper_bound(ops.begin(), ops.end(), call.end() + kClockSlack,
                           [&](Nanoseconds time, GpuIndex op) { return time < r_.gpu(op).end(); });
      if (after == ops.begin()) continue;
      const GpuIndex candidate = *std::prev(after);
      if (r_.gpu(candidate).end() > call.start &&
          (!best || r_.gpu(candidate).end() > r_.gpu(*best).end()))
        best = candidate;
    }
    return best ? std::vector{*best} : std::vector<GpuIndex>();
  }

  void wait_copy(HostIndex i, bool blocking) {
    const HostOp& call = r_.host(i);
    const auto launched = r_.launched(i);
    if (launched.empty() && blocking) add(i, {});
    if (launched.empty()) return;
    const GpuIndex copy = launched.back();
    const GpuOp& op = r_.gpu(copy);
    if (op.kind != GpuKind::kCopy) return;
    const bool from_host = op.direction == CopyDirection::kHostToDevice;
    const bool to_host = op.direction == CopyDirection::kDeviceToHost;
    if (!from_host && !to_host) return;
    if (from_host && op.host_memory == HostMemory::kPageable) {
      if (op.bytes && *op.bytes <= kStagedBytes) return;
      if (call.end() + kClockSlack < op.start) return;  // returned before the copy began
      return add(i, {copy}, true);
    }
    bool waits = blocking || (to_host && op.host_memory == HostMemory::kPageable);
    // ROCm does not record the kind of host memory: the times decide.
    if (!waits && op.host_memory == HostMemory::kUnknown) waits = call.end() >= op.end();
    if (waits) add(i, ended_by(copy, call) ? std::vector{copy} : std::vector<GpuIndex>());
  }

  const Sync* sync_record(const HostOp& call) const {
    if (!call.correlation) return nullptr;
    const auto found = sync_of_.find(*call.correlation);
    return found == sync_of_.end() ? nullptr : found->second;
  }

  std::optional<std::size_t> stream_numbered(std::uint32_t number) const {
    for (std::size_t s = 0; s < r_.streams().size(); ++s)
      if (r_.streams()[s].number == number) return s;
    return std::nullopt;
  }

  /// When the call with this correlation (an event record) was made.
  std::optional<Nanoseconds> recorded_at(std::optional<std::uint32_t> correlation) {
    if (!correlation) return std::nullopt;
    if (call_times_.empty())
      for (const HostOp& op : r_.rank().host_ops)
        if (op.correlation) call_times_.try_emplace(*op.correlation, op.start);
    const auto found = call_times_.find(*correlation);
    if (found == call_times_.end()) return std::nullopt;
    return found->second;
  }

  const Recording& r_;
  std::unordered_map<std::uint32_t, const Sync*> sync_of_;
  std::vector<std::vector<Nanoseconds>> launch_times_;
  std::unordered_map<std::uint32_t, Nanoseconds> call_times_;
  std::optional<std::size_t> last_stream_;  // of this thread's last launch
  std::optional<GpuIndex> last_recorded_;   // last op before this thread's last event record
  std::vector<HostWait> waits_;
};

}  // namespace

std::vector<HostWait> find_host_waits(const Recording& recording) {
  return WaitFinder(recording).find();
}

}  // namespace rehearse::replay
