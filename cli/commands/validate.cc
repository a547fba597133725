// rehearse validate: predict recorded measurements and say how far off.
#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli/calibrate/measured_tables.h"
#include "cli/commands/commands.h"
#include "cli/output/result.h"
#include "cli/validation/collective_report.h"
#include "cli/validation/operation_report.h"
#include "cli/validation/replay_report.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

constexpr std::array<std::string_view, 4> kSuites = {"replay", "replay-pairs", "collectives",
                                                     "operations"};

struct Options {
  std::vector<std::string> suites;
  std::filesystem::path data;
};

bool wanted(const Options& options, std::string_view suite) {
  return options.suites.empty() ||
         std::find(options.suites.begin(), options.suites.end(), suite) != options.suites.end();
}

struct Findings {
  std::optional<ReplayAccuracy> replay;
  std::optional<CollectiveAccuracy> collectives;
  std::optional<OperationAccuracy> operations;
  std::vector<SuiteSummary> suites;
};

Result<Findings> measure(const Options& options, const Globals& globals) {
  Findings found;
  // A folder without tables of collectives is one of recordings alone.
  const bool tables = find_data(options.data, "nccl_measured.csv").has_value();
  if (wanted(options, "collectives") && (tables || !options.suites.empty())) {
    Result<CollectiveAccuracy> collectives = measure_collective_accuracy(options.data);
    if (!collectives) return forward(collectives);
    found.collectives = std::move(*collectives);
  }
  if (wanted(options, "replay") || wanted(options, "replay-pairs")) {
    Result<ReplayAccuracy> replay =
        measure_replay_accuracy(options.data, globals.progress_of("validating"));
    if (!replay) return forward(replay);
    for (const auto& [name, why] : replay->unreadable) globals.warn(why);
    found.replay = std::move(*replay);
    for (SuiteSummary& suite : summarize(*found.replay))
      if (wanted(options, suite.name)) found.suites.push_back(std::move(suite));
  }
  // Minutes of fitting, so only where it is asked for.
  if (wanted(options, "operations") && !options.suites.empty()) {
    Result<OperationAccuracy> operations = measure_operation_accuracy(options.data);
    if (!operations) return forward(operations);
    found.operations = std::move(*operations);
    for (SuiteSummary& suite : summarize(*found.operations))
      found.suites.push_back(std::move(suite));
  }
  if (found.collectives)
    for (SuiteSummary& suite : summarize(*found.collectives))
      found.suites.push_back(std::move(suite));
  return found;
}

Result<Exit> run(const Options& options, const Globals& globals) {
  const Result<Findings> found = measure(options, globals);
  if (!found) return forward(found);
  const auto to_json = [&] {
    Json json = json_root("validate");
    json["suites"] = json_suites(found->suites);
    return json;
  };
  const auto to_text = [&] {
    std::string text = suite_table(found->suites).text();
    if (found->replay) text += "\n" + recording_table(*found->replay).text(48);
    if (found->collectives) text += "\n" + case_table(*found->collectives).text();
    if (found->operations) text += "\n" + operation_table(*found->operations).text();
    return text;
  };
  const auto to_markdown = [&] {
    std::string text = found->replay ? accuracy_page(*found->replay) : "";
    if (found->collectives) text += collective_section(*found->collectives);
    if (found->operations) text += operation_section(*found->operations);
    return text;
  };
  const Formats formats = {.text = to_text,
                           .json = to_json,
                           .table = [&] { return suite_table(found->suites); },
                           .markdown = to_markdown};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "validate", "Predict recorded measurements; errors by suite, with the bad cases");
  command
      ->add_option("SUITE", options->suites,
                   "replay, replay-pairs, collectives (default: these), operations")
      ->type_name("NAME")
      ->check(CLI::Validator(
          [](const std::string& name) {
            if (std::find(kSuites.begin(), kSuites.end(), name) != kSuites.end())
              return std::string();
            return fmt::format("unknown suite '{}'; {}", name, suggest(name, kSuites));
          },
          "", ""));
  command
      ->add_option("--data", options->data,
                   "folder of recordings, searched recursively, and of tables of collectives")
      ->type_name("FOLDER")
      ->required();
  command->footer("Example: rehearse validate --data recordings --format markdown -o accuracy.md");
  command->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
