#include "cli/commands/simulate_job_file.h"

#include "cli/commands/predicted_job.h"
#include "cli/commands/predicted_tenants.h"
#include "cli/commands/step_report.h"
#include "cli/config/job_input.h"
#include "sim/base/file.h"
#include "sim/engine/simgrid.h"

namespace rehearse::cli {
namespace {

Result<PredictedJob> predict_job(const SimulateOptions& options) {
  Result<JobFile> file = load_job(options.job_file, options.cluster, options.sharing.slice);
  if (!file) return forward(file);
  if (!file->has_plan) file->assumed.push_back("plan: one rank, because the file has none");
  Result<step::Step> step = step::predict(file->spec, file->cluster,
                                          {.fidelity = options.fidelity, .unfold = options.unfold});
  if (!step) return wrong_in(options.job_file, step.error());
  if (file->input) {
    if (Status ok = feed(input::Feed(*file->input), file->cluster, *step); !ok)
      return wrong_in(options.job_file, std::move(ok.error()));
    file->notes.push_back(feed_note(*file->input, file->cluster, *step));
  }
  return predicted_job(std::move(*file), std::move(*step), options.fidelity);
}

}  // namespace

Result<Exit> simulate_job_file(const SimulateOptions& options, const Globals& globals) {
  if (Status ok = check_writable({options.files.perfetto, options.files.report}); !ok)
    return forward(ok);
  if (options.fidelity == step::Fidelity::kSimgrid)
    if (Status ok = engine::check_simgrid(); !ok) return forward(ok);
  if (options.sharing.asked()) return share_predicted(options, globals);
  Result<PredictedJob> job = predict_job(options);
  if (!job) return forward(job);
  for (const Warning& warning : job->step.warnings) globals.warn(to_string(warning));
  if (globals.format != Format::kCsv || !options.files.report.empty())
    if (Status ok = try_changes(*job, globals); !ok) return forward(ok);
  const step::Step& step = job->step;
  return answer_run(globals, options.files, step_document(*job),
                    view_of(step.job, step.lowered, step.timeline),
                    [&] { return step_details(*job, options.job_file); });
}

}  // namespace rehearse::cli
