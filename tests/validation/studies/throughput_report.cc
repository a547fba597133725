#include "tests/validation/studies/throughput_report.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// Rows of one way of predicting, all groups together, in the order of their first case.
std::vector<ThroughputCase> by_suite(const ThroughputAccuracy& accuracy) {
  std::vector<ThroughputCase> suites;
  for (const ThroughputCase& c : accuracy.cases) {
    auto suite = std::find_if(suites.begin(), suites.end(),
                              [&](const ThroughputCase& s) { return s.suite == c.suite; });
    if (suite == suites.end())
      suite = suites.insert(suites.end(), ThroughputCase{.suite = c.suite, .group = "all"});
    suite->rows.insert(suite->rows.end(), c.rows.begin(), c.rows.end());
    suite->fitted += c.fitted;
  }
  return suites;
}

SuiteSummary summarized(const ThroughputCase& rows) {
  std::vector<double> errors;
  double covered = 0;
  for (const ThroughputRow& r : rows.rows) {
    errors.push_back(r.error);
    covered += r.covered;
  }
  SuiteSummary summary = summary_of("throughput/" + rows.suite, errors);
  if (!rows.rows.empty())
    summary.interval_coverage = covered / static_cast<double>(rows.rows.size());
  summary.fitted_rows = rows.fitted;
  summary.blind_rows = rows.rows.size();
  return summary;
}

Table table_of(std::span<const ThroughputCase> cases) {
  Table table({{"from", Align::kLeft},
               {"rows of", Align::kLeft},
               {"rows"},
               {"fitted rows"},
               {"mean (%)"},
               {"median (%)"},
               {"p90 (%)"},
               {"worst (%)"},
               {"bias (%)"},
               {"in the interval (%)"}});
  for (const ThroughputCase& c : cases) {
    if (c.rows.empty()) continue;
    const SuiteSummary s = summarized(c);
    table.add({c.suite, c.group, grouped(s.rows), grouped(s.fitted_rows),
               fmt::format("{:.1f}", s.mean_error * 100),
               fmt::format("{:.1f}", s.median_error * 100),
               fmt::format("{:.1f}", s.p90_error * 100),
               fmt::format("{:+.1f}", s.worst_error * 100), fmt::format("{:+.1f}", s.bias * 100),
               fmt::format("{:.0f}", s.interval_coverage.value_or(0) * 100)});
  }
  return table;
}

/// The worst rows of each way of predicting.
Table worst_table(const ThroughputAccuracy& accuracy) {
  constexpr std::size_t kShown = 3;
  Table table({{"from", Align::kLeft}, {"row", Align::kLeft}, {"error (%)"}});
  for (ThroughputCase& suite : by_suite(accuracy)) {
    std::stable_sort(suite.rows.begin(), suite.rows.end(),
                     [](const ThroughputRow& a, const ThroughputRow& b) {
                       return std::abs(a.error) > std::abs(b.error);
                     });
    for (std::size_t i = 0; i < std::min(kShown, suite.rows.size()); ++i)
      table.add(
          {suite.suite, suite.rows[i].name, fmt::format("{:+.1f}", suite.rows[i].error * 100)});
  }
  return table;
}

}  // namespace

std::vector<SuiteSummary> summarize(const ThroughputAccuracy& accuracy) {
  std::vector<SuiteSummary> suites;
  for (const ThroughputCase& suite : by_suite(accuracy))
    if (!suite.rows.empty()) suites.push_back(summarized(suite));
  return suites;
}

Table throughput_table(const ThroughputAccuracy& accuracy) { return table_of(accuracy.cases); }

std::string throughput_section(const ThroughputAccuracy& accuracy) {
  std::string text =
      "\n## Whole jobs from a few measured steps\n\n"
      R"(No operation of these jobs is known, except for *the zoo*. The laws:
[operation costs](concepts/op-cost.md#whole-jobs-without-operations).

- *pollux*: steps of four jobs on four clusters (T4, A100, Quadro RTX 6000, RTX 2080 Ti), by batch and
  number of devices.
  - *A few steps of the job* are one device at its smallest, middle and largest batch, and the
    smallest batch on two devices of a node, two nodes, and three nodes with one device each.
  - *Links of other jobs*: the rates that the other jobs of the cluster imply, and the size of the
    job's gradients.
  - *The zoo and three steps*: BERT and ResNet-50 as described models, `rehearse calibrate job` on the
    three steps of one device, links of other jobs, and equal numbers of devices per node.
- *gavel*: steps of five jobs on K80 and V100, on 1 to 8 workers.
- *lambda*: throughputs of eight models on nine GPUs in two precisions, with every GPU of the same chip
  left out of all fits. GPUs that were measured only in servers are predicted as one of several.

)";
  text += table_of(by_suite(accuracy)).markdown();
  if (accuracy.shares)
    text += fmt::format(
        R"(
The shares of a job's time on A100 with which the rows of lambda differ least from one constant per
job are {:.2f} for arithmetic, {:.2f} for memory and {:.2f} for issue. These are the shipped shares.
)",
        accuracy.shares->arithmetic, accuracy.shares->memory, accuracy.shares->issue);
  text +=
      R"(
- The forms were chosen with all rows in sight. The intervals were set with the rows of the T4 cluster
  and of Lambda's benchmark.
- The time besides computing, up to 70 ms per step, comes from Megatron-LM; pollux would give 150 ms.
  The widening with more workers than were measured comes from collectives, not from gavel. The factor
  of two for GPUs before Turing was set with gavel in sight.
- *Declared links* and *nothing measured, more devices*: the network is declared as TCP of 50 Gbit/s,
  which is 6.25 GB/s. Between g4dn.12xlarge a ring gets 0.4 to 1.0 GB/s. The law takes two flows with
  the cloud's cap, 1.25 GB/s.
- *Nothing measured*: the precision is not stated. BERT is assumed to run in FP32, and ResNet-50 in half
  precision because its batches would not fit in a T4 otherwise. Input pipelines and additions of the
  framework (gradient statistics) are not known.
- *The zoo and three steps*: the time of a step besides computing is assumed not to overlap with the sum
  of gradients. Where it is host time, predictions for more devices are too slow (rtx imagenet). The
  fast end of the interval lets it overlap.
- rtx: single devices are measured unevenly (ncf takes 12 ms at batch 32, 20 ms at 91, and 15 ms at
  2051), and a fit on such rows has errors of the same size. aws_t4 ncf on 16 nodes with 3 devices each
  takes twice as long as with 2 or 4.
- gavel, one server: on V100 4 workers are slower than 2 and 8, as in another kind of server. On K80
  ResNet-18 takes 3.8 times as long at batch 128 as at 64, and on V100 Transformer takes 3.5 times as
  long at 256 as at 128. No law of batches has such steps.
- gavel, from the other device: V100 is 2.0 to 13 times as fast as K80, depending on job and batch.
- lambda: WaveGlow is as fast in FP32 as in half precision, so it counts as FP32 in both. One of several
  GPUs is predicted from the same number of GPUs of other chips, if those were measured.

### The worst rows from a few measured steps

)";
  text += worst_table(accuracy).markdown();
  text += "\n### Group by group\n\n";
  text += table_of(accuracy.cases).markdown();
  if (!accuracy.left_out.empty()) {
    text += "\nLeft out:\n\n";
    for (const std::string& line : accuracy.left_out) text += "- " + line + "\n";
  }
  return text;
}

}  // namespace rehearse::cli
