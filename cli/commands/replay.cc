// rehearse replay: simulate a recording as it was and say how well that explains it.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/replay_job.h"
#include "cli/output/table.h"
#include "profiler/replay/interval.h"
#include "sim/base/text.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

struct Options {
  ReplayRequest request;
};

Json to_json(const ReplayJob& job, const std::vector<replay::Advice>& advice) {
  const replay::Comparison& c = job.recorded.comparison;
  Json json = json_root("replay");
  json["ranks"] = json_ranks(job, job.recorded);
  json["step_time"] = {{"measured", json_measured(c.step_time.measured)},
                       {"simulated", json_predicted(replay::estimate_step(c))}};
  json["error"] = {{"median", c.median_error}, {"worst", c.worst_error}};
  json["kernel_start_error"] = c.start_error;
  json["residual_share"] = c.residual_share;
  json["matched_collectives"] = job.recorded.graph.collectives.matched.size();
  json["unmatched_collectives"] = job.recorded.graph.collectives.unmatched;
  json["breakdown"] = json_breakdown(replay::break_down(job.recorded.graph, job.recorded.timeline));
  json["critical_path"] = json_critical_path(
      replay::find_critical_path(job.recorded.graph, job.recorded.timeline, 200));
  json["advice"] = json_advice(advice);
  json["problems"] = json_problems(job.trace->problems);
  return json;
}

bool has_device_work(const ReplayJob& job) {
  return std::any_of(job.recordings.begin(), job.recordings.end(),
                     [](const replay::Recording& r) { return !r.streams().empty(); });
}

std::string to_text(const ReplayJob& job, const std::vector<replay::Advice>& advice) {
  const replay::Comparison& c = job.recorded.comparison;
  const Estimate<Seconds> step = replay::estimate_step(c);
  std::string text = describe_input(job) + "\n\n";
  text += fmt::format("step time   measured {}   simulated {} ({} – {})   error {}\n",
                      to_string(c.step_time.measured, 4), to_string(step.value, 4),
                      to_string(step.low, 4), to_string(step.high, 4),
                      signed_percent(c.step_time.error()));
  text +=
      fmt::format("            over whole steps, both periods: median error {:.2f} %, worst {}\n",
                  c.median_error * 100, signed_percent(c.worst_error));
  if (has_device_work(job))
    text += fmt::format(
        "            device ops start {:.2f} % of a step off (median); {:.2f} % of the time "
        "unexplained\n",
        c.start_error * 100, c.residual_share * 100);
  text += "\nWhere an average step goes\n" +
          breakdown_text(replay::break_down(job.recorded.graph, job.recorded.timeline));
  text += "\nWhat decides its length (critical path, with the largest of each kind)\n" +
          critical_path_text(
              replay::find_critical_path(job.recorded.graph, job.recorded.timeline, 200));
  text += "\nWhat would help most (each change alone, simulated)\n" + advice_text(advice);
  text += "\n" + step_table(job, job.recorded).text(60, kStepsShown);
  return text;
}

Result<Exit> run(const Options& options, const Globals& globals) {
  const Result<ReplayJob> job = load_job(options.request, globals);
  if (!job) return forward(job);
  if (Status ok = draw(options.request, *job, job->recorded); !ok) return forward(ok);
  std::vector<replay::Advice> advice;
  if (globals.format != Format::kCsv)
    advice = replay::find_advice(
        job->recordings, job->recorded.graph, job->recorded.timeline,
        [](const graph::Graph& graph) { return engine::run(graph); }, 3, globals.thread_count());
  std::string text;
  switch (globals.format) {
    case Format::kTable:
      text = to_text(*job, advice);
      break;
    case Format::kJson:
      text = json_text(to_json(*job, advice));
      break;
    case Format::kCsv:
      text = step_table(*job, job->recorded).csv();
      break;
    case Format::kMarkdown:
      text = step_table(*job, job->recorded).markdown();
      break;
  }
  if (Status ok = write_result(globals, text); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "replay", "Simulate a recording as it was; measured beside simulated, and what would help");
  command
      ->add_option("INPUT", options->request.inputs,
                   "recordings of one job: files, or a folder of them")
      ->type_name("FILE")
      ->required();
  command->add_option("--ranks", options->request.ranks, "replay these ranks only (default: all)")
      ->delimiter(',')
      ->type_name("N,...")
      ->allow_extra_args(false);
  command->add_flag("--residuals", options->request.lower.residuals,
                    "keep the delays that no rule explains");
  command
      ->add_option("--perfetto", options->request.perfetto,
                   "write recorded and simulated timelines for ui.perfetto.dev")
      ->type_name("FILE");
  command->footer("Example: rehearse replay trace.json.gz --perfetto timeline.json");
  command->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
