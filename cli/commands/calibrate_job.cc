// rehearse calibrate job: fit conditions to measured steps.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "cli/commands/options.h"
#include "cli/config/job_file.h"
#include "cli/output/document.h"
#include "models/comm/slower_links.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"
#include "strategies/step/fit_factors.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

using step::ByFactor, strategies::Plan, strategies::Training;

struct NextMeasurement {
  std::string change;  ///< for people: "microbatch 4"
  Seconds step = Seconds::s(0);
  step::Information information = {};
};

struct Neighbour {
  std::string change;
  Training training;
  Plan plan;
};

/// Plans on as many ranks that change the work per launch, or what crosses the network.
std::vector<Neighbour> neighbours_of(const Training& training, const Plan& plan) {
  std::vector<Neighbour> all;
  for (const double factor : {4., 2., 0.5}) {
    Training other = training;
    other.microbatch *= factor;
    if (other.microbatch >= 1)
      all.push_back({fmt::format("microbatch {:g}", other.microbatch), other, plan});
  }
  if (!plan.stages.empty()) return all;
  const auto trade = [&](std::uint32_t Plan::*less, std::uint32_t Plan::*more) {
    if (plan.*less % 2 != 0) return;
    Plan other = plan;
    other.*less /= 2;
    other.*more *= 2;
    all.push_back(
        {fmt::format("tensor {}, pipeline {}, data {}", other.tensor, other.pipeline, other.data),
         training, other});
  };
  for (std::uint32_t Plan::*less : {&Plan::tensor, &Plan::pipeline, &Plan::data})
    for (std::uint32_t Plan::*more : {&Plan::tensor, &Plan::pipeline, &Plan::data})
      if (less != more) trade(less, more);
  return all;
}

cluster::Cluster with_factor(const cluster::Cluster& cluster, const ByFactor<double>& factors) {
  if (factors[2] == 1 || cluster.nodes().size() < 2) return cluster;
  return comm::with_slower_links(cluster, {.between = factors[2]});
}

/// The job with factors on the parts of its step, except for the network.
step::Spec with_factors(const step::Spec& spec, const ByFactor<double>& factors) {
  step::Spec with = spec;
  const auto apply = [&](step::Conditions& conditions) {
    conditions.scale *= factors[0];
    conditions.host_scale *= factors[1];
    conditions.network_scale *= factors[2];
    conditions.fixed = conditions.fixed * factors[3];
  };
  apply(with.conditions);
  for (auto& [device, conditions] : with.conditions_on) apply(conditions);
  return with;
}

Result<Seconds> step_with(const JobFile& job, const ByFactor<double>& factors) {
  const step::Step step =
      TRY(step::predict(with_factors(job.spec, factors), with_factor(job.cluster, factors),
                        {.value_only = true, .timeline = false}));
  return step.time.value;
}

/// At most three plans that differ from the job in one respect and fit into memory: those that say
/// most, for each factor the best one, the best first. Steps are predicted by closed forms. A plan
/// whose step would lower the variance of the fit there by less than a tenth is left out.
Result<std::vector<NextMeasurement>> measure_next(const JobFile& job, const step::FactorFit& fit,
                                                  const Progress& progress) {
  constexpr std::size_t kMost = 3;
  constexpr double kLeastRatio = 0.1;
  const cluster::Cluster cluster = with_factor(job.cluster, fit.factors);
  std::vector<NextMeasurement> found;
  std::vector<Neighbour> neighbours = neighbours_of(job.spec.training, job.spec.plan);
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    if (!progress(static_cast<double>(i) / static_cast<double>(neighbours.size())))
      return fail("interrupted");
    Neighbour& neighbour = neighbours[i];
    step::Spec spec = with_factors(job.spec, fit.factors);
    spec.training = neighbour.training;
    spec.plan = std::move(neighbour.plan);
    const Result<step::Step> step = step::predict(
        spec, cluster,
        {.fidelity = step::Fidelity::kClosed, .counterfactuals = false, .timeline = false});
    if (!step || step->memory.empty() || memory::fullest(step->memory).fit != memory::Fit::kFits)
      continue;
    const step::Information information = step::information_of(
        fit, step::shares_of(*step, spec.conditions, cluster.nodes().size() > 1));
    if (information.ratio > kLeastRatio)
      found.push_back({neighbour.change, step->time.value, information});
  }
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) {
    return a.information.ratio > b.information.ratio;
  });
  std::vector<NextMeasurement> best;
  for (NextMeasurement& next : found)
    if (best.size() < kMost && std::ranges::none_of(best, [&](const auto& other) {
          return other.information.factor == next.information.factor;
        }))
      best.push_back(std::move(next));
  return best;
}

struct CalibrateJobOptions {
  std::string job;
  std::vector<std::string> measured;
};

/// The contents of a calibration: the rows that it came from and the fitted factors.
struct Calibrated {
  std::vector<step::MeasuredStep> rows;
  std::vector<std::uint32_t> ranks;
  std::vector<std::string> regimes;  ///< of the rows
  step::Conditions conditions;       ///< with the fitted factors
  step::FactorFit fit;
  std::vector<NextMeasurement> next;
};

constexpr std::string_view kPartWords[] = {"computing", "launches of the host",
                                           "messages between nodes", "fixed time"};

/// The fit gives a row little weight: no factor on a part of the step explains it.
std::vector<Warning> warnings_of(const Calibrated& c) {
  constexpr double kLeastWeight = 0.4;  // three times the error of a row
  std::vector<Warning> warnings;
  for (std::size_t i = 0; i < c.rows.size(); ++i)
    if (c.fit.weights[i] < kLeastWeight)
      warnings.push_back(
          {fmt::format("{}: measured {}, and the fit predicts {}: no plausible factor explains the "
                       "difference, so that the row counts little",
                       c.rows[i].name, to_string(c.rows[i].measured),
                       to_string(c.fit.predicted[i])),
           "check that the file describes the job that was measured, and measure it again: single "
           "runs stall; or measure other plans of the job"});
  return warnings;
}

/// "1.94s" of the job of the command line, or "JOB.yaml=1.94s" of another.
Result<std::pair<std::string, Seconds>> measurement_of(const CalibrateJobOptions& options,
                                                       const std::string& text) {
  const std::size_t sign = text.rfind('=');
  const bool paired = sign != std::string::npos;
  const std::string job = paired ? text.substr(0, sign) : options.job;
  const std::string value = paired ? text.substr(sign + 1) : text;
  const Result<Seconds> time = parse_quantity<Seconds>(value);
  if (!time) {
    Error error = time.error();
    for (Diagnostic& d : error.diagnostics) d.key = "--measured";
    return tl::unexpected(std::move(error));
  }
  if (!(*time > Seconds::s(0)))
    return fail(Diagnostic{.key = "--measured",
                           .problem = fmt::format("'{}' is not a step time", value),
                           .expected = "a time above zero"});
  return std::pair{job, *time};
}

/// The interval that holds both.
void widen(program::Interval& interval, const program::Interval& other) {
  interval.low = std::min(interval.low, other.low);
  interval.high = std::max(interval.high, other.high);
}

Result<Calibrated> calibrate(const CalibrateJobOptions& options, const Progress& progress) {
  std::vector<JobFile> jobs;
  Calibrated c;
  ByFactor<program::Interval> before = {};
  for (const std::string& text : options.measured) {
    const auto measurement = TRY(measurement_of(options, text));
    JobFile file = TRY(load_job(measurement.first));
    if (file.input)
      return fail(Diagnostic{
          .file = measurement.first,
          .key = "input",
          .problem = "the measured step may include input stalls, so it cannot calibrate compute",
          .expected = "a step measured without input stalls, and a job without `input`"});
    const step::Step step = TRY(in_file(
        measurement.first, step::predict(file.spec, file.cluster, {.counterfactuals = false})));
    const step::StepParts parts = step::parts_of(step, file.spec, file.cluster);
    for (std::size_t k = 0; k < step::kFactors; ++k) widen(before[k], parts.before[k]);
    c.rows.push_back({.name = measurement.first,
                      .measured = measurement.second,
                      .at_peak = step.hardware_flops / step.peak,
                      .regime = step::unexplained(parts)});
    c.ranks.push_back(step.layout.ranks());
    if (std::ranges::find(c.regimes, step.regime.name) == c.regimes.end())
      c.regimes.emplace_back(step.regime.name);
    jobs.push_back(std::move(file));
  }
  c.fit = TRY(step::fit_factors(
      c.rows, before, [&](std::size_t row, const ByFactor<double>& factors) -> Result<Seconds> {
        return step_with(jobs[row], factors);
      }));
  c.conditions = with_factors(jobs.front().spec, c.fit.factors).conditions;
  c.next = TRY(measure_next(jobs.front(), c.fit, progress));
  return c;
}

std::string to_yaml(const Calibrated& c) {
  const step::Conditions& conditions = c.conditions;
  std::string text = fmt::format(
      "sustained:\n  scale: {:.4f}\n  host_scale: {:.4f}\n  network_scale: {:.4f}\n"
      "  fixed: {:.6g} s\n  interval:\n",
      conditions.scale, conditions.host_scale, conditions.network_scale, conditions.fixed.s());
  const auto add = [&](std::string_view name, const program::Interval& interval) {
    text += fmt::format("    {}: [{:.3f}, {:.3f}]\n", name, interval.low, interval.high);
  };
  for (std::size_t k = 0; k < step::kFactors; ++k) add(step::kFactorNames[k], c.fit.after[k]);
  add("step", step::kStepError);
  text += "  regimes:\n";
  for (const std::string& regime : c.regimes)
    text += fmt::format("    - {}\n", yaml_quoted(regime));
  text += fmt::format("  source: {}\nmeasured:\n  residual: {:.4f}\n  rows:\n",
                      yaml_quoted(fmt::format("rehearse calibrate job: {}",
                                              counted(c.rows.size(), "measured step"))),
                      c.fit.residual);
  for (std::size_t i = 0; i < c.rows.size(); ++i)
    text += fmt::format("    - {{job: {}, ranks: {}, measured: {} s, predicted: {:.6g} s}}\n",
                        yaml_quoted(c.rows[i].name), c.ranks[i], c.rows[i].measured.s(),
                        c.fit.predicted[i].s());
  return text;
}

Value factor_rows(const step::FactorFit& fit) {
  Value rows = Value::array();
  const auto around = [](double middle, const program::Interval& interval) {
    return fmt::format("{:.2f} – {:.2f}", middle * interval.low, middle * interval.high);
  };
  for (std::size_t k = 0; k < step::kFactors; ++k)
    rows.push_back({{"part", "part", kPartWords[k]},
                    {"factor", "factor", factor(fit.factors[k])},
                    {"low", fit.factors[k] * fit.after[k].low},
                    {"high", fit.factors[k] * fit.after[k].high},
                    {"before_low", fit.before[k].low},
                    {"before_high", fit.before[k].high},
                    {"", "90 % interval", around(fit.factors[k], fit.after[k])},
                    {"", "before", around(1, fit.before[k])}});
  return rows;
}

Value next_rows(const Calibrated& c) {
  Value rows = Value::array();
  for (const NextMeasurement& next : c.next)
    rows.push_back({{"plan", "plan", next.change},
                    {"step_time", "step time", next.step},
                    {"decides", "narrows most",
                     kPartWords[static_cast<std::size_t>(next.information.factor)]}});
  return rows;
}

Document document_of(const Calibrated& c, const Globals& globals) {
  Document d{
      .command = "calibrate", .rows = "jobs", .methods = {Method::kMessages, Method::kClosed}};
  d.line(fmt::format("factors on the parts of a step from {}, residual {:.2f} %",
                     counted(c.rows.size(), "measured step"), c.fit.residual * 100));
  d["rows"] = c.rows.size();
  d["residual"] = c.fit.residual;
  d["scale"] = c.conditions.scale;
  d["fastest"] = c.fit.after[0].low;
  d["slowest"] = c.fit.after[0].high;
  d["fixed_s"] = c.conditions.fixed.s();
  d["envelope"] = {{"ranks", c.ranks}};
  d.show("factors", "Factors", factor_rows(c.fit));
  d["jobs"] = Value::array();
  for (std::size_t i = 0; i < c.rows.size(); ++i)
    d["jobs"].push_back({{"job", "job", c.rows[i].name},
                         {"ranks", "ranks", c.ranks[i]},
                         {"measured", "measured", c.rows[i].measured, in::kSeconds},
                         {"predicted_s", "predicted", bare(c.fit.predicted[i]), in::kSeconds},
                         {"", "error", change(c.fit.predicted[i] / c.rows[i].measured - 1)},
                         {"weight", "weight", share(c.fit.weights[i])}});
  d.show("next", "Measure next: the plans whose steps narrow the intervals most", next_rows(c));
  d.add_warnings(warnings_of(c));
  d.line(globals.output.empty()
             ? to_yaml(c)
             : fmt::format("written to {}; a job takes it by `calibration: {}`",
                           globals.output.string(), globals.output.filename().string()));
  return d;
}

/// -o names the calibration; the summary goes to stdout.
Result<Exit> run(const CalibrateJobOptions& options, const Globals& globals) {
  std::optional<PendingFile> pending;
  if (!globals.output.empty()) {  // before long work
    pending.emplace(TRY(PendingFile::create(globals.output)));
  }
  const Calibrated calibrated =
      TRY(calibrate(options, globals.progress_of("trying plans to measure next")));
  for (const Warning& warning : warnings_of(calibrated)) globals.warn(to_string(warning));
  if (pending) {
    TRY(pending->write(to_yaml(calibrated)));
    TRY(pending->commit());
  }
  return answer_with(globals.on_stdout(), document_of(calibrated, globals));
}

}  // namespace

void add_calibrate_job(CLI::App& calibrate, Action& action) {
  auto options = std::make_shared<CalibrateJobOptions>();
  CLI::App* job = calibrate.add_subcommand(
      "job", "Fit the parts of a step (computing, host, network) to measured steps");
  add_value(*job, "JOB", "FILE", options->job, "job file of the measured job");
  add_value(*job, "--measured", "TIME", options->measured,
            "measured step time of JOB, or FILE=TIME for another job on the same kind of cluster")
      ->required();
  job->footer(
      "Example: rehearse calibrate job job.yaml --measured 1.94s -o mine.yaml\n"
      "-o FILE writes the calibration, which a job uses with `calibration: FILE`; otherwise it is "
      "printed.");
  run_by(*job, action, options, run, [](const CalibrateJobOptions& given) {
    for (const std::string& text : given.measured)
      if (given.job.empty() && text.find('=') == std::string::npos)
        throw CLI::ValidationError("--measured",
                                   "a time without FILE= is of JOB, which is missing");
  });
}

}  // namespace rehearse::cli
