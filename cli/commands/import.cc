// rehearse import: read recordings of one job into a store.
#include <fmt/core.h>

#include "cli/commands/options.h"
#include "cli/output/document.h"
#include "profiler/ingest/input.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct ImportOptions {
  std::vector<std::filesystem::path> inputs;
};

Result<Exit> run(const ImportOptions& options, const Globals& globals) {
  const ingest::ImportSummary summary = TRY(ingest::import_inputs(
      options.inputs, globals.output,
      {.strict = globals.strict, .progress = globals.progress_of("importing")}));
  const std::string store = globals.output.string();
  Document document{.command = "import", .rows = "problems"};
  document.line(fmt::format("{}: {}, {}, {}, {}", store, counted(summary.ranks, "rank"),
                            counted(summary.host_ops, "host op"),
                            counted(summary.gpu_ops, "device op"),
                            counted(summary.steps, "step mark")));
  document["store"] = store;
  document["ranks"] = summary.ranks;
  document["devices"] = summary.devices;
  document["ops"] = {{"host", summary.host_ops}, {"gpu", summary.gpu_ops}};
  document["steps"] = summary.steps;
  document.add_problems(summary.problems);
  return answer_with(globals.on_stdout(), document);
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command =
      app.add_subcommand("import", "Read recordings of one job into a store (-o STORE)");
  add_value(*command, "INPUT", "FILE", options->inputs,
            "recordings: Kineto, Nsight Systems, Chakra, captures")
      ->required();
  command->footer("Example: rehearse import rank0.json.gz rank1.json.gz -o job.rehearse");
  run_by(*command, action, options, run, [&app](const ImportOptions&) {
    if (app.get_option("--output")->empty()) throw CLI::RequiredError("-o STORE");
  });
}

}  // namespace rehearse::cli
