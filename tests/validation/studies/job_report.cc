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
  SuiteSummary suite = summary_of(std::move(name), std::move(errors));
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
  return "\n### Plan choice\n\nPlans of one model on equal GPUs, in one precision, release and "
         "period. *Tau*: Kendall's, of pairs within groups. *Regret*: the measured time of the "
         "plan predicted best, over that of the best one. Rows of every use.\n\n" +
         table.markdown();
}

}  // namespace

Table job_table(const JobAccuracy& accuracy) { return table_of(worst_first(accuracy)); }

std::string job_section(const JobAccuracy& accuracy) {
  std::string text =
      "\n## Whole jobs\n\n"
      "Step times of published training jobs, predicted from their configuration with closed "
      "forms. "
      "Seven constants are fitted: time of matrix products against benchmarks (A100 1.16, H100 "
      "1.30), share of the memory rate of fused and of PyTorch's own elementwise kernels (0.76, "
      "0.52), share of the peak of MPT's Triton attention on A100 (0.35, from which H100's "
      "follows), "
      "FP8 against half precision (0.70), mixtures of experts against their kernels alone (1.5). "
      "They were chosen "
      "by hand on a coarse grid, by every fifth row of vTrain's table, every third of MPT's and "
      "every second of NeMo's mixtures, where they lie in a flat minimum; the FP8 factor by rows "
      "of Transformer Engine on H100. Published or recorded elsewhere are shares of attention by "
      "generation (0.35 of FlashAttention-2 on H100, 0.50 of cuDNN's) and 1.15 of mixtures whose "
      "kernels are fused. 20 ms per step, and 1.2 for matrix products on other devices, are set. "
      "All rows were in sight while the *forms* (what is fused, recomputed, hidden) were chosen, "
      "and intervals were set by rows of other sources (docs/decisions/0055): *blind* says only that "
      "no constant comes from the row. *Constants*: *fitted*, the row gave some; "
      "*left out by row*, other rows of its source did; *left out by source*, nothing of its "
      "source did.\n\n";
  text += case_table(accuracy).markdown();
  text +=
      "\n- vtrain-multi: a quarter of the rows ran 8 to 49 % slower than their neighbours, in no "
      "column's order; no term is added to catch them.\n"
      "- sc21-table2/zero3: DeepSpeed of 2021, which waited for its communication; here it hides.\n"
      "- experts: one configuration was published with 0.6 to 1.8 times the time of the release "
      "before it; the four worst rows, 1.9 to 2.3 times the time predicted, have microbatches of "
      "one sample, whose kernels wait for the host.\n"
      "- dlperf-gpt: on V100 nothing of a whole job was fitted.\n"
      "- nanotron: a quarter of the rows with a pipeline over nodes and three quarters of those "
      "above 32 nodes took 0.4 to 1.4 s a microbatch more than their neighbours.\n"
      "- bigscience: the network (Omni-Path) and a blocking host are not in the constants.\n";
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

std::string recalled_section(const JobAccuracy& accuracy) {
  std::string text =
      "\n## Recalled jobs\n\n"
      "Large jobs from papers, recalled (`tests/validation/recalled_jobs.csv` names them, "
      "with what each leaves open and was assumed), not read again. No constant or form was chosen "
      "by them. What was assumed was in sight of the errors: MegaScale's rows are of Megatron-LM, "
      "taken for one without fused attention, since with it they are predicted 10 to 22 % too "
      "fast; bloom and gpt-neox with dropout, without which gpt-neox is 26 % too fast. The rows "
      "that miss most ran DeepSpeed's pipeline (mt-nlg, bloom, glm-130b, "
      "gpt-neox).\n\n";
  text += case_table(accuracy).markdown();
  text += "\n### All rows\n\n" + job_table(accuracy).markdown();
  for (const std::string& line : accuracy.left_out) text += "\nLeft out: " + line + "\n";
  return text;
}

}  // namespace rehearse::cli
