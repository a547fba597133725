// rehearse profile: run a command so that it, and every process it starts, is recorded.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>

#include <fmt/chrono.h>

#include "cli/commands/options.h"
#include "cli/commands/profile_overhead.h"
#include "cli/commands/source_commit.h"
#include "cli/output/document.h"
#include "cli/output/json.h"
#include "profiler/capture/trigger.h"
#include "profiler/launch/launch.h"
#include "sim/base/file.h"
#include "sim/base/installed.h"
#include "sim/base/number.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// Reads "10:20", "10:" or ":20".
Status read_steps(const std::string& given, capture::Options& into) {
  const std::string_view text = given;
  const auto wrong = [&] {
    return fail(fmt::format("'{}' is not a range of steps", text),
                "FIRST:END, such as 10:20 for steps 10 to 19, 10: or :20");
  };
  std::uint64_t first = 0, end = UINT64_MAX;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text == ":") return wrong();
  const auto read = [](std::string_view digits, std::uint64_t& number) {
    const auto read_number = parse_number<std::uint64_t>(digits);
    number = read_number.value_or(number);
    return digits.empty() || read_number;
  };
  if (!read(text.substr(0, colon), first) || !read(text.substr(colon + 1), end) || first >= end)
    return wrong();
  into.first_step = first;
  into.end_step = end;
  return {};
}

Status read_ring(const std::string& text, capture::Options& into) {
  const Bytes ring = TRY(parse_quantity<Bytes>(text));
  if (ring < Bytes::mib(1) || ring > Bytes::gib(64))
    return fail(fmt::format("{} is not a valid ring size", text), "1 MiB to 64 GiB");
  into.ring = static_cast<std::uint64_t>(ring.b());
  return {};
}

Status read_trigger(std::string text, capture::Options& into) {
  capture::Trigger trigger;
  const bool is_one = capture::parse_trigger(text, trigger);
  const std::string as_given = text;
  std::erase(text, ' ');  // a word for the library has no spaces; nor does a trigger need them
  if (!is_one || text.size() >= sizeof into.trigger)
    return fail(fmt::format("'{}' is not a trigger", as_given), capture::kTriggerGrammar);
  std::memcpy(into.trigger, text.c_str(), text.size() + 1);
  return {};
}

/// An option that `read` parses into `record`; an error is reported before anything runs.
template <class Read>
CLI::Option* add(CLI::App& command, const char* name, const char* type, std::string description,
                 capture::Options& record, Read read) {
  return command
      .add_option_function<std::string>(
          name, [&record, read](const std::string& text) { static_cast<void>(read(text, record)); },
          std::move(description))
      ->type_name(type)
      ->check(reads_as([read](const std::string& text) {
        capture::Options ignored;
        return read(text, ignored);
      }));
}

/// Adds --steps, --ring and --trigger. REQUIRES: `record` outlives the command.
void add_step_options(CLI::App& command, capture::Options& record) {
  CLI::Option* steps =
      add(command, "--steps", "FIRST:END",
          "record only these steps: 10:20 is 10 to 19, 10: and :20 leave one end open", record,
          read_steps);
  CLI::Option* ring = add(command, "--ring", "SIZE",
                          "record into a ring of this size per process, such as 64 MiB; the steps "
                          "that --trigger selects are written",
                          record, read_ring)
                          ->excludes(steps);
  CLI::Option* trigger =
      add(command, "--trigger", "RULE",
          fmt::format("write these steps of the ring: {}", capture::kTriggerGrammar), record,
          read_trigger)
          ->needs(ring);
  ring->needs(trigger);
}

namespace {

/// Lines for people: the number of steps, and those that a trigger named.
std::string steps_text(const capture::LaunchReport& report) {
  const capture::StepCounts& steps = *report.steps;
  if (steps.seen == 0)
    return "no step was seen, so nothing was kept: a step is a range named like 'step 7'; see "
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
    for (const capture::KeptStep& step : process.steps.kept) {
      if (step.neighbour || ++named > kShown) continue;
      text += fmt::format("  {} step {}: {} ({:.0f} % kept)\n", process.name, step.number,
                          step.reason, step.share * 100);
    }
  if (named > kShown) text += fmt::format("  and {} more\n", named - kShown);
  return text;
}

}  // namespace

/// Adds `steps` and `kept_steps` if steps were chosen, and a text on the steps that a trigger
/// named.
void add_steps(Document& document, const capture::LaunchReport& report) {
  if (!report.steps) return;
  document.line(steps_text(report));
  document["steps"] = {{"seen", report.steps->seen},
                       {"kept", report.steps->kept},
                       {"kept_in_part", report.steps->in_part},
                       {"gone", report.steps->gone}};
  Value kept = Value::array();
  for (const capture::LaunchedProcess& process : report.processes)
    for (const capture::KeptStep& step : process.steps.kept)
      kept.push_back({{"process", process.name},
                      {"step", step.number},
                      {"step_time", step.time},
                      {"reason", step.reason},
                      {"kept_share", step.share}});
  document["kept_steps"] = std::move(kept);
}

/// 2026-11-22T04:50:00Z
std::string started(Seconds wall) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::time(nullptr) - static_cast<std::time_t>(wall.s())));
}

std::string overhead_lines(const Overhead& overhead) {
  std::string text;
  if (overhead.cost_per_call)
    text += fmt::format("  ns_per_call: {:.1f}\n", overhead.cost_per_call->s() * 1e9);
  text += fmt::format("  run_share: {:.5f}\n", overhead.wall_share.value);
  if (overhead.step_share)
    text += fmt::format(
        "  step_share: {:.5f}\n  step_share_low: {:.5f}\n  step_share_high: {:.5f}\n",
        overhead.step_share->value, overhead.step_share->low, overhead.step_share->high);
  return text;
}

/// Writes the file into the folder of the recording.
Status write_session(const capture::LaunchOptions& options, const capture::LaunchReport& report,
                     const std::optional<Overhead>& overhead) {
  std::string text = fmt::format(
      "command: [{}]\nstarted: {}\noptions: {}\nexit_code: {}\nwall: {:.6f} s\n",
      join(options.command, ", ", json_quoted), json_quoted(started(report.wall)),
      json_quoted(capture::option_words(options.record)), report.shell_code(), report.wall.s());
  if (const std::string commit = source_commit(std::filesystem::current_path()); !commit.empty())
    text += fmt::format("commit: {}\n", commit);
  if (overhead && overhead->step_plain)
    text += fmt::format("measured_step: {:.9f} s\n", overhead->step_plain->s());
  text += fmt::format("overhead:\n  ns_per_range: {:.1f}\n", report.cost_per_range.s() * 1e9);
  if (overhead) text += overhead_lines(*overhead);

  return write_file(options.folder / "session.yaml", text);
}

/// The names of capture::Options::Graph.
constexpr std::string_view kGraphNames[] = {"node", "launch"};

struct ProfileOptions {
  std::filesystem::path folder = "rehearse-capture";
  std::vector<std::string> command;
  capture::Options record;
  bool torch_ops = false;
  bool measure_overhead = false;
  std::size_t pairs = 1;
};

/// The data of the result.
struct Profiled {
  std::string folder;
  capture::LaunchReport report;
  std::optional<Overhead> overhead = {};

  /// Time spent on ranges, as a share of the time of all threads.
  double share() const { return report.wall > Seconds::s(0) ? report.recording / report.wall : 0; }
};

/// A count of a recording: its JSON key and its name in the summary.
struct Count {
  const char *key, *words;
  std::uint64_t capture::Counts::*count;
};
constexpr Count kCounts[] = {{"kernels", "kernels", &capture::Counts::kernels},
                             {"copies", "copies", &capture::Counts::copies},
                             {"graphs", "launches of graphs", &capture::Counts::graphs},
                             {"collectives", "collectives", &capture::Counts::collectives},
                             {"ranges", "ranges", &capture::Counts::ranges},
                             {"marks", "marks", &capture::Counts::marks},
                             {"calls", "", &capture::Counts::calls},
                             {"dropped", "dropped", &capture::Counts::lost}};

std::vector<std::string> kinds_of(const capture::Counts& counts) {
  std::vector<std::string> kinds;
  if (counts.ranges + counts.marks > 0) kinds.emplace_back("nvtx");
  for (const char* kind : {"kernels", "copies", "calls", "graphs", "collectives"})
    for (const Count& each : kCounts)
      if (each.key == std::string_view(kind) && counts.*each.count > 0) kinds.emplace_back(kind);
  return kinds;
}

/// On the screen without the counts that are zero for all processes.
Value process_fields(const capture::LaunchedProcess& p, const capture::Counts& all) {
  Value fields = {{"name", "process", p.name}};
  for (const Count& each : kCounts) {
    const bool shown = all.*each.count > 0 || each.count == &capture::Counts::lost;
    fields.show(each.key, *each.words ? each.key : "", p.counts.*each.count, {},
                shown ? Look{} : kInTables);
  }
  fields.show("bytes", "size", p.bytes, in::kKb);
  fields.show("", "ended", !p.recorded ? "nothing recorded" : p.ended ? "in order" : "cut short");
  fields.show("command", "command", p.command);
  fields["recorded"] = p.recorded;
  fields["ended_in_order"] = p.ended;
  fields["device"] = p.device;
  fields["facts"] = Value::array();
  for (const auto& fact : p.facts)
    fields["facts"].push_back({{"name", fact.first}, {"detail", fact.second}});
  return fields;
}

Value spread_fields(const Spread& spread) {
  return {{"value", spread.value}, {"low", spread.low}, {"high", spread.high}};
}

/// "5 kernels, 2 copies, 4 ranges, 0 dropped"
std::string counts_text(const capture::Counts& counts) {
  std::string text;
  for (const Count& each : kCounts)
    if (*each.words && (counts.*each.count > 0 || each.count == &capture::Counts::lost))
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(counts.*each.count), each.words);
  return text;
}

/// The reasons why the recording is incomplete, one line each.
std::string notes_on(const capture::LaunchReport& report) {
  std::string text;
  std::set<std::string> said;  // all ranks have the same trouble
  for (const capture::LaunchedProcess& p : report.processes)
    for (const auto& fact : p.facts)
      if (fact.first == "trouble" && said.insert(fact.second).second)
        text += fmt::format("{}: {}\n", p.name, fact.second);
  const bool device = std::ranges::any_of(
      report.processes, [](const capture::LaunchedProcess& p) { return p.device; });
  if (!device)
    text += "no process started the CUDA driver: there are no kernels to record\n";
  else if (report.counts.kernels + report.counts.graphs == 0 && said.empty())
    text += "the CUDA driver was started, but no kernel ran\n";
  if (report.counts.lost > 0)
    text += fmt::format("{} records were dropped because the disk was too slow\n",
                        grouped(report.counts.lost));
  return text;
}

std::string percent(const Spread& spread) {
  return fmt::format("{:+.2f} % ({:+.2f} to {:+.2f} %)", spread.value * 100, spread.low * 100,
                     spread.high * 100);
}

std::string overhead_text(const Overhead& overhead) {
  std::string text;
  if (overhead.step_share)
    text += fmt::format("recording makes a step {} longer than {}", percent(*overhead.step_share),
                        to_string(*overhead.step_plain, 4));
  else
    text += "no steps are marked; with recording";
  text += fmt::format("{} the run {} longer than {}, in {} pair{} of runs\n",
                      overhead.step_share ? "," : "", percent(overhead.wall_share),
                      to_string(overhead.wall_plain, 4), overhead.pairs,
                      overhead.pairs == 1 ? "" : "s");
  if (overhead.cost_per_call)
    text += fmt::format("the overhead beyond that of ranges is {} per CUDA call\n",
                        to_string(*overhead.cost_per_call));
  return text;
}

Document document_of(const Profiled& profiled) {
  const capture::LaunchReport& report = profiled.report;
  const std::size_t count = report.processes.size();
  Document d{.command = "profile", .rows = "processes"};
  if (count == 0) {
    d.line(fmt::format(
        "{}: nothing was recorded: no process started the CUDA driver or made an NVTX call.\n"
        "`rehearse doctor` checks this machine; docs/profiling.md explains how to name ranges.",
        profiled.folder));
  } else {
    d.line(fmt::format("{}: {} process{}, {}", profiled.folder, count, count == 1 ? "" : "es",
                       counts_text(report.counts)));
    if (report.counts.ranges + report.counts.marks > 0)
      d.line(fmt::format("recording ranges cost {} each: {} in total, {:.2f} % of the run's {}",
                         to_string(report.cost_per_range), to_string(report.recording),
                         profiled.share() * 100, to_string(report.wall, 4)));
    d.line(notes_on(report));
  }
  d["folder"] = profiled.folder;
  d["exit_code"] = report.shell_code();
  d["records"] = kinds_of(report.counts);
  for (const Count& each : kCounts) d[each.key] = report.counts.*each.count;
  add_steps(d, report);
  d["wall_time"] = report.wall;
  d["overhead"] = {{"per_range", report.cost_per_range},
                   {"total", report.recording},
                   {"share_of_wall_time", profiled.share()}};
  if (const auto& overhead = profiled.overhead) {
    d.line(overhead_text(*overhead));
    Value measured = {{"pairs", overhead->pairs},
                      {"wall_time", overhead->wall_plain},
                      {"wall_share", spread_fields(overhead->wall_share)},
                      {"step_time", maybe(overhead->step_plain)},
                      {"per_call", maybe(overhead->cost_per_call)}};
    if (overhead->step_share) measured["step_share"] = spread_fields(*overhead->step_share);
    d["overhead"]["measured"] = std::move(measured);
  }
  d["processes"] = Value::array();
  for (const capture::LaunchedProcess& p : report.processes)
    d["processes"].push_back(process_fields(p, report.counts));
  return d;
}

Result<double> readings_per_second(const std::string& text) {
  const auto number = parse_number<std::uint32_t>(text);
  if (!number || *number > 1000)
    return fail(fmt::format("'{}': expected a whole number from 0 to 1000", text));
  return *number;
}

/// The launcher's options for the options of the command.
Result<capture::LaunchOptions> launch_options(const ProfileOptions& options,
                                              const Globals& globals) {
  const std::filesystem::path library = TRY(installed_library("librehearse_capture.so"));
  capture::LaunchOptions launched{.folder = options.folder,
                                  .command = options.command,
                                  .library = library,
                                  .record = options.record};
  // The command's output must not be mixed with our result for programs.
  launched.output_to_stderr = globals.format != Format::kTable;
  if (options.torch_ops) {
    const std::filesystem::path hook = TRY(installed_library("python/sitecustomize.py"));
    launched.python = hook.parent_path();
  }
  return launched;
}

Result<Exit> run(const ProfileOptions& options, const Globals& globals) {
  const capture::LaunchOptions launched = TRY(launch_options(options, globals));
  for (const std::string& warning : capture::launch_warnings()) globals.warn(warning);
  capture::LaunchReport report = TRY(capture::launch(launched));
  if (report.signal)
    globals.warn(fmt::format(
        "signal {} ended the command; the recording covers the time until then", *report.signal));
  Profiled profiled{.folder = options.folder.string(), .report = std::move(report)};
  if (options.measure_overhead && profiled.report.shell_code() == 0) {
    const Result<Overhead> overhead = measure_overhead(launched, profiled.report, options.pairs);
    if (overhead)
      profiled.overhead = *overhead;
    else  // the recording is there all the same
      globals.warn("the overhead was not measured: " + to_string(overhead.error()));
  }
  if (Status ok = write_session(launched, profiled.report, profiled.overhead); !ok)
    globals.warn(to_string(ok.error()));
  return answer_with(globals, document_of(profiled),
                     static_cast<Exit>(profiled.report.shell_code()));
}

}  // namespace

void add_profile(CLI::App& app, Action& action) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* command =
      app.add_subcommand("profile", "Run a command and record it (-o FOLDER -- COMMAND ...)");
  add_value(*command, "-o,--output", "FOLDER", options->folder,
            "folder for the recording, new or empty (default: rehearse-capture)");
  add_choice(*command, "--graph", options->record.graph, kGraphNames,
             "CUDA graphs: record every kernel (node, the default), or each graph launch "
             "(launch), with less overhead")
      ->type_name("HOW");
  command->add_flag("--memory", options->record.memory, "record device allocations and frees");
  command->add_flag("--jit", options->record.jit, "record kernel compilations");
  command->add_flag("--channels", options->record.channels,
                    "record NCCL's kernels channel by channel");
  add_read(*command, "--power", "HZ", options->record.power, readings_per_second,
           "power readings per second; 0 disables them (default: 10)");
  command->add_flag(
      "--torch-ops", options->torch_ops,
      "record names of PyTorch's operators, modules and steps, without changing the script");
  CLI::Option* overhead =
      add_number(*command, "--overhead", options->pairs, std::size_t{1}, std::size_t{100},
                 "measure the overhead of recording: run the command N times with and without it, "
                 "alternately (default 1)")
          ->expected(0, 1);
  add_step_options(*command, options->record);
  add_words(*command, "COMMAND", "WORD", options->command,
            "the program and its arguments, after --")
      ->required();
  command->footer("Example: rehearse profile --torch-ops -o recording -- python3 train.py");
  command->callback([options, overhead, &action] {
    options->measure_overhead = overhead->count() > 0;
    options->pairs = std::max<std::size_t>(1, options->pairs);  // 0 if no N is given
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
