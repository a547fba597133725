// The end of a command that ran a step, recorded or predicted: its timeline, its page, its document.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/globals.h"
#include "cli/output/document.h"
#include "cli/output/timeline_sink.h"
#include "cli/report/report.h"
#include "models/job/lower.h"
#include "sim/graph/critical_path.h"
#include "sim/graph/timeline.h"

namespace CLI {
class App;
}

namespace rehearse::cli {

/// Files that the command writes in addition to its document and page; empty: none.
struct RunFiles {
  std::filesystem::path perfetto;
};
/// Adds --perfetto, which writes `timeline`.
void add_run_files(CLI::App& command, RunFiles& files, const std::string& timeline);

/// A run as timelines show it. `timeline` outlives it.
struct RunView {
  std::function<void(TimelineSink&)> show;
  const graph::Timeline& timeline;
  std::vector<graph::PathStep> path;
};
/// REQUIRES: the arguments outlive the view.
RunView view_of(const program::Program& job, const job::LoweredJob& lowered,
                const graph::Timeline& timeline);

ReportDetails with_timeline(ReportDetails details, const RunView& view);

/// Writes the requested files, and the document. `details` gives those of the page but the timeline;
/// it is only called for a page.
Result<Exit> answer_run(const Globals& globals, const RunFiles& files, const Document& document,
                        const RunView& view, const std::function<ReportDetails()>& details);

}  // namespace rehearse::cli
