// Dispatches to the subcommands and turns results into exit codes; everything else is theirs.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <new>
#include <span>
#include <sstream>
#include <thread>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/core.h>
#include <malloc.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/commands/command_line.h"
#include "cli/commands/commands.h"
#include "cli/commands/name_option.h"
#include "cli/commands/options.h"
#include "cli/commands/standard_input.h"
#include "cli/globals.h"
#include "cli/output/color.h"
#include "cli/output/document.h"
#include "cli/output/json.h"
#include "cli/progress_line.h"
#include "sim/base/check.h"
#include "sim/base/file.h"
#include "sim/base/named_file.h"
#include "sim/base/pending_files.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

void add_globals(CLI::App& app, Globals& globals) {
  static constexpr std::array<std::string_view, 4> kFormats = {"table", "json", "csv", "markdown"};
  add_choice(app, "--format", globals.format, kFormats, "table (default), json, csv or markdown",
             "format");
  add_value(app, "-o,--output", "FILE", globals.output,
            "write the result to this file instead of stdout");
  add_value(app, "--report", "FILE", globals.report,
            "also write the result to this file as one HTML page");
  add_value(app, "--json", "FILE", globals.json,
            "also write the result, or the errors, to this file as JSON");
  app.add_flag("--strict", globals.strict, "treat problems of a recording as errors");
  app.add_flag("--quiet", globals.quiet, "no warnings and no progress on stderr");
  app.add_flag("--progress", globals.progress, "progress on stderr even if it is not a terminal");
  app.add_flag_function(
      "--no-color", [](std::int64_t) { forbid_color(); },
      "no colours on a terminal (like NO_COLOR)");
  app.add_flag_function(
      "--allow-outside", [](std::int64_t) { allow_outside(); },
      "files may name files outside their own folder and the current one");
  app.add_option("--threads", globals.threads, "threads to use (default: one per core)")
      ->check(CLI::Range(1U, 1024U).description(""))
      ->type_name("N");
  add_value(app, "--seed", "N", globals.seed, "random seed (default 1)");
}

/// In groups, by what a person has or asks for.
void add_commands(CLI::App& app, Action& action) {
  struct Group {
    const char* heading;
    std::vector<void (*)(CLI::App&, Action&)> commands;
  };
  const Group groups[] = {
      {"Recordings",
       {add_profile, add_import, add_inspect, add_replay, add_whatif, add_check, add_export}},
      {"Jobs and servers",
       {add_simulate, add_live, add_plan, add_recommend, add_compare, add_input, add_calibrate,
        add_bench_gpu}},
      {"Clusters and GPUs", {add_network, add_fleet, add_pack, add_mig}},
      {"Accuracy", {add_validate, add_prove, add_study}},
      {"Facts and help",
       {add_catalog, add_explain, add_init, add_help, add_completion, add_doctor}},
  };
  for (const auto& [heading, commands] : groups)
    for (const auto add : commands) {
      add(app, action);
      app.get_subcommands({}).back()->group(heading);
    }
}

/// The command that was given, with its own commands: "calibrate job".
std::string given_command(const CLI::App& app) {
  std::string words = app.get_name();
  for (const CLI::App* sub : app.get_subcommands()) words += " " + given_command(*sub);
  return words;
}

/// "did you mean '--scale'?" for what the parser did not expect.
std::string suggestion(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  const std::function<void(const CLI::App&)> collect = [&](const CLI::App& from) {
    if (!word.starts_with("-"))
      for (const CLI::App* sub : from.get_subcommands({})) names.push_back(sub->get_name());
    for (const CLI::Option* option : from.get_options())
      if (!option->get_group().empty())  // former names are hidden
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const CLI::App* sub : from.get_subcommands()) collect(*sub);
  };
  collect(app);
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string_view begins = std::string_view(word).substr(0, word.find('='));
  if (const auto near = nearest(begins, views)) return fmt::format("; did you mean '{}'?", *near);
  // "--foo" is near nothing, but half of it begins "--format".
  const std::size_t least = std::max(std::string_view("--fo").size(), begins.size() / 2);
  for (; begins.starts_with("--") && begins.size() >= least; begins.remove_suffix(1))
    for (const std::string_view name : views)
      if (name.starts_with(begins)) return fmt::format("; did you mean '{}'?", name);
  return fmt::format("; {} --help lists what it takes", given_command(app));
}

/// The library's words for a value that is no number: "Could not convert: --seed = many".
std::string conversion_message(std::string_view message) {
  const std::size_t colon = message.find(": "), equals = message.find(" = ");
  if (colon == std::string_view::npos || equals == std::string_view::npos)
    return std::string(message);
  return fmt::format("{}: '{}' is not a number", message.substr(colon + 2, equals - colon - 2),
                     message.substr(equals + 3));
}

void complain(const Diagnostic& d) { say("rehearse: " + to_string(d)); }

/// The message on what a command lacks. It gets the help text of the missing option that it begins
/// with, or the names of the commands that could follow.
std::string missing_words(const CLI::App& app, std::string message) {
  for (const CLI::App* command : app.get_subcommands()) {
    if (!command->get_subcommands().empty()) return missing_words(*command, std::move(message));
    if (const auto parts = command->get_subcommands({}); !parts.empty())
      return fmt::format("{} needs one of {}", command->get_name(),
                         join(parts, ", ", [](const CLI::App* part) { return part->get_name(); }));
    for (const CLI::Option* option : command->get_options())
      if (message.starts_with(option->get_name(option->get_positional()) + " "))
        return message + "; " + option->get_description();
  }
  return message;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  if (dynamic_cast<const CLI::ConversionError*>(&error)) message = conversion_message(message);
  const std::vector<std::string> words = app.remaining(true);
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error);
  if (missing && app.get_subcommands().empty()) {
    message = words.empty() ? "a command is needed; rehearse --help lists them"
                            : fmt::format("unknown command '{}'{}", words.front(),
                                          suggestion(app, words.front()));
  } else if ((missing || dynamic_cast<const CLI::ExtrasError*>(&error)) && !words.empty()) {
    // A misspelt word is also a missing one; the error with the suggestion is more useful.
    message = fmt::format("unexpected '{}'{}", words.front(), suggestion(app, words.front()));
  } else if (missing) {
    message = missing_words(app, std::move(message));
  }
  complain({.problem = message});
  return static_cast<int>(Exit::kUsage);
}

/// The first signal asks the work to stop cleanly. Work that has not done so in time is ended, as
/// it is by a second signal.
void end_on_signals() {
  // mpirun ends the other ranks where one has failed, which has said why.
  static bool speaks = true;
  if (const char* rank = std::getenv("OMPI_COMM_WORLD_RANK"))
    speaks = std::string_view(rank) == "0";
  struct sigaction stop = {};
  stop.sa_handler = [](int) {
    interrupted = true;
    constexpr itimerval kGrace = {.it_interval = {0, 0}, .it_value = {0, 700'000}};
    ::setitimer(ITIMER_REAL, &kGrace, nullptr);
  };
  stop.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &stop, nullptr);
  struct sigaction end = {};
  end.sa_handler = [](int) {
    constexpr std::string_view kLine = "rehearse: stopped by a signal\n";
    [[maybe_unused]] const auto written =
        speaks ? ::write(STDERR_FILENO, kLine.data(), kLine.size()) : 0;
    remove_pending_files();
    ::_exit(static_cast<int>(Exit::kFailed));
  };
  ::sigaction(SIGALRM, &end, nullptr);
}

/// A stream that the caller has closed must not be the next file that is opened, or messages would
/// be written into results.
void hold_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0)
      (void)::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

/// A file beyond the shell's limit is an error of the write, not the end of the process. Programs
/// that this one starts do not inherit a handler.
void outlive_file_limit() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGXFSZ, &action, nullptr);
}

/// A reader that has closed its end of the pipe wants no result: the work for it is stopped as by a
/// signal, instead of at the first write.
void end_with_reader() {
  struct stat out = {};
  if (::fstat(STDOUT_FILENO, &out) != 0 || !S_ISFIFO(out.st_mode)) return;
  std::thread([] {
    pollfd reader{.fd = STDOUT_FILENO, .events = 0, .revents = 0};  // for errors alone
    while (::poll(&reader, 1, -1) < 0 && errno == EINTR) {
    }
    if ((reader.revents & POLLERR) != 0) ::kill(::getpid(), SIGTERM);
  }).detach();
}

/// Studies and searches run one simulation after another. Otherwise each returns its memory to the
/// system and the next one requests it again, page by page, which took a third of some studies. No
/// more arenas keep memory than threads run at a time: pools of threads come and go, and each of
/// theirs would keep the most that it ever had. Large blocks, which leave holes, are returned.
void keep_memory(unsigned threads) {
  ::mallopt(M_ARENA_MAX, static_cast<int>(threads));
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_MMAP_THRESHOLD, 8 << 20);
  ::mallopt(M_TOP_PAD, 64 << 20);
}

/// A file may have an error in every line. The first ones are enough.
void print_errors(const Error& error) {
  constexpr std::size_t kShown = 20;
  const std::size_t all = error.diagnostics.size();
  for (const Diagnostic& d : std::span(error.diagnostics).first(std::min(all, kShown))) complain(d);
  if (all > kShown) say(fmt::format("rehearse: and {} more", counted(all - kShown, "error")));
}

int exit_code(const Result<Exit>& exit, const Globals& globals = {}) {
  if (exit) return static_cast<int>(*exit);
  print_errors(exit.error());
  if (!globals.json.empty())
    if (Status ok = write_file(globals.json, json_text(json_of(exit.error()))); !ok)
      print_errors(ok.error());
  return static_cast<int>(Exit::kFailed);
}

/// The words after a command name its inputs: no output may replace them, and the page shows them.
void note_given_files(const CLI::App& app, Globals& globals) {
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options())
      if (option->get_positional())
        for (const std::string& word : option->results()) {
          note_input(word);
          if (std::error_code none; std::filesystem::exists(word, none))
            globals.inputs.emplace_back(word);
        }
    note_given_files(*command, globals);
  }
}

/// A command whose result is no document.
bool has_no_page(const CLI::App& app) {
  constexpr std::array<std::string_view, 4> kNames = {"live", "init", "help", "completion"};
  return std::count(kNames.begin(), kNames.end(), app.get_subcommands().front()->get_name()) > 0;
}

int run(int argc, char** argv) {
  hold_streams();
  outlive_file_limit();
  CLI::App app("Rehearse a machine-learning job before you pay for it.", "rehearse");
  app.formatter(help_formatter());
  app.set_version_flag("--version", std::string("rehearse ") + REHEARSE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  Globals globals;
  Action action;
  add_globals(app, globals);
  add_commands(app, action);
  accept_standard_input(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    app.exit(help, text, text);
    return exit_code(write_text({}, text.str()).map([] { return Exit::kSuccess; }));
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }

  keep_memory(globals.thread_count());
  end_on_signals();
  // The program that is recorded does not notice who reads our output.
  if (globals.output.empty() && !app.got_subcommand("profile")) end_with_reader();
  if (!globals.output.empty()) forbid_color();
  if (!globals.report.empty() && has_no_page(app)) {
    complain({.problem = given_command(app) + " has no result that a page could show"});
    return static_cast<int>(Exit::kUsage);
  }
  // These run until they are stopped, or share the terminal with another program.
  const bool has_line = !app.got_subcommand("live") && !app.got_subcommand("profile");
  const ProgressLine line(command_words(*app.get_subcommands().front()),
                          has_line && shows_progress(globals));
  note_given_files(app, globals);
  if (const Status ok = check_writable({globals.json, globals.report}); !ok)
    return exit_code(forward(ok));
  const Status writable = check_writable({globals.output});
  return exit_code(writable ? action(globals) : forward(writable), globals);
}

}  // namespace
}  // namespace rehearse::cli

int main(int argc, char** argv) {
  try {
    return rehearse::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("rehearse: not enough memory; a smaller input, or more memory\n", stderr);
    return static_cast<int>(rehearse::cli::Exit::kFailed);
  } catch (const std::exception& fault) {
    rehearse::cli::say(fmt::format("rehearse: internal error, please report it: {}", fault.what()));
    return static_cast<int>(rehearse::cli::Exit::kFault);
  }
}
