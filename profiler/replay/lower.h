// lower: from a recording to a program (sim/program/program.h), and from that to a graph.
//
// The program holds durations, gaps between events of one thread, and the fitted constants; no op
// takes its start from the recording. Starts are results of a run, and their comparison with the
// recorded ones shows how well the program explains the recording. docs/concepts/replay.md states
// the rules. What-if edits take a program and return another.
#pragma once

#include <vector>

#include "profiler/replay/collectives.h"
#include "profiler/replay/constants.h"
#include "profiler/replay/delays.h"
#include "profiler/replay/recording.h"
#include "profiler/replay/steps.h"
#include "sim/base/result.h"
#include "sim/program/lowered.h"
#include "sim/program/program.h"

namespace rehearse::replay {

/// The delays of device ops that no rule explains and that a replay keeps as ops.
enum class Residuals : std::uint8_t {
  kNone,
  kRecurring,  ///< those of an op that is late in most steps, by its median delay (delays.h)
  kAll,        ///< each as recorded
};

/// The dependency rules. All are on by default; switching one off shows its effect.
struct LowerOptions {
  bool stream_order = true;         ///< ops of one stream run one after the other
  bool host_waits = true;           ///< synchronising and copying calls wait for the device
  bool hand_offs = true;            ///< a thread waits for the thread that works for it
  bool backward_links = true;       ///< backward operators wait for their forward ones
  bool stream_waits_calls = true;   ///< rule A of stream_waits.h
  bool stream_waits_timing = true;  ///< rule B
  bool collectives = true;          ///< collectives of several ranks wait for the last to arrive
  Residuals residuals = Residuals::kRecurring;
  /// The times of this rank's collectives are ignored: they are predicted from the other ranks'.
  std::optional<std::size_t> hidden_rank = {};
};

using program::OpIndex;
using program::Recorded;

/// A step as instants of a run: it lasts from the end of `begins_after` to the end of `ends_with`.
struct StepOps {
  Step step;
  std::optional<OpIndex> begins_after;  ///< absent: time zero
  OpIndex ends_with;
  bool of_host = true;  ///< both are instants of the host
  /// The last device op of each stream launched in the step; empty for a step without device work.
  std::vector<OpIndex> last_device_ops = {};
  std::optional<Nanoseconds> measured_device_end = {};
};

/// The data of a rank beyond its program.
struct RankReplay {
  Constants constants;
  StepSource step_source = StepSource::kSpan;
  std::vector<StepOps> steps;
  bool has_device = false;            ///< device ops were recorded, or calls that launch them
  std::vector<OpIndex> device_first;  ///< by GpuIndex: the op whose start is that of the device op
  std::vector<OpIndex> device_last;   ///< by GpuIndex: the op whose end is
  /// By HostIndex: the op whose end is that of the host op; nothing if its thread was not replayed.
  std::vector<std::optional<OpIndex>> host_last;
  std::vector<CommunicationOp> communication;
  Nanoseconds residual{0};           ///< time in which a device op was late for no known reason
  std::vector<DelayedOp> delayed;    ///< these ops
  Nanoseconds span{0};               ///< duration of the recording
  Nanoseconds unseen_backlog{0};     ///< longest wait of a stream for work that left no record
  Nanoseconds unexplained_waits{0};  ///< sum of blocking calls' waits without a recorded cause
  std::size_t host_waits = 0, hand_offs = 0, backward_links = 0;
  std::size_t stream_waits[3] = {0, 0, 0};  ///< by Evidence
};

/// A rank requests a batch at the end of `ask`, and has it at the end of `wait`.
struct BatchRequest {
  std::uint32_t rank;
  std::size_t thread;  ///< index into Recording::threads()
  OpIndex ask;
  OpIndex wait;
};

/// The program of a recording, as recorded or edited. Rank r is the r-th of the recordings, and has
/// its own program, with a record of each op. Its streams are the replayed threads followed by the
/// device's streams; edits add their ops and streams after the recorded ones.
struct RecordedProgram : program::Program {
  std::vector<RankReplay> replays;  ///< by rank
  CollectiveMatches collectives;    ///< of several ranks together
  /// The requests of each rank, in order of time, to an input pipeline that an edit added.
  std::vector<BatchRequest> batch_requests = {};
  /// The recording begins at the end of this op, after the warm-up of the pipeline. Absent: at time
  /// zero.
  std::optional<program::OpRef> begin = {};
};

/// A program with the graph that is run.
struct ReplayGraph {
  RecordedProgram program;
  program::Lowered lowered;

  const graph::Graph& graph() const { return lowered.graph; }
  /// The op of the graph with which an op of the program starts.
  OpId start_of(std::size_t rank, OpIndex op) const {
    return lowered.start_of(lowered.op(rank, op));
  }
};

/// REQUIRES: trace::align was called on the trace; `recordings` are of its ranks.
/// Fails on a recording without times or without any op.
Result<RecordedProgram> lower(const std::vector<Recording>& recordings,
                              const LowerOptions& options);

/// Makes the graph of a program.
Result<ReplayGraph> to_graph(RecordedProgram program);
/// The recordings as they were.
Result<ReplayGraph> to_graph(const std::vector<Recording>& recordings);

}  // namespace rehearse::replay
