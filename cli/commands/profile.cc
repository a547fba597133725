// rehearse profile: run a command so that it, and every process it starts, is recorded.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/commands/profile_steps.h"
#include "cli/output/result.h"
#include "profiler/capture/launch.h"
#include "sim/base/installed.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct Options {
  std::filesystem::path folder = "rehearse-capture";
  std::vector<std::string> command;
  capture::Options record;
};

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
  add_steps(json, report);
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

Result<Exit> run(const Options& options, const Globals& globals) {
  const Result<std::filesystem::path> library = installed_library("librehearse_capture.so");
  if (!library) return forward(library);
  const Result<capture::LaunchReport> report =
      capture::launch({.folder = options.folder,
                       .command = options.command,
                       .library = *library,
                       .record = options.record,
                       // A program that reads our result must not find the command's output in it.
                       .output_to_stderr = globals.format != Format::kTable});
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
  add_step_options(*command, options->record);
  command->add_option("COMMAND", options->command, "the program and its arguments, behind --")
      ->type_name("WORD")
      ->required();
  command->footer("Example: rehearse profile -o recording -- python3 train.py");
  command->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
