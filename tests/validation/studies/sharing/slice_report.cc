#include "tests/validation/studies/sharing/slice_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

SuiteSummary summarized(const SliceCase& c) {
  std::vector<double> errors;
  double covered = 0;
  for (const SliceRow& r : c.rows) {
    errors.push_back(r.error);
    covered += r.covered;
  }
  SuiteSummary summary = summary_of("sharing/" + c.name, errors);
  if (c.intervals && !c.rows.empty())
    summary.interval_coverage = covered / static_cast<double>(c.rows.size());
  const bool blind = c.name != "memory";
  summary.fitted_rows = c.fitted;
  summary.blind_rows = blind ? c.rows.size() : 0;
  return summary;
}

Table case_table(const SliceAccuracy& accuracy) {
  Table table({{"from", Align::kLeft},
               {"rows"},
               {"mean (%)"},
               {"within 10 % (%)"},
               {"bias (%)"},
               {"in the interval (%)"}});
  for (const SliceCase& c : accuracy.cases) {
    const SuiteSummary s = summarized(c);
    const auto near = std::count_if(c.rows.begin(), c.rows.end(),
                                    [](const SliceRow& r) { return std::abs(r.error) <= 0.1; });
    table.add({c.name, grouped(s.rows), fmt::format("{:.1f}", s.mean_error * 100),
               fmt::format("{:.0f}", 100.0 * static_cast<double>(near) /
                                         static_cast<double>(std::max<std::size_t>(s.rows, 1))),
               fmt::format("{:+.1f}", s.bias * 100),
               s.interval_coverage ? fmt::format("{:.0f}", *s.interval_coverage * 100) : "–"});
  }
  return table;
}

/// Mean errors of the cases that predict times, by what `key` says of a row.
Table table_by(const SliceAccuracy& accuracy, const std::string& heading,
               const std::function<std::string(const SliceRow&)>& key) {
  constexpr std::size_t kTimes = 6;  // the cases before memory
  const std::size_t cases = std::min(kTimes, accuracy.cases.size());
  std::vector<Column> columns = {{heading, Align::kLeft}};
  std::map<std::string, std::vector<std::pair<double, double>>>
      sums;  // of errors and rows, by case
  for (std::size_t c = 0; c < cases; ++c) {
    columns.push_back({accuracy.cases[c].name + " (%)"});
    for (const SliceRow& r : accuracy.cases[c].rows) {
      auto& of_key = sums[key(r)];
      of_key.resize(cases);
      of_key[c].first += std::abs(r.error);
      of_key[c].second += 1;
    }
  }
  Table table(columns);
  for (const auto& [name, of_key] : sums) {
    std::vector<std::string> row = {name};
    for (const auto& [error, rows] : of_key)
      row.push_back(rows > 0 ? fmt::format("{:.1f}", error / rows * 100) : "");
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

std::vector<SuiteSummary> summarize(const SliceAccuracy& accuracy) {
  std::vector<SuiteSummary> suites;
  for (const SliceCase& c : accuracy.cases)
    if (!c.rows.empty()) suites.push_back(summarized(c));
  return suites;
}

Table slice_table(const SliceAccuracy& accuracy) {
  constexpr std::size_t kShown = 4;
  Table table({{"from", Align::kLeft}, {"row", Align::kLeft}, {"error (%)"}});
  for (const SliceCase& c : accuracy.cases) {
    std::vector<SliceRow> rows = c.rows;
    std::stable_sort(rows.begin(), rows.end(), [](const SliceRow& a, const SliceRow& b) {
      return std::abs(a.error) > std::abs(b.error);
    });
    for (std::size_t i = 0; i < std::min(kShown, rows.size()); ++i)
      if (rows[i].error != 0)
        table.add({c.name, rows[i].name, fmt::format("{:+.1f}", rows[i].error * 100)});
  }
  return table;
}

std::string slice_section(const SliceAccuracy& accuracy) {
  const sharing::SliceConstants& c = accuracy.constants;
  const sharing::UnmeasuredConstants& u = accuracy.unmeasured.constants;
  std::string text =
      "\n## Slices of a GPU\n\n"
      R"(Steps and memory on MIG instances of A100: inference and fine-tuning of MIGProfiler on a server
with A100-40 and one with A100-80, and training jobs of MISO. Instances ran one at a time. The law:
[sharing](concepts/sharing.md#the-law-of-a-slice).

Two sets of rows are left out: MISO's deepspeech2, whose steps are a mixture, and sequences of 256 and
more on A100-80, where texts are shorter than the sequence.

)";
  text += case_table(accuracy).markdown() + "\n";
  for (const SliceCase& each : accuracy.cases)
    text += fmt::format("- *{}*: {}.\n", each.name, each.about);
  text += fmt::format(
      R"(
The constants of all jobs together are the shipped ones: α {:.2f} (FP32 matrix products), {:.2f}
(transformers in matrix units), {:.2f} (convolutions); β {:.2f} (inference), {:.2f} (training); κ {:.2f}.
Without a measurement: η {:.2f}, {:.2f}, {:.2f}; {:.1f} µs of GPU time per kernel; {:.0f} passes of the
optimizer. A kernel costs the two hosts {:.0f} and {:.0f} µs, and {:.2f} of that in training.
)",
      c.alpha[0], c.alpha[1], c.alpha[2], c.beta_inference, c.beta_training, c.kappa,
      u.efficiency[0], u.efficiency[1], u.efficiency[2], u.launch.us(), u.optimizer_passes,
      accuracy.unmeasured.hosts[0].us(),
      accuracy.unmeasured.hosts.size() > 1 ? accuracy.unmeasured.hosts[1].us() : 0.0,
      u.host_in_training);
  text += "\nMean errors by size of the slice, and by job:\n\n" +
          table_by(accuracy, "compute slices",
                   [](const SliceRow& r) { return r.profile.substr(0, r.profile.find('.')); })
              .markdown() +
          "\n" + table_by(accuracy, "job", [](const SliceRow& r) { return r.job; }).markdown();
  text +=
      R"(
- The forms were chosen with all rows in sight, the constants of each row without its job.
- The tables do not state the precision. It was inferred from the rates: FP32 for transformers on
  A100-80, TF32 elsewhere.
- Small batches of ResNet-50 on 1g of A100-80 take up to 1.7 times the time of their layers and
  launches, because kernels are shorter than one that fills the slice.
- Two jobs are wrongly predicted to run: moco at batch 16 on 1g and at 64 on 2g. They hold 71 and 84 %
  of the slice on 7g, and probably need workspaces for moments.

### The worst rows on slices

)";
  text += slice_table(accuracy).markdown();
  return text;
}

}  // namespace rehearse::cli
