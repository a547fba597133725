// rehearse import: read recordings of one job into a store.
#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/output/json.h"
#include "cli/output/table.h"
#include "profiler/ingest/input.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct Options {
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

Result<Exit> run(const Options& options, const Globals& globals) {
  const Result<ingest::ImportSummary> summary = ingest::import_inputs(
      options.inputs, globals.output,
      {.strict = globals.strict, .progress = globals.progress_of("importing")});
  if (!summary) return forward(summary);
  Globals to_stdout = globals;  // -o names the store
  to_stdout.output.clear();
  std::string text;
  if (globals.format == Format::kJson) {
    Json json = json_root("import");
    json["store"] = globals.output.string();
    json["ranks"] = summary->ranks;
    json["devices"] = summary->devices;
    json["ops"] = {{"host", summary->host_ops}, {"gpu", summary->gpu_ops}};
    json["steps"] = summary->steps;
    json["problems"] = json_problems(summary->problems);
    text = json_text(json);
  } else if (globals.format == Format::kCsv) {
    text = problem_table(summary->problems).csv();
  } else if (globals.format == Format::kMarkdown) {
    text = problem_table(summary->problems).markdown();
  } else {
    text = fmt::format("{}: {} rank{}, {} host ops, {} device ops, {} step marks\n",
                       globals.output.string(), summary->ranks, summary->ranks == 1 ? "" : "s",
                       grouped(summary->host_ops), grouped(summary->gpu_ops), summary->steps);
    if (const Table problems = problem_table(summary->problems); !problems.empty())
      text += "\n" + problems.text(48);
  }
  if (Status ok = write_result(to_stdout, text); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
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
