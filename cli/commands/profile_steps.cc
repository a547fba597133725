#include "cli/commands/profile_steps.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/core.h>

#include "cli/commands/options.h"
#include "profiler/capture/trigger.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// Reads "10:20", "10:" or ":20".
Status read_steps(const std::string& given, capture::Options& into) {
  const std::string_view text = given;
  const auto wrong = [&] {
    return fail(fmt::format("'{}' names no steps", text),
                "FIRST:END, such as 10:20 for steps 10 to 19, 10: or :20");
  };
  std::uint64_t first = 0, end = UINT64_MAX;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text == ":") return wrong();
  const auto read = [](std::string_view digits, std::uint64_t& number) {
    const char* last = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), last, number);
    return digits.empty() || (error == std::errc() && stopped == last);
  };
  if (!read(text.substr(0, colon), first) || !read(text.substr(colon + 1), end) || first >= end)
    return wrong();
  into.first_step = first;
  into.end_step = end;
  return {};
}

Status read_ring(const std::string& text, capture::Options& into) {
  const Result<Bytes> ring = parse_quantity<Bytes>(text);
  if (!ring) return forward(ring);
  if (*ring < Bytes::mib(1) || *ring > Bytes::gib(64))
    return fail(fmt::format("{} is not a valid ring size", text), "1 MiB to 64 GiB");
  into.ring = static_cast<std::uint64_t>(ring->b());
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

}  // namespace

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

}  // namespace rehearse::cli
