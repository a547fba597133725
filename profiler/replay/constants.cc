#include "profiler/replay/constants.h"

#include <algorithm>
#include <map>

#include "sim/base/statistics.h"

namespace rehearse::replay {
namespace {

using trace::GpuKind, trace::GpuOp, trace::HostOp;

// Used where a recording shows none of the kind. NVIDIA and AMD recordings from 2021 to 2025 lie
// within a factor of two of these (docs/concepts/replay.md).
constexpr Nanoseconds kDefaultLaunch{8000};
constexpr Nanoseconds kDefaultQueueGap{1300};
constexpr Nanoseconds kDefaultWake{10000};
constexpr Nanoseconds kDefaultCopyLead{50000};
constexpr Nanoseconds kDefaultSyncCost{4000};
constexpr Nanoseconds kDefaultCopyCost{8000};

constexpr std::size_t kEnough = 5;  // samples for a median of its own

/// The times at which each stream was told to wait for an event. A later op may start late because
/// of it.
std::map<std::uint32_t, std::vector<Nanoseconds>> told_to_wait(const Recording& r) {
  std::map<std::uint32_t, std::vector<Nanoseconds>> times;
  for (const trace::Sync& sync : r.rank().syncs)
    if (sync.kind == trace::SyncKind::kStreamWaitEvent && sync.stream)
      times[*sync.stream].push_back(sync.start);
  for (auto& [stream, of_stream] : times) std::ranges::sort(of_stream);
  return times;
}

bool copies(CallKind kind) { return kind == CallKind::kCopy || kind == CallKind::kBlockingCopy; }

/// The end of the last op that a call waits for.
Nanoseconds end_of(const Recording& r, const HostWait& wait) {
  Nanoseconds end(INT64_MIN);
  for (const GpuIndex op : wait.ops) end = std::max(end, r.gpu(op).end());
  return end;
}

Fitted median(std::vector<Nanoseconds> samples, Nanoseconds otherwise) {
  if (samples.empty()) return {otherwise, 0};
  const std::size_t count = samples.size();
  return {upper_median(std::move(samples)), count};
}

}  // namespace

Constants fit_constants(const Recording& r, const std::vector<HostWait>& waits) {
  const std::map<std::uint32_t, std::vector<Nanoseconds>> waits_of = told_to_wait(r);
  std::vector<Nanoseconds> launch, copy_launch, gap;
  for (const Stream& stream : r.streams()) {
    Nanoseconds idle_since(INT64_MIN), called_before(INT64_MIN);
    const auto told =
        stream.ops.empty() ? waits_of.end() : waits_of.find(r.gpu(stream.ops.front()).stream);
    const auto waits_between = [&](Nanoseconds from, Nanoseconds to) {
      if (told == waits_of.end()) return false;
      const auto at = std::ranges::upper_bound(told->second, from);
      return at != told->second.end() && *at < to;
    };
    for (std::size_t k = 0; k < stream.ops.size(); ++k) {
      const GpuIndex i = stream.ops[k];
      const GpuOp& op = r.gpu(i);
      const auto call = r.launcher(i);
      if (call && r.launched(*call).front() == i && idle_since < r.host(*call).start &&
          !waits_between(called_before, r.host(*call).start)) {
        const Nanoseconds latency = op.start - r.host(*call).start;
        if (latency >= Nanoseconds(0) && latency < Nanoseconds(1000000))
          (op.kind == GpuKind::kKernel ? launch : copy_launch).push_back(latency);
      }
      if (k > 0) {
        const GpuOp& before = r.gpu(stream.ops[k - 1]);
        // Launched so long before its predecessor ended that only the stream held it up.
        constexpr Nanoseconds kBacklog{40000};
        const Nanoseconds between = op.start - before.end();
        if (call && r.host(*call).start + kBacklog < before.end() && between < Nanoseconds(20000))
          gap.push_back(std::max(between, Nanoseconds(0)));
      }
      idle_since = std::max(idle_since, op.end());
      if (call) called_before = r.host(*call).start;
    }
  }

  std::vector<Nanoseconds> wake, copy_wake, lead, sync_cost, copy_cost;
  std::vector<char> waits_for_copy(r.rank().host_ops.size(), 0);
  for (const HostWait& wait : waits) {
    const HostOp& call = r.host(wait.call);
    const CallKind kind = call_kind(r, wait.call);
    if (kind == CallKind::kQueueFull) continue;
    if (copies(kind)) waits_for_copy[wait.call] = 1;
    const Nanoseconds end = end_of(r, wait);
    if (wait.before_end) {
      if (wait.waited && call.end() > r.gpu(wait.ops.front()).start)
        lead.push_back(end - call.end());
    } else if (wait.waited) {
      // A call that took longer than any wake-up waited for something else.
      if (call.end() - end <= kLongestWake)
        (copies(kind) ? copy_wake : wake).push_back(std::max(call.end() - end, Nanoseconds(0)));
    } else if (!copies(kind) && call.duration <= kLongestWake) {
      sync_cost.push_back(call.duration);
    }
  }
  for (const HostThread& thread : r.threads())
    for (const HostIndex i : thread.ops) {
      const HostOp& op = r.host(i);
      if (op.kind != trace::HostKind::kRuntime || waits_for_copy[i]) continue;
      if (call_kind(r.name(op)) == CallKind::kCopy) copy_cost.push_back(op.duration);
    }

  Constants c{.launch = median(launch, kDefaultLaunch),
              .copy_launch = median(copy_launch, kDefaultLaunch),
              .queue_gap = median(gap, kDefaultQueueGap),
              .wake = median(wake, kDefaultWake),
              .copy_wake = median(copy_wake, kDefaultWake),
              .copy_lead = median(lead, kDefaultCopyLead),
              .sync_cost = median(sync_cost, kDefaultSyncCost),
              .copy_cost = median(copy_cost, kDefaultCopyCost)};
  // Without a host the distances of ops are kept as recorded.
  if (r.threads().empty()) c.queue_gap = {};
  if (c.copy_launch.samples < kEnough && c.launch.samples >= kEnough) c.copy_launch = c.launch;
  return c;
}

Nanoseconds Constants::own(CallKind kind) const {
  if (kind == CallKind::kQueueFull) return Nanoseconds(0);
  return (copies(kind) ? copy_cost : sync_cost).value;
}

Nanoseconds Constants::wake_of(CallKind kind) const {
  if (kind == CallKind::kQueueFull) return Nanoseconds(0);
  return (copies(kind) ? copy_wake : wake).value;
}

Nanoseconds unexplained(const Recording& r, const HostWait& wait, const Constants& constants) {
  const HostOp& call = r.host(wait.call);
  const CallKind kind = call_kind(r, wait.call);
  const Nanoseconds ready = call.start + std::min(call.duration, constants.own(kind));
  if (wait.ops.empty()) return call.end() - ready;
  const Nanoseconds caused =
      end_of(r, wait) + (wait.before_end ? -constants.copy_lead.value : constants.wake_of(kind));
  const Nanoseconds rest = call.end() - std::max(ready, caused);
  return rest > kLongestWake ? rest : Nanoseconds(0);
}

}  // namespace rehearse::replay
