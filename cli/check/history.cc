#include "cli/check/history.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/base/units.h"

namespace rehearse::cli {
namespace {

using compare::Effect, compare::Segment, compare::Verdict;

std::string range_text(const Effect& effect, double wrong) {
  return fmt::format("{} ({} to {})", signed_percent(effect.change),
                     signed_percent(effect.low(wrong)), signed_percent(effect.high(wrong)));
}

}  // namespace

Result<History> judge_history(const std::vector<HistoryEntry>& runs, double limit) {
  if (runs.size() < kLeastHistory)
    return fail(fmt::format("--history has {}: too few to distinguish a change from noise",
                            counted(runs.size(), "recording")),
                fmt::format("{} or more, oldest first", kLeastHistory));
  History history{.runs = runs};
  std::vector<double> levels;
  levels.reserve(runs.size());
  for (const HistoryEntry& run : runs) levels.push_back(run.level);
  history.changes = compare::find_changes(levels);

  // The cut is the best of as many as there are runs, so the limits of its segments share the
  // allowed probability of error.
  const double wrong = compare::kWrong / static_cast<double>(runs.size());
  const Segment& now = history.changes.segments.back();
  double accepted = 0;
  for (std::size_t i = now.first; i < runs.size(); ++i)
    accepted = std::max(accepted, runs[i].allowed);
  const HistoryEntry& first = runs[now.first];
  const auto judge = [&](const char* name, const Effect& effect, const std::string& what) {
    const Verdict verdict = compare::judge(effect, std::max(limit, accepted), wrong);
    std::string message = fmt::format("{} {}", what, range_text(effect, wrong));
    if (accepted > limit)
      message += fmt::format("; an increase of {:g} % was accepted", accepted * 100);
    history.findings.add(
        {name, verdict, std::move(message), first.file.empty() ? first.source : first.file});
  };
  const std::string since =
      fmt::format("since {} ({} ago)", first.source, counted(now.count - 1, "run"));
  if (now.jump.scale > 0) judge("jump", now.jump, "the step time jumped " + since + ":");
  if (now.drift.scale > 0) judge("drift", now.drift, "the step time drifts " + since + ":");
  if (history.findings.judged.empty())
    history.findings.add({"history", Verdict::kPass,
                          fmt::format("no change in {}: {}", counted(runs.size(), "run"),
                                      to_string(Seconds::s(now.end.value), 4)),
                          runs.back().file.empty() ? runs.back().source : runs.back().file});
  return history;
}

void add_noise_between_runs(const History& history, compare::EffectOptions& options) {
  const auto& segments = history.changes.segments;
  const auto tells = std::find_if(segments.rbegin(), segments.rend(),
                                  [](const Segment& segment) { return segment.count >= 3; });
  if (tells == segments.rend()) return;
  options.between_runs = tells->noise;
  options.between_freedom = tells->freedom;
}

}  // namespace rehearse::cli
