#include "tests/validation/studies/gate_accuracy.h"

#include <array>
#include <cmath>

#include <fmt/core.h>

#include "cli/check/history.h"
#include "cli/check/run_store.h"
#include "profiler/compare/compare_runs.h"
#include "profiler/compare/pool.h"
#include "sim/base/check.h"
#include "sim/base/text.h"
#include "tests/support/compare_random.h"

namespace rehearse::cli {
namespace {

using compare::Random;
using compare::Verdict;

constexpr std::size_t kSteps = 20;
constexpr double kNoise = 0.01;
constexpr double kLimit = 0.03;
/// What the gate promises to find: at the limit itself, either verdict is as likely.
constexpr double kFound = 1.5 * kLimit;

/// Of mean 0 and standard deviation 1, except for what the name adds.
using Noise = std::vector<double> (*)(Random& random, std::size_t steps);

std::vector<double> resembling(Random& random, std::size_t steps, double r) {
  std::vector<double> values;
  double value = random.normal();
  for (std::size_t i = 0; i < steps; ++i) {
    values.push_back(value);
    value = r * value + std::sqrt(1 - r * r) * random.normal();
  }
  return values;
}

std::vector<double> normal(Random& random, std::size_t steps) {
  return resembling(random, steps, 0);
}
std::vector<double> persistent(Random& random, std::size_t steps) {
  return resembling(random, steps, 0.3);
}
std::vector<double> very_persistent(Random& random, std::size_t steps) {
  return resembling(random, steps, 0.6);
}
/// Student's with three degrees of freedom: the heaviest tails of finite variance.
std::vector<double> heavy(Random& random, std::size_t steps) {
  std::vector<double> values;
  for (std::size_t i = 0; i < steps; ++i) {
    double square = 0;
    for (int k = 0; k < 3; ++k) square += std::pow(random.normal(), 2);
    values.push_back(random.normal() / std::sqrt(square));
  }
  return values;
}
std::vector<double> skewed(Random& random, std::size_t steps) {
  const double e = std::exp(1.0);
  std::vector<double> values;
  for (std::size_t i = 0; i < steps; ++i)
    values.push_back((std::exp(random.normal()) - std::sqrt(e)) / std::sqrt((e - 1) * e));
  return values;
}
std::vector<double> outliers(Random& random, std::size_t steps) {
  std::vector<double> values = normal(random, steps);
  for (double& value : values)
    if (random.uniform() < 0.05) value += 30;
  return values;
}
std::vector<double> checkpoints(Random& random, std::size_t steps) {
  std::vector<double> values = normal(random, steps);
  for (std::size_t i = random.below(10); i < steps; i += 10) values[i] += 50;
  return values;
}

struct Kind {
  const char* name;
  Noise noise;
};
constexpr std::array<Kind, 7> kKinds = {{
    {"normal", normal},
    {"resembles the step before, r = 0.3", persistent},
    {"resembles the step before, r = 0.6", very_persistent},
    {"heavy tails (Student, 3)", heavy},
    {"skewed (log-normal)", skewed},
    {"one step in 20 takes 30 % longer", outliers},
    {"every tenth step takes 50 % longer", checkpoints},
}};

std::vector<double> steps_of(const std::vector<double>& noise, double level, double relative) {
  std::vector<double> steps;
  steps.reserve(noise.size());
  for (const double z : noise) steps.push_back(level * (1 + relative * z));
  return steps;
}

GateCase measure_case(const Kind& kind, double change, std::size_t pairs, std::uint64_t seed) {
  GateCase c{.noise = kind.name, .change = change, .pairs = pairs, .errors = {}};
  Random random(seed);
  for (std::size_t k = 0; k < pairs; ++k) {
    const auto baseline = steps_of(kind.noise(random, kSteps), 1, kNoise);
    const auto candidate = steps_of(kind.noise(random, kSteps), 1 + change, kNoise);
    const compare::Effect effect =
        compare::measure_effect(baseline, candidate, 1, {.seed = random.bits()});
    const Verdict verdict = compare::judge(effect, kLimit);
    c.failed += verdict == Verdict::kFail;
    c.passed += verdict == Verdict::kPass;
    c.covered += effect.low(0.05) <= change && change <= effect.high(0.05);
    c.errors.push_back((1 + effect.change) / (1 + change) - 1);
  }
  return c;
}

FewCase measure_few(std::size_t baseline, std::size_t candidate, double change, std::size_t pairs,
                    std::uint64_t seed) {
  FewCase c{.baseline = baseline, .candidate = candidate, .change = change, .pairs = pairs};
  Random random(seed);
  for (std::size_t k = 0; k < pairs; ++k) {
    const auto before = steps_of(normal(random, baseline), 1, kNoise);
    const auto after = steps_of(normal(random, candidate), 1 + change, kNoise);
    const Verdict verdict =
        compare::judge(compare::measure_effect(before, after, 1, {.seed = random.bits()}), kLimit);
    c.failed += verdict == Verdict::kFail;
    c.passed += verdict == Verdict::kPass;
  }
  return c;
}

StoreCase measure_store(std::size_t runs, double change, std::size_t count, std::uint64_t seed) {
  constexpr double kBetweenRuns = 0.005;
  StoreCase c{.runs = runs, .change = change, .count = count};
  Random random(seed);
  const auto make_run = [&](double level) {
    return compare::Run{
        .source = "made up",
        .ranks = 1,
        .devices = {},
        .steps_from = "",
        .step_time =
            steps_of(normal(random, kSteps), level * (1 + kBetweenRuns * random.normal()), kNoise)};
  };
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<KeptRun> store;
    for (std::size_t i = 0; i < runs; ++i) store.push_back(kept(make_run(1), "", kLimit));
    compare::EffectOptions options{.seed = random.bits()};
    const Result<Past> past = past_of("store", std::move(store), kLimit, options);
    REHEARSE_CHECK(past);
    const compare::Effect effect = compare::measure_effect(
        past->baseline->step_time, make_run(1 + change).step_time, 1, options);
    const Verdict verdict = compare::judge(effect, kLimit);
    c.failed += verdict == Verdict::kFail;
    c.passed += verdict == Verdict::kPass;
  }
  return c;
}

/// 40 ops of a step; the third may change, and each has noise of 3 %.
OpsCase measure_ops(double change, std::size_t pairs, std::uint64_t seed) {
  constexpr std::size_t kOps = 40, kChanged = 2;
  OpsCase c{.change = change, .pairs = pairs};
  Random random(seed);
  const auto make_run = [&](double of_changed) {
    compare::Run run{.source = "made up",
                     .ranks = 1,
                     .devices = {},
                     .steps_from = "",
                     .step_time = std::vector<double>(kSteps)};
    for (std::size_t op = 0; op < kOps; ++op) {
      const double level = (op == kChanged ? of_changed : 1) / static_cast<double>(kOps);
      compare::OpSlot slot{.kind = compare::OpKind::kKernel,
                           .name = fmt::format("op {}", op),
                           .from = {},
                           .layer = {},
                           .shapes = {},
                           .grid = {},
                           .calls = 1,
                           .times = steps_of(normal(random, kSteps), level, 0.03)};
      for (std::size_t s = 0; s < kSteps; ++s) run.step_time[s] += slot.times[s];
      run.slots.push_back(std::move(slot));
    }
    return run;
  };
  for (std::size_t k = 0; k < pairs; ++k) {
    const compare::Run baseline = make_run(1), candidate = make_run(1 + change);
    const auto compared = compare::compare_runs(baseline, candidate, {.seed = random.bits()});
    REHEARSE_CHECK(compared);  // else it would count as no false alarm
    bool wrong = false;
    for (const compare::OpChange& op : compared->ops) {
      const bool meant = op.name == fmt::format("op {}", kChanged) && change != 0;
      if (op.significant && !meant) wrong = true;
      if (op.significant && meant) ++c.found;
    }
    c.false_alarms += wrong;
  }
  return c;
}

HistoryCase measure_history(const char* name, Noise noise, std::size_t runs, double jump,
                            double drift, std::size_t count, std::uint64_t seed) {
  HistoryCase c{.series = name, .runs = runs, .count = count};
  Random random(seed);
  for (std::size_t k = 0; k < count; ++k) {
    const std::vector<double> levels = noise(random, runs);
    std::vector<HistoryEntry> series;
    for (std::size_t i = 0; i < runs; ++i) {
      const double part = static_cast<double>(i) / static_cast<double>(runs - 1);
      const double level = 1 + (2 * i >= runs ? jump : 0) + drift * part;
      series.push_back({"run", level * (1 + kNoise * levels[i])});
    }
    const Result<History> history = judge_history(series, kLimit);
    REHEARSE_CHECK(history);
    for (const CheckFinding& f : history->findings.judged) {
      if (f.verdict != Verdict::kFail) continue;
      c.jumps += f.name == "jump";
      c.drifts += f.name == "drift";
    }
    c.failed += history->findings.verdict == Verdict::kFail;
  }
  return c;
}

std::string share(std::size_t part, std::size_t whole) {
  return fmt::format("{:.2f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

Table ops_table(const GateAccuracy& accuracy) {
  Table table({{"change of one op in 40"}, {"pairs"}, {"a false alarm among them"}, {"found"}});
  for (const OpsCase& c : accuracy.ops)
    table.add({signed_percent(c.change), grouped(c.pairs), share(c.false_alarms, c.pairs),
               c.change != 0 ? share(c.found, c.pairs) : ""});
  return table;
}

Table few_table(const GateAccuracy& accuracy) {
  Table table({{"steps of the baseline"},
               {"of the candidate"},
               {"true change"},
               {"pairs"},
               {"fail"},
               {"pass"},
               {"inconclusive"}});
  for (const FewCase& c : accuracy.few)
    table.add({fmt::format("{}", c.baseline), fmt::format("{}", c.candidate),
               signed_percent(c.change), grouped(c.pairs), share(c.failed, c.pairs),
               share(c.passed, c.pairs), share(c.pairs - c.failed - c.passed, c.pairs)});
  return table;
}

Table store_table(const GateAccuracy& accuracy) {
  Table table(
      {{"accepted runs"}, {"true change"}, {"candidates"}, {"fail"}, {"pass"}, {"inconclusive"}});
  for (const StoreCase& c : accuracy.stores)
    table.add({fmt::format("{}", c.runs), signed_percent(c.change), grouped(c.count),
               share(c.failed, c.count), share(c.passed, c.count),
               share(c.count - c.failed - c.passed, c.count)});
  return table;
}

Table history_accuracy_table(const GateAccuracy& accuracy) {
  Table table({{"series", Align::kLeft},
               {"runs"},
               {"series judged"},
               {"fail"},
               {"told a jump"},
               {"told a drift"}});
  for (const HistoryCase& c : accuracy.histories)
    table.add({c.series, fmt::format("{}", c.runs), grouped(c.count), share(c.failed, c.count),
               share(c.jumps, c.count), share(c.drifts, c.count)});
  return table;
}

}  // namespace

GateAccuracy measure_gate_accuracy(std::size_t runs, std::uint64_t seed) {
  GateAccuracy accuracy;
  Random seeds(seed);
  for (const Kind& kind : kKinds)
    for (const double change : {0.0, kFound})
      accuracy.pairs.push_back(measure_case(kind, change, runs, seeds.bits()));
  for (const double change : {0.0, 0.1})
    accuracy.ops.push_back(measure_ops(change, runs / 5, seeds.bits()));
  const auto history = [&](const char* name, std::size_t count, double jump, double drift,
                           Noise noise = normal) {
    accuracy.histories.push_back(
        measure_history(name, noise, count, jump, drift, runs / 5, seeds.bits()));
  };
  history("no change", 10, 0, 0);
  history("no change", 30, 0, 0);
  history("a jump of 5 % in the middle", 30, 0.05, 0);
  history("a drift of 10 % from first to last", 30, 0, 0.1);
  history("no change, runs resemble the one before, r = 0.3", 30, 0, 0, persistent);
  for (const auto& [baseline, candidate] :
       {std::pair<std::size_t, std::size_t>{2, 2}, {2, 20}, {20, 2}, {5, 20}, {9, 9}, {12, 12}})
    for (const double change : {0.0, kFound})
      accuracy.few.push_back(measure_few(baseline, candidate, change, runs, seeds.bits()));
  for (const std::size_t in_store : {1, 5, 10, 20})
    for (const double change : {0.0, kFound})
      accuracy.stores.push_back(measure_store(in_store, change, runs / 2, seeds.bits()));
  return accuracy;
}

SuiteSummary summarize(const GateAccuracy& accuracy) {
  std::vector<double> errors;
  std::size_t covered = 0;
  for (const GateCase& c : accuracy.pairs) {
    errors.insert(errors.end(), c.errors.begin(), c.errors.end());
    covered += c.covered;
  }
  SuiteSummary summary = summary_of("check", errors);
  summary.interval_coverage = static_cast<double>(covered) / static_cast<double>(errors.size());
  summary.blind_rows = errors.size();
  return summary;
}

Table gate_accuracy_table(const GateAccuracy& accuracy) {
  Table table({{"noise of 1 %", Align::kLeft},
               {"true change"},
               {"pairs"},
               {"fail"},
               {"pass"},
               {"inconclusive"},
               {"in the 90 % interval"}});
  for (const GateCase& c : accuracy.pairs)
    table.add({c.noise, signed_percent(c.change), grouped(c.pairs), share(c.failed, c.pairs),
               share(c.passed, c.pairs), share(c.pairs - c.failed - c.passed, c.pairs),
               share(c.covered, c.pairs)});
  return table;
}

std::string gate_accuracy_text(const GateAccuracy& accuracy) {
  return gate_accuracy_table(accuracy).text() + "\n" + few_table(accuracy).text() + "\n" +
         ops_table(accuracy).text() + "\n" + store_table(accuracy).text() + "\n" +
         history_accuracy_table(accuracy).text();
}

std::string gate_section(const GateAccuracy& accuracy) {
  return fmt::format(
      R"(
## The gate

Generated pairs of runs with a known change, judged by `rehearse check`: {} steps on either side, and
the default limit of 3 %. Without a change, `fail` is a false alarm. At +4.5 %, which is 1.5 times the
limit, `pass` is a miss.

{}
The same with few steps and noise of 1 %:

{}
Ops whose times vary by 3 % from step to step:

{}
Stores of accepted runs whose levels vary by 0.5 % in addition to the noise of steps. With one run, two
recordings are compared:

{}
Histories of runs whose levels vary by 1 %:

{})",
      kSteps, gate_accuracy_table(accuracy).markdown(), few_table(accuracy).markdown(),
      ops_table(accuracy).markdown(), store_table(accuracy).markdown(),
      history_accuracy_table(accuracy).markdown());
}

}  // namespace rehearse::cli
