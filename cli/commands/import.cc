// rehearse import: read recordings of one job into a store.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/output/result.h"
#include "profiler/ingest/input.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct ImportOptions {
  std::vector<std::filesystem::path> inputs;
};

Table problem_table(const trace::Problems& problems) {
  Table table({{"severity", Align::kLeft},
               {"problem", Align::kLeft},
               {"count"},
               {"first", Align::kLeft},
               {"meaning", Align::kLeft}});
  for (const trace::Problem& p : problems.list())
    table.add({std::string(to_string(trace::info(p.kind).severity)),
               std::string(trace::info(p.kind).name), grouped(p.count), p.first,
               std::string(trace::info(p.kind).meaning)});
  return table;
}

Json to_json(const std::string& store, const ingest::ImportSummary& summary) {
  Json json = json_root("import");
  json["store"] = store;
  json["ranks"] = summary.ranks;
  json["devices"] = summary.devices;
  json["ops"] = {{"host", summary.host_ops}, {"gpu", summary.gpu_ops}};
  json["steps"] = summary.steps;
  json["problems"] = json_problems(summary.problems);
  return json;
}

std::string to_text(const std::string& store, const ingest::ImportSummary& summary) {
  std::string text =
      fmt::format("{}: {}, {}, {}, {}\n", store, counted(summary.ranks, "rank"),
                  counted(summary.host_ops, "host op"), counted(summary.gpu_ops, "device op"),
                  counted(summary.steps, "step mark"));
  if (const Table problems = problem_table(summary.problems); !problems.empty())
    text += "\n" + problems.text(48);
  return text;
}

Result<Exit> run(const ImportOptions& options, const Globals& globals) {
  const Result<ingest::ImportSummary> summary = ingest::import_inputs(
      options.inputs, globals.output,
      {.strict = globals.strict, .progress = globals.progress_of("importing")});
  if (!summary) return forward(summary);
  Globals to_stdout = globals;  // -o names the store
  to_stdout.output.clear();
  const Formats formats = {.text = [&] { return to_text(globals.output.string(), *summary); },
                           .json = [&] { return to_json(globals.output.string(), *summary); },
                           .table = [&] { return problem_table(summary->problems); }};
  if (Status ok = write_result(to_stdout, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command =
      app.add_subcommand("import", "Read recordings of one job into a store (-o STORE)");
  command
      ->add_option("INPUT", options->inputs, "recordings: Kineto, Nsight Systems, Chakra, captures")
      ->type_name("FILE")
      ->required();
  command->footer("Example: rehearse import rank0.json.gz rank1.json.gz -o job.rehearse");
  command->callback([options, &app, &action] {
    if (app.get_option("--output")->empty())
      throw CLI::RequiredError("-o STORE", CLI::ExitCodes::RequiredError);
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
