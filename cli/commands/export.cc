// rehearse export: a recorded, edited or planned step as files of other tools.
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/commands/options.h"
#include "cli/commands/whatif.h"
#include "cli/config/job_file.h"
#include "cli/output/document.h"
#include "profiler/ingest/chakra_writer.h"
#include "profiler/ingest/detect.h"
#include "sim/base/text.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

struct ExportOptions {
  WhatifOptions recorded;
  std::filesystem::path chakra;  ///< prefix of the files
};

/// `whole` is the time of all ops, of several steps if they were recorded; `back` the options with
/// which `simulate --chakra` gives it again.
Result<Exit> write(const ExportOptions& options, const program::Program& program,
                   const Estimate<Seconds>& step, Seconds whole, const std::string& back,
                   const Globals& globals) {
  const ingest::ChakraWritten written = TRY(ingest::write_chakra(program, options.chakra));
  const std::string prefix = options.chakra.string();
  Document d{.command = "export"};
  d.answer = sentence_of(fmt::format("{}: {} of {}", prefix, counted(written.ops, "op"),
                                     counted(program.ranks(), "rank")),
                         {range_words(step, " per step")});
  d["files"] = {{"prefix", prefix}, {"ranks", program.ranks()}, {"ops", written.ops}};
  d.show("step_time", "step time", step);
  d.show("duration", "all ops", part_of(step, whole));
  if (!program.groups.empty())
    d.show("groups", "process groups", ingest::chakra_groups(options.chakra).string());
  d.show("simulate", "simulate it", fmt::format("rehearse simulate --chakra {}{}", prefix, back));
  if (written.unsized > 0)
    d.add_warnings(
        {{fmt::format("{} of unknown kind or size, written as barriers with their duration",
                      counted(written.unsized, "collective")),
          "record process groups and sizes of collectives"}});
  return answer_with(globals, d);
}

Result<Exit> export_recording(const ExportOptions& options, const Globals& globals) {
  const EditedJob run = TRY(run_edits(options.recorded, globals));
  const ReplayRun& edited = run.edited.run;
  return write(options, edited.graph.program, run.step, edited.timeline.makespan().seconds(), "",
               globals);
}

Result<Exit> export_job(const ExportOptions& options, const Globals& globals) {
  const std::filesystem::path& path = options.recorded.request.inputs.front();
  const JobFile file = TRY(load_job(path));
  if (file.input)
    return wrong_in(
        path,
        fail("Chakra traces have no form for an input pipeline", "a job without `input`").value());
  const step::Step step = TRY(in_file(
      path, step::predict(file.spec, file.cluster,
                          {.fidelity = step::Fidelity::kClosed, .counterfactuals = false})));
  std::string back = " --cluster FILE";
  if (const double penalty = file.spec.conditions.overlap_penalty; penalty > 0)
    back += fmt::format(" --interference {:g}", 1 + penalty);
  return write(options, step.job, step.time, step.time.value, back, globals);
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand(
      "export", "Write a recorded, edited or planned step as Chakra execution traces");
  add_input_options(*command, options->recorded.request);
  command->get_option("INPUT")->description("recordings of one job, or a job file");
  add_value(*command, "--chakra", "PREFIX", options->chakra,
            "write PREFIX.<rank>.et of each rank, and PREFIX.groups.json")
      ->required();
  add_edits(*command, options->recorded);
  command->footer(
      "Example: rehearse export trace.json.gz --scale 'kernel=*gemm*:0.5' --chakra out");
  command->callback([options, &action] {
    check_edits(options->recorded);
    action = [options](const Globals& globals) {
      const auto& inputs = options->recorded.request.inputs;
      if (inputs.size() != 1 || ingest::detect_input(inputs.front()) ||
          !is_job_file(inputs.front()))
        return export_recording(*options, globals);
      if (has_edits(options->recorded) || !options->recorded.request.ranks.empty())
        return Result<Exit>(fail("edits and --ranks apply to recordings, not to job files",
                                 "a change of the job file"));
      return export_job(*options, globals);
    };
  });
}

}  // namespace rehearse::cli
