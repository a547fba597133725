#include "tests/validation/studies/replay_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "profiler/replay/interval.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

std::string percent(double ratio, int decimals = 2) {
  return fmt::format("{:.{}f} %", ratio * 100, decimals);
}

/// A reader needs the shape of a column more than a cell in full.
std::string range_of(const std::vector<replay::StepComparison>& steps,
                     Seconds replay::Pair::*side) {
  double low = 1e300, high = 0;
  for (const replay::StepComparison& step : steps) {
    low = std::min(low, (step.period().*side).ms());
    high = std::max(high, (step.period().*side).ms());
  }
  if (steps.empty()) return "";
  if (high < low * 1.005) return significant(high);
  return significant(low) + " – " + significant(high);
}

double worst(const std::vector<replay::StepComparison>& steps, bool device) {
  double found = 0;
  for (const replay::StepComparison& step : steps) {
    if (device && !step.device) continue;
    const double e = device ? step.device->error() : step.period().error();
    if (std::abs(e) > std::abs(found)) found = e;
  }
  return found;
}

Table perturbation_table(const ReplayAccuracy& accuracy) {
  Table table({{"recording", Align::kLeft},
               {"device x0"},
               {"device x10"},
               {"host x2"},
               {"collectives x10"},
               {"limits", Align::kLeft}});
  const auto factor = [](double f) { return fmt::format("{:.2f}", f); };
  for (const RecordingAccuracy& r : accuracy.recordings)
    table.add({r.name, factor(r.gpu_times_0), factor(r.gpu_times_10), factor(r.host_times_2),
               r.collectives_times_10 ? factor(*r.collectives_times_10) : "–",
               r.broken_limit.empty() ? "hold" : r.broken_limit});
  return table;
}

Table ablation_table(const ReplayAccuracy& accuracy) {
  std::vector<Column> columns = {{"recording", Align::kLeft}, {"all rules"}};
  const RecordingAccuracy* longest = nullptr;
  for (const RecordingAccuracy& r : accuracy.recordings)
    if (!longest || r.ablations.size() > longest->ablations.size()) longest = &r;
  for (const auto& ablation : longest->ablations)
    columns.push_back({fmt::format("no {}", ablation.rule)});
  Table table(columns);
  for (const RecordingAccuracy& r : accuracy.recordings) {
    std::vector<std::string> row = {
        r.name, fmt::format("{} / {}", signed_percent(r.plain.step_time.error()),
                            percent(r.plain.start_error))};
    for (std::size_t i = 0; i < longest->ablations.size(); ++i)
      row.push_back(i < r.ablations.size()
                        ? fmt::format("{} / {}", signed_percent(r.ablations[i].step_error),
                                      percent(r.ablations[i].start_error))
                        : "–");
    table.add(std::move(row));
  }
  return table;
}

std::string exceptions(const ReplayAccuracy& accuracy) {
  std::string text;
  for (const RecordingAccuracy& r : accuracy.recordings) {
    std::vector<std::string> reasons;
    if (std::abs(r.plain.worst_error) > 0.01)
      reasons.push_back(fmt::format("a step is {} off", signed_percent(r.plain.worst_error)));
    if (r.plain.start_error > 0.005)
      reasons.push_back(
          fmt::format("device ops start {} of a step off", percent(r.plain.start_error)));
    if (reasons.empty()) continue;
    text += fmt::format(
        "- {}: {}{}; {} of its span are delays that no rule explains, and with them kept it is {} "
        "and {}.\n",
        r.name, reasons.front(), reasons.size() > 1 ? ", " + reasons.back() : "",
        percent(r.plain.residual_share), signed_percent(r.with_residuals.step_time.error()),
        percent(r.with_residuals.start_error));
  }
  return text.empty() ? "None.\n" : text;
}

}  // namespace

std::vector<SuiteSummary> summarize(const ReplayAccuracy& accuracy) {
  std::vector<double> errors;
  std::size_t covered = 0;
  for (const RecordingAccuracy& r : accuracy.recordings)
    for (const replay::StepComparison& step : r.whole_steps)
      for (const std::optional<replay::Pair>& pair : {step.host, step.device}) {
        if (!pair || !(pair->measured > Seconds::s(0))) continue;
        errors.push_back(pair->error());
        if (std::abs(pair->error()) <= replay::kReplayError) ++covered;
      }
  SuiteSummary replays = summary_of("replay", errors);
  // The constants of a replay are medians over the recording itself.
  replays.fitted_rows = errors.size();
  if (!errors.empty())
    replays.interval_coverage = static_cast<double>(covered) / static_cast<double>(errors.size());

  std::vector<double> pairs;
  for (const PairPrediction& p : accuracy.pairs) pairs.push_back(p.predicted / p.measured_mean - 1);
  SuiteSummary predicted = summary_of("replay-pairs", pairs);
  predicted.blind_rows = pairs.size();
  // No coverage: the width of the interval was chosen with these pairs in sight.
  return {replays, predicted};
}

Table recording_table(const ReplayAccuracy& accuracy) {
  Table table({{"recording", Align::kLeft},
               {"device", Align::kLeft},
               {"device ops"},
               {"whole steps"},
               {"measured step (ms)"},
               {"worst host error"},
               {"worst device error"},
               {"start error"},
               {"unexplained"},
               {"error with residuals"}});
  for (const RecordingAccuracy& r : accuracy.recordings)
    table.add({r.name, r.device, grouped(r.device_ops), fmt::format("{}", r.whole_steps.size()),
               range_of(r.whole_steps, &replay::Pair::measured),
               signed_percent(worst(r.whole_steps, false)),
               signed_percent(worst(r.whole_steps, true)), percent(r.plain.start_error),
               percent(r.plain.residual_share),
               signed_percent(r.with_residuals.step_time.error())});
  return table;
}

std::string accuracy_page(const ReplayAccuracy& accuracy) {
  std::string text =
      "\n## Replays\n\n"
      R"(A *replay* takes durations from the recording, gaps between marks of one thread, and medians
fitted on it. No op takes its start from it. *Host* is the period of the step marks, *device* the
period between the last device ops of steps. Steps cut by the recording are left out. The constants
come from the recording itself (fitted rows above), and the interval was set by such recordings too.

### Recording by recording, without residuals

*Start error* is the median distance of device ops from their recorded start in the step.
*Unexplained* are delays of device ops that no rule explains, as a share of the recording.

)" + recording_table(accuracy).markdown() +
      "\n#### Exceptions\n\n" + exceptions(accuracy) +
      R"(
### Perturbations

A baseline without error proves little, since gaps replayed as host work have none. This table scales
work and shows step times relative to the recorded ones. If nothing on the host waits for the device,
a slower device shows in the device period only.

)" + perturbation_table(accuracy).markdown() +
      R"(
### What each rule is worth

Error of the step time and start error, with one rule switched off. Without waits or hand-offs the
baseline hardly changes, because waiting is then replayed as work. The loss shows in the
[perturbations](concepts/replay.md).

)" + ablation_table(accuracy).markdown();
  if (!accuracy.couplings.empty()) {
    Table table({{"job", Align::kLeft},
                 {"rank made slow"},
                 {"its own lateness (us)"},
                 {"delay of the others (us)"},
                 {"implied by its arrivals (us)"}});
    for (const Coupling& c : accuracy.couplings)
      table.add({c.name, fmt::format("{}", c.rank), fmt::format("{:.0f}", c.own_lateness_us),
                 fmt::format("{:.0f}", c.others_delay_us),
                 fmt::format("{:.0f}", c.others_implied_us)});
    text +=
        R"(
### Ranks together

All ranks of a job run in one replay, with their collectives matched. The host work of one rank takes
twice as long. The table compares the delay of the other ranks' collectives (mean over all of them)
with the delay that follows from the definition of a collective: it ends when the last rank has
arrived and the data have moved.

)" + table.markdown();
    Table hidden({{"job", Align::kLeft}, {"hidden rank"}, {"error of its step"}});
    for (const HiddenRank& h : accuracy.hidden)
      hidden.add({h.name, fmt::format("{}", h.rank), signed_percent(h.step_error)});
    text +=
        R"(
One rank's collective times are hidden and predicted from those of the other ranks. If a rank often
arrives last, the waiting of the others counts as transfer.

)" + hidden.markdown();
  }
  if (!accuracy.pairs.empty()) {
    Table table({{"from", Align::kLeft},
                 {"edit", Align::kLeft},
                 {"to", Align::kLeft},
                 {"predicted (ms)"},
                 {"measured, mean (ms)"},
                 {"error"},
                 {"measured, median (ms)"},
                 {"error"},
                 {"outliers left out"}});
    const auto ms = [](Seconds s) { return fmt::format("{:.1f}", s.ms()); };
    for (const PairPrediction& p : accuracy.pairs)
      table.add({p.from, "--input-pipeline " + p.edit, p.to, ms(p.predicted), ms(p.measured_mean),
                 signed_percent(p.predicted / p.measured_mean - 1), ms(p.measured_median),
                 signed_percent(p.predicted / p.measured_median - 1),
                 fmt::format("{}", p.outliers)});
    text +=
        R"(
### One recording predicted from another

The mean is over whole steps within 25 % of their median, the median over all whole steps. The width
of the interval of what-ifs was chosen with such pairs in sight, so its coverage of them proves
nothing.

)" + table.markdown();
  }
  text += "\n### Not scored\n\nRead without error, but with no device work to predict:\n\n";
  for (const std::string& name : accuracy.without_device_work) text += fmt::format("- {}\n", name);
  for (const auto& [name, why] : accuracy.unreadable) text += fmt::format("- {}: {}\n", name, why);
  return text;
}

}  // namespace rehearse::cli
