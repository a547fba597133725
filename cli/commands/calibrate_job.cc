#include "cli/commands/calibrate_job.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/commands/options.h"
#include "cli/config/job_file.h"
#include "cli/output/document.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"
#include "strategies/step/fit_scale.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

struct CalibrateJobOptions {
  std::string job;
  std::vector<std::string> measured;
};

/// The contents of a calibration: the rows that it came from and the fitted constants.
struct Calibrated {
  std::vector<step::MeasuredStep> rows;
  std::vector<std::uint32_t> ranks;
  step::ScaleFit fit;
  std::vector<double> host_shares;  ///< of the rows: launches, in the step that the fit predicts
};

/// Launches determine the step before or after the fit. Then the scale makes up for the host's error.
std::vector<Warning> warnings_of(const Calibrated& c) {
  std::vector<Warning> warnings;
  for (std::size_t i = 0; i < c.rows.size(); ++i) {
    const double before = c.rows[i].host_share, after = c.host_shares[i];
    if (!step::is_host_bound(std::max(before, after))) continue;
    warnings.push_back(
        {fmt::format("{}: host-bound: launches determine {:.0f} % of the step before the fit and "
                     "{:.0f} % after it. The host's time is not fitted, so that the scale makes up "
                     "for its error, and other microbatches and plans may be predicted wrongly",
                     c.rows[i].name, before * 100, after * 100),
         "measure a step with a larger microbatch, or give the host's measured time per Llama "
         "block "
         "as `sustained: {host_per_layer: TIME}`"});
  }
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

Result<Calibrated> calibrate(const CalibrateJobOptions& options) {
  std::vector<JobFile> jobs;
  Calibrated calibrated{.rows = {}, .ranks = {}, .fit = {}, .host_shares = {}};
  const step::PredictOptions quick{.counterfactuals = false};
  for (const std::string& text : options.measured) {
    const auto measurement = measurement_of(options, text);
    if (!measurement) return forward(measurement);
    Result<JobFile> file = load_job(measurement->first);
    if (!file) return forward(file);
    if (file->input)
      return fail(Diagnostic{
          .file = measurement->first,
          .key = "input",
          .problem = "the measured step may include input stalls, so it cannot calibrate compute",
          .expected = "a step measured without input stalls, and a job without `input`"});
    const Result<step::Step> step = step::predict(file->spec, file->cluster, quick);
    if (!step) return wrong_in(measurement->first, step.error());
    calibrated.rows.push_back({.name = measurement->first,
                               .measured = measurement->second,
                               .at_peak = step->hardware_flops / step->peak,
                               .host_share = step->host_share});
    calibrated.ranks.push_back(step->layout.ranks());
    jobs.push_back(std::move(*file));
  }
  const auto predicted = [&](std::size_t row, double scale, std::optional<Seconds> fixed) {
    step::Spec spec = jobs[row].spec;
    spec.conditions.scale = scale;
    spec.conditions.fixed = fixed.value_or(spec.conditions.fixed);
    for (auto& [device, conditions] : spec.conditions_on) {
      conditions.scale = scale;
      conditions.fixed = spec.conditions.fixed;
    }
    return step::predict(spec, jobs[row].cluster, quick);
  };
  const auto step_at = [&](std::size_t row, double scale,
                           std::optional<Seconds> fixed) -> Result<Seconds> {
    const Result<step::Step> step = predicted(row, scale, fixed);
    if (!step) return forward(step);
    return step->time.value;
  };
  Result<step::ScaleFit> fit = step::fit_scale(calibrated.rows, step_at);
  if (!fit) return forward(fit);
  calibrated.fit = std::move(*fit);
  for (std::size_t row = 0; row < jobs.size(); ++row) {
    const Result<step::Step> step = predicted(row, calibrated.fit.scale, calibrated.fit.fixed);
    if (!step) return forward(step);
    calibrated.host_shares.push_back(step->host_share);
  }
  return calibrated;
}

std::string to_yaml(const Calibrated& c) {
  std::string text = fmt::format(
      "sustained:\n  scale: {:.4f}\n{}  fastest: {:.3f}\n  slowest: {:.3f}\n  source: {}\n",
      c.fit.scale, c.fit.fixed ? fmt::format("  fixed: {:.6g} s\n", c.fit.fixed->s()) : "",
      c.fit.fastest, c.fit.slowest,
      yaml_quoted(
          fmt::format("rehearse calibrate job: {}", counted(c.rows.size(), "measured step"))));
  text += fmt::format("measured:\n  residual: {:.4f}\n  rows:\n", c.fit.residual);
  for (std::size_t i = 0; i < c.rows.size(); ++i)
    text += fmt::format("    - {{job: {}, ranks: {}, measured: {} s, predicted: {:.6g} s}}\n",
                        yaml_quoted(c.rows[i].name), c.ranks[i], c.rows[i].measured.s(),
                        c.fit.predicted[i].s());
  return text;
}

Document document_of(const Calibrated& c, const Globals& globals) {
  Document d{.command = "calibrate", .rows = "jobs"};
  d.line(fmt::format("scale {:.4f} of compute time ({:.3f} – {:.3f}){}, residual {:.2f} %",
                     c.fit.scale, c.fit.scale * c.fit.fastest, c.fit.scale * c.fit.slowest,
                     c.fit.fixed ? fmt::format(", {} per step", to_string(*c.fit.fixed)) : "",
                     c.fit.residual * 100));
  d.line("The host's times are as in the jobs, not fitted.");
  d["rows"] = c.rows.size();
  d["residual"] = c.fit.residual;
  d["scale"] = c.fit.scale;
  d["fastest"] = c.fit.fastest;
  d["slowest"] = c.fit.slowest;
  d["fixed_s"] = c.fit.fixed ? Value(c.fit.fixed->s()) : Value();
  d["envelope"] = {{"ranks", c.ranks}};
  d["jobs"] = Value::array();
  for (std::size_t i = 0; i < c.rows.size(); ++i)
    d["jobs"].push_back({{"job", "job", c.rows[i].name},
                         {"ranks", "ranks", c.ranks[i]},
                         {"measured", "measured", c.rows[i].measured, in::kSeconds},
                         {"predicted_s", "predicted", bare(c.fit.predicted[i]), in::kSeconds},
                         {"", "error", change(c.fit.predicted[i] / c.rows[i].measured - 1)},
                         {"host_share", "launches", share(c.host_shares[i])}});
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
    Result<PendingFile> file = PendingFile::create(globals.output);
    if (!file) return forward(file);
    pending.emplace(std::move(*file));
  }
  const Result<Calibrated> calibrated = calibrate(options);
  if (!calibrated) return forward(calibrated);
  for (const Warning& warning : warnings_of(*calibrated)) globals.warn(to_string(warning));
  if (pending) {
    if (Status ok = pending->write(to_yaml(*calibrated)); !ok) return forward(ok);
    if (Status ok = pending->commit(); !ok) return forward(ok);
  }
  return answer_with(globals.on_stdout(), document_of(*calibrated, globals));
}

}  // namespace

void add_calibrate_job(CLI::App& calibrate, Action& action) {
  auto options = std::make_shared<CalibrateJobOptions>();
  CLI::App* job = calibrate.add_subcommand(
      "job", "Fit the efficiency of a framework on a cluster to measured steps");
  add_value(*job, "JOB", "FILE", options->job, "job file of the measured job");
  add_value(*job, "--measured", "TIME", options->measured,
            "measured step time of JOB, or FILE=TIME for another job on the same kind of cluster")
      ->required();
  job->footer(
      "-o FILE writes the calibration, which a job uses with `calibration: FILE`; otherwise it is "
      "printed.\n"
      "Example: rehearse calibrate job job.yaml --measured 1.94s -o mine.yaml");
  job->callback([options, &action] {
    for (const std::string& text : options->measured)
      if (options->job.empty() && text.find('=') == std::string::npos)
        throw CLI::ValidationError("--measured",
                                   "a time without FILE= is of JOB, which is missing");
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
