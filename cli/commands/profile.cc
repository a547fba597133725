// rehearse profile: run a command so that it, and every process it starts, is recorded.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/output/result.h"
#include "profiler/capture/launch.h"
#include "profiler/capture/trigger.h"
#include "sim/base/installed.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct Options {
  std::filesystem::path folder = "rehearse-capture";
  std::vector<std::string> command;
  std::string steps;
  std::string ring;
  std::string trigger;
};

Json to_json(const capture::StepCounts& steps) {
  return {{"seen", steps.seen},
          {"kept", steps.kept},
          {"kept_in_part", steps.in_part},
          {"gone", steps.gone}};
}

Json kept_steps(const capture::LaunchReport& report) {
  Json json = Json::array();
  for (const capture::LaunchedProcess& process : report.processes)
    for (const capture::KeptStep& step : process.kept_steps)
      json.push_back({{"process", process.name},
                      {"step", step.number},
                      {"step_time", json_measured(step.time)},
                      {"reason", step.reason},
                      {"kept_share", step.share}});
  return json;
}

/// What became of the steps, where they were chosen: a line, and one per step that a trigger named.
std::string steps_text(const capture::LaunchReport& report) {
  if (!report.steps) return "";
  const capture::StepCounts& steps = *report.steps;
  if (steps.seen == 0)
    return "no step was seen, so nothing is kept: a step is a range that is called 'step 7'; see "
           "docs/profiling.md\n";
  std::string text =
      fmt::format("steps: {} seen, {} kept", grouped(steps.seen), grouped(steps.kept));
  if (steps.in_part + steps.gone > 0)
    text += fmt::format(", {} in part, {} overwritten before they were asked for",
                        grouped(steps.in_part), grouped(steps.gone));
  text += "\n";
  constexpr std::size_t kShown = 20;
  std::size_t named = 0;
  for (const capture::LaunchedProcess& process : report.processes)
    for (const capture::KeptStep& step : process.kept_steps) {
      if (step.beside || ++named > kShown) continue;
      text += fmt::format("  {} step {}: {} ({:.0f} % kept)\n", process.name, step.number,
                          step.reason, step.share * 100);
    }
  if (named > kShown) text += fmt::format("  and {} more\n", named - kShown);
  return text;
}

/// Time spent on recording, as a share of all that its threads could have done meanwhile.
double overhead(const capture::LaunchReport& report) {
  return report.wall > Seconds::s(0) ? report.recording / report.wall : 0;
}

Json to_json(const Options& options, const capture::LaunchReport& report) {
  Json json = json_root("profile");
  json["folder"] = options.folder.string();
  json["exit_code"] = report.shell_code();
  json["processes"] = Json::array();
  for (const capture::LaunchedProcess& p : report.processes)
    json["processes"].push_back({{"name", p.name},
                                 {"command", p.command},
                                 {"recorded", p.recorded},
                                 {"ended_in_order", p.ended},
                                 {"ranges", p.ranges},
                                 {"marks", p.marks},
                                 {"dropped", p.lost},
                                 {"bytes", p.bytes}});
  json["records"] = {"nvtx"};
  json["ranges"] = report.ranges;
  json["marks"] = report.marks;
  if (report.steps) {
    json["steps"] = to_json(*report.steps);
    json["kept_steps"] = kept_steps(report);
  }
  json["kernels"] = 0;
  json["dropped"] = report.lost;
  json["wall_time"] = json_measured(report.wall);
  json["overhead"] = {{"per_range", json_measured(report.cost_per_range)},
                      {"total", json_measured(report.recording)},
                      {"share_of_wall_time", overhead(report)}};
  return json;
}

Table process_table(const capture::LaunchReport& report) {
  Table table({{"process", Align::kLeft},
               {"ranges"},
               {"marks"},
               {"dropped"},
               {"size (kB)"},
               {"ended", Align::kLeft},
               {"command", Align::kLeft}});
  for (const capture::LaunchedProcess& p : report.processes)
    table.add({p.name, grouped(p.ranges), grouped(p.marks), grouped(p.lost),
               fmt::format("{:.1f}", static_cast<double>(p.bytes) * 1e-3),
               !p.recorded ? "nothing recorded"
               : p.ended   ? "in order"
                           : "cut short",
               p.command});
  return table;
}

std::string to_text(const Options& options, const capture::LaunchReport& report) {
  if (report.processes.empty())
    return fmt::format(
        "{}: nothing was recorded: no process made an NVTX call.\nRanges are what is recorded; "
        "see docs/profiling.md for how to add them.\n",
        options.folder.string());
  return fmt::format(
             "{}: {} process{}, {} ranges, {} marks, {} dropped\n"
             "recording cost {} a range: {} in all, {:.2f} % of the {} that the run took\n{}\n",
             options.folder.string(), report.processes.size(),
             report.processes.size() == 1 ? "" : "es", grouped(report.ranges),
             grouped(report.marks), grouped(report.lost), to_string(report.cost_per_range),
             to_string(report.recording), overhead(report) * 100, to_string(report.wall, 4),
             steps_text(report)) +
         process_table(report).text();
}

/// Refuses, before anything runs, what `read` makes no value of.
template <class Read>
CLI::Validator reads_as(Read read) {
  return CLI::Validator(
      [read](const std::string& text) {
        const auto value = read(text);
        return value ? std::string() : to_string(value.error());
      },
      "", "");
}

Result<Bytes> parse_ring(const std::string& text) {
  const Result<Bytes> ring = parse_quantity<Bytes>(text);
  if (!ring) return forward(ring);
  if (*ring < Bytes::mib(1) || *ring > Bytes::gib(64))
    return fail(fmt::format("{} is no size for a ring", text), "1 MiB to 64 GiB");
  return ring;
}

Result<std::string> parse_trigger(const std::string& text) {
  capture::Trigger trigger;
  if (!capture::parse_trigger(text, trigger))
    return fail(fmt::format("'{}' is no trigger", text), capture::kTriggerGrammar);
  return text;
}

Result<Exit> run(const Options& options, const Globals& globals) {
  const Result<std::filesystem::path> library = installed_library("librehearse_capture.so");
  if (!library) return forward(library);
  capture::LaunchOptions launched = {
      .folder = options.folder,
      .command = options.command,
      .library = *library,
      // A program that reads our result must not find the command's output in it.
      .output_to_stderr = globals.format != Format::kTable};
  if (!options.steps.empty()) launched.steps = *capture::parse_steps(options.steps);
  if (!options.ring.empty()) launched.ring = *parse_ring(options.ring);
  launched.trigger = options.trigger;
  const Result<capture::LaunchReport> report = capture::launch(launched);
  if (!report) return forward(report);
  if (report->signal)
    globals.warn(fmt::format("signal {} ended the command; what it did until then is recorded",
                             *report->signal));
  const Formats formats = {.text = [&] { return to_text(options, *report); },
                           .json = [&] { return to_json(options, *report); },
                           .table = [&] { return process_table(*report); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return static_cast<Exit>(report->shell_code());
}

}  // namespace

void add_profile(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "profile", "Run a command and record its NVTX ranges (-o FOLDER -- COMMAND ...)");
  command
      ->add_option("-o,--output", options->folder,
                   "folder for the recording, new or empty (default: rehearse-capture)")
      ->type_name("FOLDER");
  CLI::Option* steps =
      command
          ->add_option("--steps", options->steps,
                       "record these steps only: 10:20 is 10 to 19, 10: and :20 leave one end open")
          ->type_name("FIRST:END")
          ->check(reads_as(capture::parse_steps));
  CLI::Option* ring =
      command
          ->add_option(
              "--ring", options->ring,
              "record into memory, so much in each process, such as 64 MiB; the steps that "
              "--trigger names are written")
          ->type_name("SIZE")
          ->check(reads_as(parse_ring))
          ->excludes(steps);
  CLI::Option* trigger =
      command
          ->add_option("--trigger", options->trigger,
                       fmt::format("steps of the ring to write: {}", capture::kTriggerGrammar))
          ->type_name("RULE")
          ->check(reads_as(parse_trigger))
          ->needs(ring);
  ring->needs(trigger);
  command->add_option("COMMAND", options->command, "the program and its arguments, behind --")
      ->type_name("WORD")
      ->required();
  command->footer("Example: rehearse profile -o recording -- python3 train.py");
  command->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
