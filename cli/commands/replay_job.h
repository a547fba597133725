// What replay and whatif share: a recording read, lowered, run and compared.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/globals.h"
#include "cli/output/critical_path.h"
#include "cli/output/json.h"
#include "cli/output/table.h"
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
  replay::LowerOptions lower;
  std::filesystem::path perfetto;  ///< empty: none
  std::filesystem::path report;    ///< empty: none
};

/// INPUT and --ranks.
void add_input_options(CLI::App& command, ReplayRequest& request);
/// The same with --residuals and --perfetto.
void add_replay_options(CLI::App& command, ReplayRequest& request);

/// A graph and its run.
struct ReplayRun {
  replay::ReplayGraph graph;
  graph::Timeline timeline;
  replay::Comparison comparison;
};

/// What was read. The recordings point into the trace, which therefore never moves.
struct InputTrace {
  std::unique_ptr<trace::Trace> trace;
  std::vector<replay::Recording> recordings;
};

/// With its replay as recorded.
struct ReplayJob : InputTrace {
  ReplayRun recorded;
};

/// Reads the ranks asked for. Warns of problems of the recording. With `timings_suffice`, a store
/// may hold what bench-gpu measured and no rank.
Result<InputTrace> load_trace(const ReplayRequest& request, const Globals& globals,
                              bool timings_suffice = false);

/// Reads, lowers and runs.
Result<ReplayJob> load_job(const ReplayRequest& request, const Globals& globals);

/// Writes the timeline that the request asks for, if any: recorded, and as `run` has it.
Status draw(const ReplayRequest& request, const ReplayJob& job, const ReplayRun& run);

/// Writes the page that the request asks for, if any: `document` is what the command prints as
/// JSON, `run` what it simulated.
Status report_on(const ReplayRequest& request, const ReplayJob& job, const ReplayRun& run,
                 const Json& document);

/// Runs an edited graph of the job.
Result<ReplayRun> run_graph(const ReplayJob& job, replay::ReplayGraph graph);

/// "ranks" of the JSON contract.
Json json_ranks(const ReplayJob& job, const ReplayRun& run);
/// Of a recording as it was measured.
Json json_breakdown(const program::Occupancy& breakdown);
/// Of a simulated step. The parts share its interval, in proportion.
Json json_breakdown(const program::Occupancy& breakdown, const Estimate<Seconds>& step);

/// "2 ranks, 6 steps (step marks), …": what was read, in one line.
std::string describe_input(const ReplayJob& job);
/// The breakdown as a block of lines with bars.
std::string breakdown_text(const program::Occupancy& breakdown);
/// The critical path of the whole steps of a run, of an average step.
program::PathTimes path_times(const ReplayRun& run);
/// The parts of a path, the longest first, each with its longest op.
std::string path_parts_text(const program::PathParts& path);
std::string advice_text(const std::vector<replay::Advice>& advice);
/// The number of a rank, as recorded.
std::string rank_name(const InputTrace& input, std::size_t index);

/// The most steps that a screen shows.
inline constexpr std::size_t kStepsShown = 8;

/// One line per step and rank.
Table step_table(const ReplayJob& job, const ReplayRun& run);

}  // namespace rehearse::cli
