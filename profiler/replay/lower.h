// lower: from a recording to a graph that can be run.
//
// The graph holds durations, gaps between events of one thread, and the fitted constants; no op
// takes its start from the recording. Starts are results, and their comparison with the recorded
// ones shows how well the graph explains the recording. docs/concepts/replay.md states the rules.
#pragma once

#include <vector>

#include "profiler/replay/collectives.h"
#include "profiler/replay/constants.h"
#include "profiler/replay/hand_offs.h"
#include "profiler/replay/recording.h"
#include "profiler/replay/steps.h"
#include "profiler/replay/stream_waits.h"
#include "sim/base/result.h"
#include "sim/graph/graph.h"

namespace rehearse::replay {

/// The dependency rules. All on by default but residuals; switching one off shows its effect.
struct LowerOptions {
  bool stream_order = true;         ///< ops of one stream run one after the other
  bool host_waits = true;           ///< synchronising and copying calls wait for the device
  bool hand_offs = true;            ///< a thread waits for the thread that works for it
  bool backward_links = true;       ///< backward operators wait for their forward ones
  bool stream_waits_calls = true;   ///< rule A of stream_waits.h
  bool stream_waits_timing = true;  ///< rule B
  bool collectives = true;          ///< collectives of several ranks wait for the last to arrive
  bool residuals = false;           ///< delays that no rule explains are kept as ops
  /// The times of this rank's collectives are not used: they are predicted from the other ranks'.
  std::optional<std::size_t> hidden_rank = {};
};

/// The part of the recording that an op of the graph represents.
struct Origin {
  enum class Kind : std::uint8_t {
    kHost,         ///< a thread at work: row is the innermost host op, if any was open
    kCall,         ///< the own cost of a call that may wait: row is the call
    kReturn,       ///< the return of such a call
    kUnexplained,  ///< what such a call waited for something that the recording does not show
    kLaunch,       ///< from a launching call to the stream: row is the device op
    kDevice,       ///< a device op, or the part of one that moves or computes
    kArrival,      ///< a rank ready for a collective: row is the device op
    kHandOff,      ///< between threads
    kWake,         ///< from the end of device work to the return of the call: row is the call
    kInitial,      ///< state before the recording began
    kResidual,     ///< unexplained delay before a device op
    kAdded,        ///< communication that an edit added
    kFeed,         ///< an input pipeline that an edit put in front, and the waiting for it
  };
  Kind kind;
  std::uint32_t rank;                ///< index into Trace::ranks
  std::optional<std::uint32_t> row;  ///< of Rank::host_ops or Rank::gpu_ops, as the kind says
};

/// A step as instants of a run: it lasts from the end of `begins_after` to the end of `ends_with`.
struct StepOps {
  Step step;
  std::optional<OpId> begins_after;  ///< nothing: time zero
  OpId ends_with;
  /// The last device op of each stream launched in the step; empty for a step without device work.
  std::vector<OpId> last_device_ops = {};
  std::optional<Nanoseconds> measured_device_end = {};
};

struct RankGraph {
  Constants constants;
  StepSource step_source = StepSource::kSpan;
  std::vector<StepOps> steps;
  std::vector<OpId> device_first;  ///< by GpuIndex: the op whose start is that of the device op
  std::vector<OpId> device_last;   ///< by GpuIndex: the op whose end is
  /// By HostIndex: the op whose end is that of the host op; nothing where no thread was replayed.
  std::vector<std::optional<OpId>> host_last;
  std::vector<CommunicationOp> communication;
  Nanoseconds residual{0};           ///< sum of the delays that no rule explains
  Nanoseconds span{0};               ///< duration of the recording
  Nanoseconds unseen_backlog{0};     ///< longest wait of a stream for work that left no record
  Nanoseconds unexplained_waits{0};  ///< sum of what blocking calls waited for no recorded cause
  std::size_t host_waits = 0, hand_offs = 0, backward_links = 0;
  std::size_t stream_waits[3] = {0, 0, 0};  ///< by Evidence
};

/// A rank asks for a batch with the end of `ask`, and has it with the end of `wait`.
struct BatchRequest {
  std::uint32_t rank;
  std::size_t thread;  ///< index into Recording::threads()
  OpId ask;
  OpId wait;
};

struct ReplayGraph {
  graph::Graph graph;
  /// By server: its thread in Recording::threads(); nothing for a stream. Servers that
  /// edits add follow these.
  std::vector<std::optional<std::size_t>> thread_of_server;
  std::vector<Origin> origins;  ///< by op id
  std::vector<RankGraph> ranks;
  CollectiveMatches collectives;  ///< of several ranks together
  std::vector<BatchRequest> batch_requests =
      {};  ///< of an input pipeline that an edit put in front
  /// The recording begins with the end of this op, after the warm-up that an edit added.
  /// Absent: at time zero.
  std::optional<OpId> begin = {};
};

/// REQUIRES: trace::align was called on the trace; `recordings` are of its ranks.
/// Fails on a recording without times or without any op.
Result<ReplayGraph> lower(const std::vector<Recording>& recordings, const LowerOptions& options);

}  // namespace rehearse::replay
