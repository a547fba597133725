// rehearse validate: predict recorded measurements and say how far off.
#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/output/result.h"
#include "cli/validation/replay_report.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

constexpr std::array<std::string_view, 2> kSuites = {"replay", "replay-pairs"};

struct Options {
  std::vector<std::string> suites;
  std::filesystem::path data;
};

Result<Exit> run(const Options& options, const Globals& globals) {
  const Result<ReplayAccuracy> accuracy =
      measure_replay_accuracy(options.data, globals.progress_of("validating"));
  if (!accuracy) return forward(accuracy);
  for (const auto& [name, why] : accuracy->unreadable) globals.warn(why);
  std::vector<SuiteSummary> suites;
  for (SuiteSummary& suite : summarize(*accuracy))
    if (options.suites.empty() ||
        std::find(options.suites.begin(), options.suites.end(), suite.name) != options.suites.end())
      suites.push_back(std::move(suite));
  const auto to_json = [&] {
    Json json = json_root("validate");
    json["suites"] = json_suites(suites);
    return json;
  };
  const auto to_text = [&] {
    return suite_table(suites).text() + "\n" + recording_table(*accuracy).text(48);
  };
  const Formats formats = {.text = to_text,
                           .json = to_json,
                           .table = [&] { return suite_table(suites); },
                           .markdown = [&] { return accuracy_page(*accuracy); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "validate", "Predict recorded measurements; errors by suite, with the bad cases");
  command->add_option("SUITE", options->suites, "replay, replay-pairs (default: all)")
      ->type_name("NAME")
      ->check(CLI::Validator(
          [](const std::string& name) {
            if (std::find(kSuites.begin(), kSuites.end(), name) != kSuites.end())
              return std::string();
            return fmt::format("unknown suite '{}'; {}", name, suggest(name, kSuites));
          },
          "", ""));
  command->add_option("--data", options->data, "folder of recordings, searched recursively")
      ->type_name("FOLDER")
      ->required();
  command->footer("Example: rehearse validate --data recordings --format markdown -o accuracy.md");
  command->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
