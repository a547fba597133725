#include "cli/check/history.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/output/table.h"
#include "profiler/compare/pool.h"
#include "sim/base/text.h"
#include "sim/base/units.h"

namespace rehearse::cli {

namespace {

/// The first run of the current level.
std::size_t level_begins(const Past& past, const History& history) {
  const compare::Segment& now = history.changes.segments.back();
  return now.drifts ? past.entries.size() - 1 : now.first;
}

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

Result<Past> past_of(const std::filesystem::path& store, std::vector<KeptRun> runs, double limit,
                     compare::EffectOptions& effect) {
  Past past{.store = store, .baseline = std::nullopt};
  for (const KeptRun& run : runs)
    past.entries.push_back({.source = run.name,
                            .level = run.level,
                            .file = store.string(),
                            .allowed = run.allowed,
                            .date = run.date});
  if (runs.empty()) return past;
  std::size_t first = runs.size() - 1;
  if (runs.size() >= kLeastHistory) {
    const History history = TRY(judge_history(past.entries, limit));
    add_noise_between_runs(history, effect);
    first = level_begins(past, history);
  }
  std::vector<const compare::Run*> whole;
  for (std::size_t i = first; i < runs.size(); ++i)
    if (runs[i].run) whole.push_back(&*runs[i].run);
  if (whole.empty())
    return fail_in(store, "is a damaged history: its newest run has no steps", {},
                   "name a new file, which --accept creates");
  compare::Pool pool = compare::pool_runs(whole);
  pool.run.source = store.string();
  past.baseline = std::move(pool.run);
  past.pooled = pool.runs;
  effect.baseline_runs = static_cast<double>(pool.runs);
  return past;
}

Result<Past> read_past(const std::filesystem::path& store, const compare::Run* candidate,
                       double limit, compare::EffectOptions& effect) {
  std::error_code error;
  if (!std::filesystem::exists(store, error)) return past_of(store, {}, limit, effect);
  std::vector<KeptRun> runs = TRY(read_runs(store));
  bool known = false;
  if (candidate) {
    const std::uint64_t sum = kept(*candidate, "", 0).sum;
    known = std::erase_if(runs, [&](const KeptRun& run) { return run.sum == sum; }) > 0;
  }
  Result<Past> past = past_of(store, std::move(runs), limit, effect);
  if (past) past->known = known;
  return past;
}

std::vector<std::string> past_lines(const Past& past) {
  std::string text = fmt::format("history   {}: {}", past.store.string(),
                                 counted(past.entries.size(), "accepted run"));
  if (past.known) text += ", excluding the candidate, which is one of them";
  if (past.pooled > 0) {
    const HistoryEntry& first = past.entries[past.entries.size() - past.pooled];
    text += fmt::format("; the baseline is {}{}, of {}",
                        past.pooled == 1 ? "the newest, " : counted(past.pooled, "run") + " since ",
                        first.source, first.date);
  }
  if (past.entries.empty())
    text += past.known ? ": compared with itself"
                       : ": the candidate is its first run, compared with itself";
  std::vector<std::string> lines = {std::move(text)};
  if (past.accepted) lines.push_back(*past.accepted ? "accepted" : "not accepted: " + past.why_not);
  return lines;
}

Json past_json(const Past& past) {
  Json json = {
      {"file", past.store.string()}, {"runs", past.entries.size()}, {"pooled", past.pooled}};
  if (past.accepted) json["accepted"] = *past.accepted;
  if (past.accepted && !*past.accepted) json["why_not"] = past.why_not;
  return json;
}

}  // namespace rehearse::cli
