// Shared by replay and whatif: reads, lowers, runs and compares a recording.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/run_answer.h"
#include "cli/commands/share_policy.h"
#include "cli/output/attribution.h"
#include "profiler/replay/advice.h"
#include "profiler/replay/attribution.h"
#include "profiler/replay/compare.h"
#include "profiler/replay/lower.h"
#include "sim/graph/timeline.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

struct ReplayRequest {
  std::vector<std::filesystem::path> inputs;
  std::vector<std::uint32_t> ranks;  ///< empty: all
  replay::LowerOptions lower = {};
  RunFiles files = {};
  ShareRequest sharing = {};
};

/// Adds INPUT and --ranks.
void add_input_options(CLI::App& command, ReplayRequest& request);
/// Adds the same with --residuals and --perfetto.
void add_replay_options(CLI::App& command, ReplayRequest& request);

struct ReplayRun {
  replay::ReplayGraph graph;
  graph::Timeline timeline;
  replay::Comparison comparison;
};

/// The input as read. The recordings point into the trace, which therefore never moves.
struct InputTrace {
  std::unique_ptr<trace::Trace> trace;
  std::vector<replay::Recording> recordings;
};

/// The input with its replay as recorded.
struct ReplayJob : InputTrace {
  ReplayRun recorded;
};

/// Reads the requested ranks. Warns of problems of the recording. With `timings_suffice`, a store
/// may hold bench-gpu measurements without any rank.
Result<InputTrace> load_trace(const ReplayRequest& request, const Globals& globals,
                              bool timings_suffice = false);

/// Reads, lowers and runs.
Result<ReplayJob> load_job(const ReplayRequest& request, const Globals& globals);

/// REQUIRES: the arguments outlive the view.
RunView view_of(const ReplayJob& job, const ReplayRun& run);

/// Writes the requested files about `run`, then the document.
Result<Exit> answer_replay(const Globals& globals, const ReplayRequest& request,
                           const ReplayJob& job, const ReplayRun& run, const Document& document);

/// An end of the interval of what an edit assumes.
enum class Bound : std::uint8_t { kLow, kValue, kHigh };

/// Lowers and runs a program of the job's recordings, as recorded or edited. Collectives that an edit
/// added on a stream of their own slow the kernels of other streams (models/comm/interference.h).
Result<ReplayRun> run_program(const ReplayJob& job, replay::RecordedProgram program,
                              Bound bound = Bound::kValue);

/// Adds the columns of a step that the tables of steps share.
using StepColumns = std::function<void(std::size_t step, Value& row)>;

/// The key "ranks" of the JSON contract: a row per step and rank, measured and simulated.
Value rank_rows(const ReplayJob& job, const ReplayRun& run, const StepColumns& add = {});
/// Where the time of an average whole step of `run` goes. Edited parts count as extrapolated, parts
/// that the replay fitted as interpolated, and the rest as recorded.
Attribution attribution_of(const ReplayJob& job, const ReplayRun& run,
                           const Estimate<Seconds>& step);
/// For the first line: the share of unexplained delays, if edits are not to be trusted with it.
std::string distrust_words(const ReplayJob& job);
/// Adds how well the replay explains the recording, and the ops that are late without a reason.
void add_errors(const ReplayJob& job, Document& document);
/// "2 ranks, 3 whole steps".
std::string ranks_and_steps(const ReplayJob& job);

/// "2 ranks, 6 steps (step marks), …": the input in one line.
std::string describe_input(const ReplayJob& job);
/// The most steps that a screen shows.
inline constexpr std::size_t kStepsShown = 8;

}  // namespace rehearse::cli
