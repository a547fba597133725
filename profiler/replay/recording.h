// Recording: one rank of a trace, indexed for a replay.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/trace/trace.h"

namespace rehearse::replay {

using HostIndex = std::uint32_t;  ///< index into Rank::host_ops
using GpuIndex = std::uint32_t;   ///< index into Rank::gpu_ops

/// A host thread with its ops in the order in which they nest: by start, outer before inner.
struct HostThread {
  trace::ThreadId id;
  std::vector<HostIndex> ops;
  Nanoseconds first;  ///< start of its first op
  Nanoseconds last;   ///< end of its last
};

/// A stream of one device with its ops in order of start.
struct Stream {
  std::uint16_t device;
  std::uint32_t number;
  std::vector<GpuIndex> ops;
};

class Recording {
 public:
  /// REQUIRES: trace outlives it and its ranks share one clock (trace::align).
  Recording(const trace::Trace& trace, std::size_t rank);

  const trace::Rank& rank() const { return *rank_; }
  std::size_t rank_index() const { return rank_index_; }
  std::string_view name(NameId id) const { return trace_->names[id]; }
  std::string_view name(const trace::HostOp& op) const { return trace_->names[op.name]; }
  std::string_view name(const trace::GpuOp& op) const { return trace_->names[op.name]; }
  const trace::HostOp& host(HostIndex i) const { return rank_->host_ops[i]; }
  const trace::GpuOp& gpu(GpuIndex i) const { return rank_->gpu_ops[i]; }

  /// Threads that do something that a replay needs, in order of their first op. Excludes threads
  /// that only poll (NCCL's watchdog) and those that the profiler made up.
  const std::vector<HostThread>& threads() const { return threads_; }
  const std::vector<Stream>& streams() const { return streams_; }

  /// The call that launched a device op; the outermost if calls nest.
  std::optional<HostIndex> launcher(GpuIndex op) const { return launcher_[op]; }
  /// The device ops that a call launched, in order of start.
  std::span<const GpuIndex> launched(HostIndex call) const;
  /// The index in streams() of a device op's stream.
  std::size_t stream_of(GpuIndex op) const { return stream_of_[op]; }

  /// The enclosing op of a host op on its thread.
  std::optional<HostIndex> parent(HostIndex op) const { return parent_[op]; }

  Nanoseconds first() const { return first_; }  ///< earliest time in the recording
  Nanoseconds last() const { return last_; }    ///< latest

 private:
  bool made_up(std::size_t thread) const;
  void place_overhead(std::vector<std::vector<HostIndex>>& by_thread) const;
  void index_threads();
  void index_streams();
  void index_launches();

  const trace::Trace* trace_;
  const trace::Rank* rank_;
  std::size_t rank_index_;
  std::vector<HostThread> threads_;
  std::vector<Stream> streams_;
  std::vector<std::optional<HostIndex>> launcher_;
  std::vector<std::size_t> stream_of_;
  std::vector<std::optional<HostIndex>> parent_;
  std::unordered_map<HostIndex, std::vector<GpuIndex>> launched_;
  Nanoseconds first_{0};
  Nanoseconds last_{0};
};

/// If the first recorded op of a stream starts this long after its launch, the stream was busy with
/// work that was launched before the recording and left no record.
inline constexpr Nanoseconds kUnseenBacklog{500000};

/// The effect of a runtime or driver call on its thread.
enum class CallKind {
  kOther,
  kSyncDevice,       ///< waits for all work of the device
  kSyncStream,       ///< waits for all work of a stream
  kSyncEvent,        ///< waits for an event
  kCopy,             ///< may wait for its own copy
  kBlockingCopy,     ///< waits for its own copy, whatever the memory
  kStreamWaitEvent,  ///< makes a stream wait; does not wait itself
  kEventRecord,
  kPoll,       ///< asks whether work has ended, or for another state; never waits
  kQueueFull,  ///< within a launching call: waits until the device has taken earlier work
};

/// Looks up names of the CUDA and HIP runtimes and drivers.
CallKind call_kind(std::string_view name);

/// The same for any host op: kOther if it is not a call. CUPTI records a full queue as overhead.
CallKind call_kind(const Recording& recording, HostIndex op);

}  // namespace rehearse::replay
