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

Status write_run(const RunFiles& files, const Document& document, const RunView& view,
                 const std::function<ReportDetails()>& details) {
  TRY(write_timeline(files.perfetto, view.show));
  if (files.report.empty()) return {};
  return write_report(files.report, document, with_timeline(details(), view));
}

Result<Exit> answer_run(const Globals& globals, const RunFiles& files, const Document& document,
                        const RunView& view, const std::function<ReportDetails()>& details) {
  TRY(write_run(files, document, view, details));
  return answer_with(globals, document);
}

}  // namespace rehearse::cli
