#include "cli/check/history.h"

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/base/units.h"

namespace rehearse::cli {
namespace {

using compare::Effect;
using compare::Segment;
using compare::Verdict;

std::string range_text(const Effect& effect, double wrong) {
  return fmt::format("{} ({} to {})", signed_percent(effect.change),
                     signed_percent(effect.low(wrong)), signed_percent(effect.high(wrong)));
}

}  // namespace

Result<History> judge_history(const std::vector<HistoryEntry>& runs, double limit) {
  if (runs.size() < kLeastHistory)
    return fail(fmt::format("--history has {}: too few to tell a change from chance",
                            counted(runs.size(), "recording")),
                fmt::format("{} or more, oldest first", kLeastHistory));
  History history;
  for (const HistoryEntry& run : runs) {
    history.sources.push_back(run.source);
    history.levels.push_back(run.level);
  }
  history.changes = compare::find_changes(history.levels);

  // The cut is the best of as many as there are runs: the limits of its segments share what may
  // be wrong.
  const double wrong = compare::kWrong / static_cast<double>(runs.size());
  const Segment& now = history.changes.segments.back();
  const auto judge = [&](const char* name, const Effect& effect, const std::string& what) {
    const Verdict verdict = compare::judge(effect, limit, wrong);
    history.findings.add({name, verdict, fmt::format("{} {}", what, range_text(effect, wrong)),
                          history.sources[now.first]});
  };
  const std::string since =
      fmt::format("since {} ({} ago)", history.sources[now.first], counted(now.count - 1, "run"));
  if (now.jump.scale > 0) judge("jump", now.jump, "the step time jumped " + since + ":");
  if (now.drift.scale > 0) judge("drift", now.drift, "the step time drifts " + since + ":");
  if (history.findings.judged.empty())
    history.findings.add({"history", Verdict::kPass,
                          fmt::format("no change in {}: {}", counted(runs.size(), "run"),
                                      to_string(Seconds::s(now.end.value), 4)),
                          history.sources.back()});
  return history;
}

double noise_between_runs(const History& history) {
  const Segment& now = history.changes.segments.back();
  return now.count >= 3 ? now.noise : 0;
}

}  // namespace rehearse::cli
