#include "profiler/replay/recording.h"

#include <algorithm>
#include <map>

namespace rehearse::replay {

using trace::GpuOp, trace::HostKind, trace::HostOp;

CallKind call_kind(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("DeviceSynchronize") || has("CtxSynchronize")) return CallKind::kSyncDevice;
  if (has("StreamSynchronize")) return CallKind::kSyncStream;
  if (has("EventSynchronize")) return CallKind::kSyncEvent;
  if (has("StreamWaitEvent")) return CallKind::kStreamWaitEvent;
  if (has("EventRecord")) return CallKind::kEventRecord;
  // Watchdogs and progress threads of communication libraries make no other calls.
  if (has("Query") || has("Get") || has("IsCapturing") || has("ThreadExchangeStreamCaptureMode"))
    return CallKind::kPoll;
  // hipMemcpyWithStream copies and waits; so do the calls without "Async".
  if (has("MemcpyWithStream")) return CallKind::kBlockingCopy;
  if (has("Memcpy")) return has("Async") ? CallKind::kCopy : CallKind::kBlockingCopy;
  return CallKind::kOther;
}

namespace {

bool is_call(const HostOp& op) {
  return op.kind == HostKind::kRuntime || op.kind == HostKind::kDriver;
}

/// In this order the ops of a thread nest: by start, outer before inner.
bool nests_before(const HostOp& a, const HostOp& b) {
  return a.start != b.start ? a.start < b.start : a.duration > b.duration;
}

}  // namespace

CallKind call_kind(const Recording& recording, HostIndex op) {
  const HostOp& host = recording.host(op);
  if (is_call(host)) return call_kind(recording.name(host));
  return host.kind == HostKind::kOverhead && recording.name(host) == "Command Buffer Full"
             ? CallKind::kQueueFull
             : CallKind::kOther;
}

Recording::Recording(const trace::Trace& trace, std::size_t rank)
    : trace_(&trace), rank_(&trace.ranks[rank]), rank_index_(rank) {
  bool any = false;
  const auto cover = [&](Nanoseconds start, Nanoseconds end) {
    first_ = any ? std::min(first_, start) : start;
    last_ = any ? std::max(last_, end) : end;
    any = true;
  };
  for (const HostOp& op : rank_->host_ops) cover(op.start, op.end());
  for (const GpuOp& op : rank_->gpu_ops) cover(op.start, op.end());
  index_threads();
  index_streams();
  index_launches();
}

/// Thread 0 is where PyTorch puts what ran on threads that it does not know.
bool Recording::made_up(std::size_t thread) const {
  return name(rank_->threads[thread].thread) == "0";
}

/// The profiler's own work comes without its thread. It happens within calls: where only one thread
/// was in a call all the while, it was that one's.
void Recording::place_overhead(std::vector<std::vector<HostIndex>>& by_thread) const {
  std::vector<HostIndex> homeless;
  for (std::size_t t = 0; t < by_thread.size(); ++t)
    if (made_up(t))
      for (const HostIndex i : by_thread[t])
        if (host(i).kind == HostKind::kOverhead) homeless.push_back(i);
  if (homeless.empty()) return;
  std::vector<std::vector<HostIndex>> calls(by_thread.size());  // outermost only
  for (std::size_t t = 0; t < by_thread.size(); ++t) {
    if (made_up(t)) continue;
    for (const HostIndex i : by_thread[t])
      if (is_call(host(i))) calls[t].push_back(i);
    std::ranges::stable_sort(
        calls[t], [&](HostIndex a, HostIndex b) { return nests_before(host(a), host(b)); });
    Nanoseconds open_until(INT64_MIN);
    std::erase_if(calls[t], [&](HostIndex i) {
      if (host(i).end() <= open_until) return true;
      open_until = host(i).end();
      return false;
    });
  }
  for (const HostIndex i : homeless) {
    std::vector<std::size_t> homes;
    for (std::size_t t = 0; t < calls.size(); ++t) {
      const auto next =
          std::upper_bound(calls[t].begin(), calls[t].end(), host(i).start,
                           [&](Nanoseconds time, HostIndex c) { return time < host(c).start; });
      if (next != calls[t].begin() && host(*std::prev(next)).end() >= host(i).end())
        homes.push_back(t);
    }
    if (homes.size() == 1) by_thread[homes.front()].push_back(i);
  }
}

void Recording::index_threads() {
  std::vector<std::vector<HostIndex>> by_thread(rank_->threads.size());
  std::vector<char> works(rank_->threads.size(), 0);
  for (std::size_t i = 0; i < rank_->host_ops.size(); ++i) {
    const HostOp& op = rank_->host_ops[i];
    by_thread[op.thread.index()].push_back(static_cast<HostIndex>(i));
    if (!is_call(op) || call_kind(name(op)) != CallKind::kPoll) works[op.thread.index()] = 1;
  }
  parent_.assign(rank_->host_ops.size(), std::nullopt);
  place_overhead(by_thread);
  for (std::size_t t = 0; t < by_thread.size(); ++t) {
    if (!works[t] || made_up(t) || by_thread[t].empty()) continue;
    std::vector<HostIndex>& ops = by_thread[t];
    std::ranges::stable_sort(
        ops, [&](HostIndex a, HostIndex b) { return nests_before(host(a), host(b)); });
    Nanoseconds last = host(ops.front()).end();
    std::vector<HostIndex> open;
    for (const HostIndex i : ops) {
      while (!open.empty() && host(open.back()).end() <= host(i).start) open.pop_back();
      if (!open.empty()) parent_[i] = open.back();
      open.push_back(i);
      last = std::max(last, host(i).end());
    }
    const Nanoseconds first = host(ops.front()).start;
    threads_.push_back({trace::ThreadId(t), std::move(ops), first, last});
  }
  std::ranges::stable_sort(threads_, {}, &HostThread::first);
}

void Recording::index_streams() {
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::vector<GpuIndex>> by_stream;
  for (std::size_t i = 0; i < rank_->gpu_ops.size(); ++i) {
    const GpuOp& op = rank_->gpu_ops[i];
    by_stream[{op.device, op.stream}].push_back(static_cast<GpuIndex>(i));
  }
  stream_of_.assign(rank_->gpu_ops.size(), 0);
  for (auto& [key, ops] : by_stream) {
    std::ranges::stable_sort(ops, [&](GpuIndex a, GpuIndex b) {
      const GpuOp &x = gpu(a), &y = gpu(b);
      return x.start != y.start ? x.start < y.start : x.end() < y.end();
    });
    for (const GpuIndex i : ops) stream_of_[i] = streams_.size();
    streams_.push_back({key.first, key.second, std::move(ops)});
  }
}

void Recording::index_launches() {
  // The calls of each id, outermost only: a runtime call and the driver call inside it may share
  // one, and one that wrapped around comes again.
  std::unordered_map<std::uint32_t, HostIndex> call_of;
  std::unordered_map<std::uint32_t, std::vector<HostIndex>> again;
  for (const HostThread& thread : threads_)
    for (const HostIndex i : thread.ops) {
      const HostOp& op = host(i);
      if (!is_call(op) || !op.correlation) continue;
      const auto [at, is_new] = call_of.try_emplace(*op.correlation, i);
      if (is_new) continue;
      if (host(at->second).end() <= op.start || op.end() <= host(at->second).start)
        again[*op.correlation].push_back(i);
      else if (op.start < host(at->second).start)
        at->second = i;
    }
  launcher_.assign(rank_->gpu_ops.size(), std::nullopt);
  for (const Stream& stream : streams_)
    for (const GpuIndex i : stream.ops) {
      if (!gpu(i).correlation) continue;
      const auto found = call_of.find(*gpu(i).correlation);
      if (found == call_of.end()) continue;
      HostIndex call = found->second;
      if (const auto others = again.find(*gpu(i).correlation); others != again.end())
        for (const HostIndex other : others->second) {  // the latest that began before
          const Nanoseconds at = host(other).start, best = host(call).start;
          if (at <= gpu(i).start && (at > best || best > gpu(i).start)) call = other;
        }
      launcher_[i] = call;
      launched_[call].push_back(i);
    }
  for (auto& [call, ops] : launched_)
    std::ranges::stable_sort(ops,
                             [&](GpuIndex a, GpuIndex b) { return gpu(a).start < gpu(b).start; });
}

std::span<const GpuIndex> Recording::launched(HostIndex call) const {
  const auto found = launched_.find(call);
  if (found == launched_.end()) return {};
  return found->second;
}

}  // namespace rehearse::replay
