#include "tests/validation/studies/pair_accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "models/sharing/pair_choice.h"
#include "sim/base/csv.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using sharing::MeasuredPair;
using sharing::PairLaw;
using sharing::Resident;

constexpr std::string_view kTable = "simulation";
/// A pair is predicted from those of the other nine tenths.
constexpr std::size_t kParts = 10;
constexpr std::size_t kFew = 20, kMore = 100;
constexpr std::size_t kChoices = 5;
constexpr double kGoalOfFew = 0.10, kGoalOfNone = 0.15;
constexpr const char* kAllOthers = "all other pairs";

/// Rates alone: gpu, job, batch.
using Alone = std::map<std::tuple<std::string, std::string, std::string>, double>;

double batch_of(const std::string& text) {
  return text.empty() ? 1 : std::strtod(text.c_str(), nullptr);
}

std::string name_of(const Resident& r) {
  return r.batch == 1 ? r.family : fmt::format("{} {:g}", r.family, r.batch);
}

void add_rows(PairCase& c, const PairLaw& law, const MeasuredPair& p) {
  const auto add = [&](const Resident& job, const Resident& other, double measured) {
    c.rows.push_back(
        {fmt::format("{} with {}", name_of(job), name_of(other)), law.share(job, other), measured});
  };
  add(p.a, p.b, p.share_a);
  add(p.b, p.a, p.share_b);
}

/// Neighbours in the table are of one family and have batches next to each other: parts are taken
/// across it.
std::size_t part_of(std::size_t pair) { return pair * 7919 % kParts; }

PairCase all_others(const PairTable& table, std::optional<double> goal) {
  PairCase c{.gpu = table.gpu, .from = kAllOthers, .goal = goal};
  for (std::size_t part = 0; part < kParts; ++part) {
    std::vector<MeasuredPair> known;
    for (std::size_t i = 0; i < table.pairs.size(); ++i)
      if (part_of(i) != part) known.push_back(table.pairs[i]);
    const PairLaw law(known);
    for (std::size_t i = 0; i < table.pairs.size(); ++i)
      if (part_of(i) == part) add_rows(c, law, table.pairs[i]);
    c.fitted = known.size();
  }
  return c;
}

/// All pairs of the table but those known, from those.
void predict_others(PairCase& c, const PairTable& table, const std::vector<std::size_t>& known) {
  std::vector<MeasuredPair> pairs;
  std::vector<bool> is_known(table.pairs.size(), false);
  for (const std::size_t i : known) {
    is_known[i] = true;
    pairs.push_back(table.pairs[i]);
  }
  const PairLaw law(pairs);
  for (std::size_t i = 0; i < table.pairs.size(); ++i)
    if (!is_known[i]) add_rows(c, law, table.pairs[i]);
}

/// Several choices of few pairs, far apart in the table; all others are predicted.
PairCase from_few(const PairTable& table) {
  PairCase c{.gpu = table.gpu,
             .from = fmt::format("{} pairs across the table", kFew),
             .goal = kGoalOfFew,
             .fitted = kFew};
  const std::size_t stride = table.pairs.size() / kFew;
  for (std::size_t first = 0; first < std::min(stride, kChoices); ++first) {
    std::vector<std::size_t> known;
    for (std::size_t k = 0; k < kFew; ++k) known.push_back(first + k * stride);
    predict_others(c, table, known);
  }
  return c;
}

/// Several choices of those that say most, each without a tenth of the table to choose from.
PairCase from_chosen(const PairTable& table, std::size_t count, std::optional<double> goal) {
  PairCase c{.gpu = table.gpu,
             .from = fmt::format("{} pairs chosen", count),
             .goal = goal,
             .fitted = count};
  for (std::size_t part = 0; part < kChoices; ++part) {
    std::vector<sharing::JobPair> pairs;
    std::vector<std::size_t> known;
    for (std::size_t i = 0; i < table.pairs.size(); ++i)
      if (part_of(i) != part) {
        pairs.emplace_back(table.pairs[i].a, table.pairs[i].b);
        known.push_back(i);
      }
    std::vector<std::size_t> chosen;
    for (const std::size_t i : sharing::pairs_to_measure(pairs, count)) chosen.push_back(known[i]);
    predict_others(c, table, chosen);
  }
  return c;
}

/// What pairs of another type of GPU say.
PairCase from_another(const PairTable& table, const PairTable& other) {
  PairCase c{.gpu = table.gpu,
             .from = fmt::format("no pair, but {}'s", other.gpu),
             .goal = kGoalOfNone,
             .fitted = other.pairs.size()};
  const PairLaw law(other.pairs);
  for (const MeasuredPair& p : table.pairs) add_rows(c, law, p);
  return c;
}

PairCase from_none(const PairTable& table) {
  PairCase c{.gpu = table.gpu, .from = "no pair", .goal = kGoalOfNone};
  const PairLaw law;
  for (const MeasuredPair& p : table.pairs) add_rows(c, law, p);
  return c;
}

SuiteSummary summarized(const PairCase& c) {
  std::vector<double> errors;
  for (const PairRow& r : c.rows) errors.push_back(r.error());
  SuiteSummary s = summary_of(fmt::format("pairs/{}, {}", c.gpu, c.from), errors);
  s.fitted_rows = 0;
  s.blind_rows = c.rows.size();
  return s;
}

}  // namespace

Result<std::vector<PairTable>> read_pairs(const fs::path& folder) {
  const CsvTable alone = TRY(CsvTable::load(folder / "isolated.csv"));
  TRY(alone.require({"file", "gpu", "gpus_on_one_server", "job", "batch_size_per_gpu", "num_gpus",
                     "steps_per_s"}));
  const CsvTable together = TRY(CsvTable::load(folder / "colocated.csv"));
  TRY(together.require({"file", "gpu", "gpus_on_one_server", "job", "batch_size_per_gpu",
                        "num_gpus", "other_job", "other_batch", "other_num_gpus", "steps_per_s",
                        "other_steps_per_s"}));
  const auto one_gpu = [](const CsvTable& table, std::size_t row) {
    return table.cell(row, "file") == kTable && table.cell(row, "gpus_on_one_server") == "yes" &&
           table.cell(row, "num_gpus") == "1";
  };
  Alone rates;
  for (std::size_t row = 0; row < alone.rows(); ++row) {
    if (!one_gpu(alone, row)) continue;
    const std::optional<double> rate = TRY(alone.number(row, "steps_per_s"));
    const auto cell = [&](std::string_view column) { return std::string(alone.cell(row, column)); };
    rates[{cell("gpu"), cell("job"), cell("batch_size_per_gpu")}] = rate.value_or(0);
  }
  std::map<std::string, PairTable> tables;
  std::map<std::string, std::map<std::pair<std::string, std::string>, bool>> seen;
  for (std::size_t row = 0; row < together.rows(); ++row) {
    if (!one_gpu(together, row) || together.cell(row, "other_num_gpus") != "1") continue;
    const auto cell = [&](std::string_view column) {
      return std::string(together.cell(row, column));
    };
    const std::string gpu = cell("gpu");
    const std::string a = cell("job") + " " + cell("batch_size_per_gpu"),
                      b = cell("other_job") + " " + cell("other_batch");
    if (!seen[gpu].emplace(std::minmax(a, b), true).second) continue;
    PairTable& table = tables.try_emplace(gpu, PairTable{gpu}).first->second;
    const auto rate_a = TRY(together.number(row, "steps_per_s")),
               rate_b = TRY(together.number(row, "other_steps_per_s"));
    const double alone_a = rates[{gpu, cell("job"), cell("batch_size_per_gpu")}],
                 alone_b = rates[{gpu, cell("other_job"), cell("other_batch")}];
    const double together_a = rate_a.value_or(0), together_b = rate_b.value_or(0);
    if (!(alone_a > 0 && alone_b > 0 && together_a > 0 && together_b > 0)) {
      ++table.left_out;
      continue;
    }
    table.pairs.push_back(
        {{cell("job"), batch_of(cell("batch_size_per_gpu")), Seconds::s(1 / alone_a)},
         {cell("other_job"), batch_of(cell("other_batch")), Seconds::s(1 / alone_b)},
         together_a / alone_a,
         together_b / alone_b});
  }
  std::vector<PairTable> list;
  list.reserve(tables.size());
  for (auto& [gpu, table] : tables) list.push_back(std::move(table));
  return list;
}

Result<std::vector<sharing::ShippedPairs>> fit_shipped_pairs(const fs::path& data) {
  const std::vector<PairTable> tables = TRY(read_pairs(data / "gavel-throughputs"));
  std::vector<sharing::ShippedPairs> all;
  for (const PairTable& table : tables) {
    const bool k80 = table.gpu == "k80";
    if (!k80 && table.gpu != "v100") continue;
    sharing::ShippedPairs pairs{
        .device = k80 ? "k80" : "v100_sxm2_16",
        .source = fmt::format("Gavel's throughputs of pairs on {}, simulation_throughputs.json of "
                              "stanford-futuredata/gavel c4fa400",
                              k80 ? "K80" : "V100"),
        .rows_used = "all pairs that fit, each once",
        .date = "2026-11",
        .rows = 2 * table.pairs.size(),
        .left_out = summarized(all_others(table, std::nullopt)).mean_error,
        .law = std::make_shared<PairLaw>(table.pairs)};
    if (!k80) pairs.also = {"v100_sxm2_32", "v100_pcie_16", "v100_pcie_32"};
    pairs.step_from = pairs.step_to = table.pairs.front().a.step;
    for (const MeasuredPair& p : table.pairs)
      for (const Resident* r : {&p.a, &p.b}) {
        pairs.step_from = std::min(pairs.step_from, r->step);
        pairs.step_to = std::max(pairs.step_to, r->step);
      }
    all.push_back(std::move(pairs));
  }
  return all;
}

Result<PairAccuracy> measure_pair_accuracy(const fs::path& data) {
  PairAccuracy accuracy;
  const fs::path folder = data / "gavel-throughputs";
  if (!fs::exists(folder / "colocated.csv") || !fs::exists(folder / "isolated.csv"))
    return accuracy;
  const std::vector<PairTable> tables = TRY(read_pairs(folder));
  for (const PairTable& table : tables) {
    accuracy.left_out.push_back(fmt::format("{}: {} that did not fit, or have no rate alone",
                                            table.gpu, counted(table.left_out, "pair")));
    if (table.pairs.size() < 2 * kFew) continue;
    accuracy.cases.push_back(all_others(table, table.gpu == "k80" ? 0.045 : 0.12));
    accuracy.cases.push_back(from_chosen(table, kMore, std::nullopt));
    accuracy.cases.push_back(from_chosen(table, kFew, kGoalOfFew));
    accuracy.cases.push_back(from_few(table));
    for (const PairTable& other : tables)
      if (other.gpu != table.gpu) accuracy.cases.push_back(from_another(table, other));
    accuracy.cases.push_back(from_none(table));
  }
  return accuracy;
}

std::vector<SuiteSummary> summarize(const PairAccuracy& accuracy) {
  std::vector<SuiteSummary> suites;
  for (const PairCase& c : accuracy.cases) suites.push_back(summarized(c));
  return suites;
}

Table pair_table(const PairAccuracy& accuracy) {
  Table table({{"GPU", Align::kLeft},
               {"from", Align::kLeft},
               {"pairs used"},
               {"rows"},
               {"mean (%)"},
               {"median (%)"},
               {"p90 (%)"},
               {"bias (%)"},
               {"goal (%)"},
               {"met", Align::kLeft}});
  for (const PairCase& c : accuracy.cases) {
    const SuiteSummary s = summarized(c);
    table.add({c.gpu, c.from, grouped(c.fitted), grouped(s.rows),
               fmt::format("{:.1f}", s.mean_error * 100),
               fmt::format("{:.1f}", s.median_error * 100),
               fmt::format("{:.1f}", s.p90_error * 100), fmt::format("{:+.1f}", s.bias * 100),
               c.goal ? fmt::format("{:g}", *c.goal * 100) : "–",
               !c.goal                   ? "–"
               : s.mean_error <= *c.goal ? "yes"
                                         : "no"});
  }
  return table;
}

std::string pair_section(const PairAccuracy& accuracy) {
  std::string text =
      "\n## Two jobs on one GPU\n\n"
      R"(The share of its speed that a job keeps when another job uses the same GPU without partitions: pairs
of Gavel's jobs on K80 and V100, against each job alone. A pair counts once, regardless of the order of
its jobs, and both of its rows are left out together. The law:
[two jobs on one GPU](concepts/two-jobs.md).

- *All other pairs*: ten parts, each predicted from the other nine.
- *Chosen*: the pairs that reduce uncertainty most according to the law, without their measurements;
  five choices, each without another tenth of the table.
- *Across the table*: five choices of 20 pairs at equal distances.
- *No pair, but another GPU's*: the law of that GPU.
- *No pair*: time slicing alone. Its two constants were chosen with K80's pairs in sight, so that row of
  K80 is not blind.

)" + pair_table(accuracy).markdown() +
      "\nWorst rows from all other pairs:\n\n";
  Table worst({{"GPU", Align::kLeft},
               {"row", Align::kLeft},
               {"predicted share"},
               {"measured share"},
               {"error"}});
  for (const PairCase& c : accuracy.cases) {
    if (c.from != kAllOthers) continue;
    std::vector<PairRow> rows = c.rows;
    std::stable_sort(rows.begin(), rows.end(), [](const PairRow& a, const PairRow& b) {
      return std::abs(a.error()) > std::abs(b.error());
    });
    for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 4); ++i)
      worst.add({c.gpu, rows[i].name, significant(rows[i].predicted), significant(rows[i].measured),
                 signed_percent(rows[i].error())});
  }
  text += worst.markdown() + "\nLeft out:\n\n" + list_of(accuracy.left_out);
  return text;
}

}  // namespace rehearse::cli
