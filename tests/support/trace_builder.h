// Small traces in a few lines, for tests. Times are microseconds.
#pragma once

#include <string>

#include "profiler/trace/trace.h"

namespace rehearse::test {

/// One rank of a trace under construction.
class RankBuilder {
 public:
  explicit RankBuilder(trace::Trace& trace) : trace_(trace), index_(trace.ranks.size()) {
    trace.ranks.emplace_back();
    rank().info.source = "test";
    rank().info.format = "test";
    rank().info.rank = static_cast<std::uint32_t>(index_);
  }

  trace::Rank& rank() { return trace_.ranks[index_]; }

  trace::HostOp& host(const std::string& name, double start, double duration,
                      trace::HostKind kind = trace::HostKind::kOperator, int thread = 1) {
    rank().host_ops.push_back({.name = trace_.names.intern(name),
                               .thread = thread_id(thread),
                               .kind = kind,
                               .start = ns(start),
                               .duration = ns(duration)});
    return rank().host_ops.back();
  }
  trace::HostOp& step(int number, double start, double duration, int thread = 1) {
    return host("ProfilerStep#" + std::to_string(number), start, duration,
                trace::HostKind::kAnnotation, thread);
  }
  /// A runtime call; the device op it launches carries the same correlation.
  trace::HostOp& call(const std::string& name, double start, double duration,
                      std::uint32_t correlation, int thread = 1) {
    trace::HostOp& op = host(name, start, duration, trace::HostKind::kRuntime, thread);
    op.correlation = correlation;
    return op;
  }
  trace::GpuOp& kernel(const std::string& name, double start, double duration,
                       std::optional<std::uint32_t> correlation, std::uint32_t stream = 7) {
    rank().gpu_ops.push_back({.name = trace_.names.intern(name),
                              .kind = trace::GpuKind::kKernel,
                              .stream = stream,
                              .start = ns(start),
                              .duration = ns(duration),
                              .correlation = correlation});
    return rank().gpu_ops.back();
  }
  trace::GpuOp& copy(trace::CopyDirection direction, trace::HostMemory memory, double start,
                     double duration, std::uint64_t bytes, std::uint32_t correlation,
                     std::uint32_t stream = 7) {
    trace::GpuOp& op = kernel("Memcpy", start, duration, correlation, stream);
    op.kind = trace::GpuKind::kCopy;
    op.direction = direction;
    op.host_memory = memory;
    op.bytes = bytes;
    return op;
  }

  static Nanoseconds ns(double us) { return Nanoseconds(std::llround(us * 1000)); }

 private:
  trace::ThreadId thread_id(int number) {
    const trace::Thread thread{trace_.names.intern("1"),
                               trace_.names.intern(std::to_string(number))};
    auto& threads = rank().threads;
    for (std::size_t t = 0; t < threads.size(); ++t)
      if (threads[t] == thread) return trace::ThreadId(t);
    threads.push_back(thread);
    return trace::ThreadId(threads.size() - 1);
  }

  trace::Trace& trace_;
  std::size_t index_;
};

}  // namespace rehearse::test
