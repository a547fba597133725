#include "cli/commands/run_answer.h"

#include "cli/output/run_events.h"
#include "cli/report/timeline_sheet.h"
#include "models/job/program_ops.h"

namespace rehearse::cli {

RunView view_of(const program::Program& job, const job::LoweredJob& lowered,
                const graph::Timeline& timeline) {
  return {[&](TimelineSink& sink) { show_job(job, lowered, timeline, sink); }, timeline,
          job::critical_path(job, lowered, timeline)};
}

ReportDetails with_timeline(ReportDetails details, const RunView& view) {
  TimelineSheet sheet;
  view.show(sheet);
  details.timeline = sheet.json(view.timeline, view.path);
  return details;
}

Result<Exit> answer_run(const Globals& globals, const RunFiles& files, const Document& document,
                        const RunView& view, const std::function<ReportDetails()>& details) {
  TRY(write_timeline(files.perfetto, view.show));
  return answer_with(globals, document, Exit::kSuccess,
                     globals.report.empty() ? ReportDetails() : with_timeline(details(), view));
}

}  // namespace rehearse::cli
