#include "tests/validation/studies/job_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace rehearse::cli {
namespace {

template <class Wanted>
std::vector<const JobPrediction*> rows_where(const JobCase& of, const Wanted& wanted) {
  std::vector<const JobPrediction*> rows;
  for (const JobPrediction& p : of.rows)
    if (wanted(p)) rows.push_back(&p);
  return rows;
}

SuiteSummary summary_of_jobs(std::string name, const std::vector<const JobPrediction*>& rows) {
  std::vector<double> errors;
  Intervals intervals;
  for (const JobPrediction* p : rows) {
    errors.push_back(p->error());
    intervals.add(p->measured, p->step);
  }
  SuiteSummary suite = summary_of(std::move(name), errors);
  intervals.summarize(suite);
  return suite;
}

std::vector<const JobPrediction*> worst_first(const JobAccuracy& accuracy) {
  std::vector<const JobPrediction*> all;
  for (const JobCase& each : accuracy.cases)
    for (const JobPrediction& p : each.rows) all.push_back(&p);
  std::stable_sort(all.begin(), all.end(), [](const JobPrediction* a, const JobPrediction* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  return all;
}

Table table_of(const std::vector<const JobPrediction*>& rows) {
  Table table({{"table", Align::kLeft},
               {"job", Align::kLeft},
               {"measured (s)"},
               {"predicted (s)"},
               {"interval (s)"},
               {"error (%)"},
               {"compute (s)"},
               {"recompute (s)"},
               {"exposed communication (s)"},
               {"bubble (s)"}});
  const auto seconds = [](Seconds time) { return fmt::format("{:.3f}", time.s()); };
  for (const JobPrediction* p : rows)
    table.add({p->table, p->name, seconds(p->measured), seconds(p->step.value),
               fmt::format("{:.3f} – {:.3f}", p->step.low.s(), p->step.high.s()),
               fmt::format("{:+.1f}", p->error() * 100),
               seconds(p->parts.compute - p->parts.recompute), seconds(p->parts.recompute),
               seconds(p->parts.exposed_communication), seconds(p->parts.bubble)});
  return table;
}

}  // namespace

std::vector<SuiteSummary> summarize(std::string_view suite_name, const JobAccuracy& accuracy) {
  std::vector<SuiteSummary> suites;
  for (const JobCase& each : accuracy.cases) {
    std::vector<const JobPrediction*> rows =
        rows_where(each, [](const JobPrediction& p) { return p.use != Use::kFitted; });
    const std::size_t blind = rows.size();
    if (rows.empty()) rows = rows_where(each, [](const JobPrediction&) { return true; });
    SuiteSummary suite = summary_of_jobs(fmt::format("{}/{}", suite_name, each.name), rows);
    suite.fitted_rows = each.rows.size() - blind;
    suite.blind_rows = blind;
    suites.push_back(std::move(suite));
  }
  return suites;
}

namespace {

/// The errors of each case, rows of each use apart.
Table case_table(const JobAccuracy& accuracy) {
  Table cases({{"case", Align::kLeft},
               {"constants", Align::kLeft},
               {"rows"},
               {"mean error (%)"},
               {"median (%)"},
               {"p90 (%)"},
               {"worst (%)"},
               {"bias (%)"},
               {"in the interval (%)"},
               {"median width (%)"}});
  const auto percent = [](double share) { return fmt::format("{:.1f}", share * 100); };
  for (const JobCase& each : accuracy.cases)
    for (const Use use : {Use::kFitted, Use::kRowLeftOut, Use::kSourceLeftOut}) {
      const auto rows = rows_where(each, [use](const JobPrediction& p) { return p.use == use; });
      if (rows.empty()) continue;
      const SuiteSummary suite = summary_of_jobs(each.name, rows);
      cases.add({each.name, std::string(kUseWords[static_cast<std::size_t>(use)]),
                 std::to_string(suite.rows), percent(suite.mean_error), percent(suite.median_error),
                 percent(suite.p90_error), fmt::format("{:+.1f}", suite.worst_error * 100),
                 fmt::format("{:+.1f}", suite.bias * 100),
                 fmt::format("{:.0f}", suite.interval_coverage.value_or(0) * 100),
                 fmt::format("{:.0f}", suite.interval_width.value_or(0) * 100)});
    }
  return cases;
}

/// What the predictions are worth to a user who takes one of the plans of a table.
std::string choice_section(const std::vector<PlanChoice>& choices) {
  Table table({{"table", Align::kLeft},
               {"groups"},
               {"plans"},
               {"tau"},
               {"regret, mean (%)"},
               {"worst (%)"},
               {"best of three, mean (%)"},
               {"worst (%)"},
               {"best in first five (%)"}});
  const auto percent = [](double share) { return fmt::format("{:.1f}", share * 100); };
  for (const PlanChoice& c : choices)
    table.add({c.name, std::to_string(c.groups), std::to_string(c.plans),
               c.tau ? fmt::format("{:.2f}", *c.tau) : "–", percent(c.regret),
               percent(c.worst_regret), percent(c.regret_of_three), percent(c.worst_of_three),
               fmt::format("{:.0f}", c.best_in_five * 100)});
  return R"(
### Plan choice

Plans of one model on equal GPUs, in one precision, release and period. *Tau* is Kendall's tau over
pairs within groups. *Regret* is the measured time of the plan predicted best relative to that of
the best plan, minus one. Fitted and blind rows are included.

)" + table.markdown();
}

}  // namespace

Table job_table(const JobAccuracy& accuracy) { return table_of(worst_first(accuracy)); }

std::string job_section(const JobAccuracy& accuracy) {
  std::string text =
      "\n## Whole jobs\n\n"
      R"(Step times of published training jobs, predicted from their configuration with closed forms.

Seven constants are fitted:

- the time of matrix products in jobs relative to benchmarks: 1.16 on A100 and 1.30 on H100;
- the share of the memory rate that elementwise kernels reach: 0.76 if they are fused, 0.52 for
  PyTorch's own;
- the share of the peak that MPT's Triton attention reaches on A100: 0.35, which also gives H100's;
- FP8 relative to half precision: 0.70;
- mixtures of experts relative to their kernels alone: 1.5.

They were chosen by hand on a coarse grid, from every fifth row of vTrain's table, every third of
MPT's and every second of NeMo's mixtures, and lie in a flat minimum. The factor of FP8 comes from
rows of Transformer Engine on H100. The shares of attention by generation (0.35 of FlashAttention-2
on H100, 0.50 of cuDNN's) and the factor 1.15 of mixtures with fused kernels were published or
recorded elsewhere. Two constants are set: 20 ms per step, and 1.2 for matrix products on other
devices.

All rows were in sight when the *forms* were chosen (what is fused, recomputed or hidden). *Blind*
therefore says only that no constant comes from the row. Intervals were set by rows of other sources
([decision 0055](decisions/0055-intervals-by-regime.md)).

In the column *constants*, *fitted* means that the row gave some constant, *left out by row* that
other rows of its source did, and *left out by source* that no row of its source did.

)";
  text += case_table(accuracy).markdown();
  text +=
      "\n- vtrain-multi: a quarter of the rows ran 8 to 49 % slower than their neighbours, in no "
      "column's order; no term is added to catch them.\n"
      "- sc21-table2/zero3: DeepSpeed of 2021, with a gather for each matrix that nothing "
      "overlaps.\n"
      "- experts: one configuration was published with 0.6 to 1.8 times the time of the release "
      "before it; the four worst rows, 1.6 to 2.4 times the time predicted, have microbatches of "
      "one sample, whose kernels wait for the host.\n"
      "- dlperf-gpt: on V100 nothing of a whole job was fitted.\n"
      "- dle, dlperf, lambda: one code, NVIDIA's examples. Batches of dle and its channels last in "
      "half "
      "precision are those of the recipes; the scripts of the others keep channels first.\n"
      "- nanotron: a quarter of the rows with a pipeline over nodes and three quarters of those "
      "above 32 nodes took 0.4 to 1.4 s a microbatch more than their neighbours.\n"
      "- bigscience: rows until 24 February are 15 % too short, on a single node too; the cause is "
      "not known.\n";
  text += choice_section(accuracy.choices);
  text += "\n### The worst rows\n\n";
  std::vector<const JobPrediction*> worst = worst_first(accuracy);
  constexpr std::size_t kShown = 30;
  if (worst.size() > kShown) worst.resize(kShown);
  text += table_of(worst).markdown();
  text += fmt::format("\n### Rows left out: {}\n\n", accuracy.left_out.size());
  for (const std::string& line : accuracy.left_out) text += "- " + line + "\n";
  return text;
}

std::string published_section(const JobAccuracy& accuracy) {
  std::string text =
      "\n## Jobs of public pages\n\n"
      R"(Tables of repositories and blogs. `tests/validation/published_jobs.csv` names the page of
each row. The rows were written before any was predicted; the decisions
[0161](decisions/0161-cards-with-halved-units.md) and
[0162](decisions/0162-jobs-of-public-pages.md) have the errors of that first prediction. Two laws were
then chosen with the rows of timm-3090 and gpt2-rented in sight, and the interval above 32 nodes with
the rows on as many. These rows count as fitted, although no constant was.

)";
  text += case_table(accuracy).markdown();
  text += "\n### All rows\n\n" + job_table(accuracy).markdown();
  for (const std::string& line : accuracy.left_out) text += "\nLeft out: " + line + "\n";
  return text;
}

std::string recalled_section(const JobAccuracy& accuracy) {
  std::string text =
      "\n## Recalled jobs\n\n"
      R"(Large jobs from papers. Their figures are recalled, and were not read again.
`tests/validation/recalled_jobs.csv` names the jobs, what each paper leaves open, and what was
assumed. No constant and no form was chosen by them, but the assumptions were made with the errors
in sight:

- MegaScale's rows are of Megatron-LM and are assumed to run without fused attention; with it they
  are predicted 10 to 22 % too fast.
- bloom and gpt-neox are assumed to use dropout; without it gpt-neox is 26 % too fast.

The rows with the largest errors ran DeepSpeed's pipeline (mt-nlg, bloom, glm-130b, gpt-neox).

)";
  text += case_table(accuracy).markdown();
  text += "\n### All rows\n\n" + job_table(accuracy).markdown();
  for (const std::string& line : accuracy.left_out) text += "\nLeft out: " + line + "\n";
  return text;
}

}  // namespace rehearse::cli
