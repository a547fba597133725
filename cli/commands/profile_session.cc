#include "cli/commands/profile_session.h"

#include <chrono>
#include <ctime>

#include <fmt/core.h>

#include "cli/output/json.h"
#include "sim/base/file.h"

namespace rehearse::cli {
namespace {

/// 2026-11-22T04:50:00Z
std::string started(Seconds wall) {
  const std::time_t at = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()) -
                         static_cast<std::time_t>(wall.s());
  std::tm utc = {};
  ::gmtime_r(&at, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
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

}  // namespace

Status write_session(const capture::LaunchOptions& options, const capture::LaunchReport& report,
                     const std::optional<Overhead>& overhead) {
  std::string words;
  for (const std::string& word : options.command)
    words += (words.empty() ? "" : ", ") + json_quoted(word);
  std::string text = fmt::format(
      "command: [{}]\nstarted: {}\noptions: {}\nexit_code: {}\nwall: {:.6f} s\n", words,
      json_quoted(started(report.wall)), json_quoted(capture::option_words(options.record)),
      report.shell_code(), report.wall.s());
  if (overhead && overhead->step_plain)
    text += fmt::format("measured_step: {:.9f} s\n", overhead->step_plain->s());
  text += fmt::format("overhead:\n  ns_per_range: {:.1f}\n", report.cost_per_range.s() * 1e9);
  if (overhead) text += overhead_lines(*overhead);

  return write_file(options.folder / "session.yaml", text);
}

}  // namespace rehearse::cli
