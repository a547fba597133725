// rehearse input: the rate of an input pipeline, its bottleneck, and settings that would help. The
// pipeline is given in a file, or measured by loading the files of a folder.
#include <fmt/core.h>

#include "cli/commands/input_measured.h"
#include "cli/commands/options.h"
#include "cli/config/job_file.h"
#include "models/input/limits.h"
#include "models/input/read_pipeline.h"
#include "models/input/simulate.h"
#include "models/input/tune.h"
#include "profiler/loading/measure.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/watch.h"

namespace rehearse::cli {
namespace {

using input::Pipeline;

struct InputOptions {
  std::filesystem::path pipeline;  ///< empty: `folder` is measured
  std::filesystem::path folder;
  std::size_t samples = 256;
};

struct Analysis {
  Pipeline pipeline;
  double samples;  ///< in a unit of the last stage
  std::vector<input::Limit> limits;
  input::Flow flow;
  input::Tuned tuned;
  std::optional<Seconds> first;  ///< unit of the last stage; likewise
};

Estimate<double> rate_of(const Analysis& a, const input::Flow& flow) {
  return flow.units_per_s * (a.samples * flow.filled);
}

/// The tightest bound on the rate that a stage sets by itself, in samples per second.
std::optional<double> alone(const Analysis& a, std::size_t stage) {
  for (const input::Limit& limit : a.limits)
    if (limit.index == stage &&
        (limit.kind == input::LimitKind::kThreads || limit.kind == input::LimitKind::kSerial))
      return limit.units_per_s * a.samples;
  return std::nullopt;
}

/// The share of time in which the accelerator waits.
std::optional<double> stall_of(const Pipeline& pipeline, const input::Flow& flow) {
  if (!pipeline.step) return std::nullopt;
  return std::max(0.0, 1 - flow.units_per_s.value * pipeline.step->mean.s());
}

/// "workers of decode from 4 to 12"
std::string text_of(const Analysis& a, const input::Change& change) {
  const std::string_view knob = input::kKnobNames[static_cast<int>(change.knob)];
  if (change.knob == input::Knob::kInFlight)
    return fmt::format("{} from {} to {}", knob, change.from, change.to);
  return fmt::format("{} of {} from {} to {}", knob, a.pipeline.stages[change.stage].name,
                     change.from, change.to);
}

std::string kept_text(const Analysis& a) {
  return fmt::format("keep the output of {} in memory after the first epoch ({})",
                     a.pipeline.stages[*a.tuned.kept].name, to_string(a.tuned.kept_bytes));
}

bool helps(const Analysis& a) {
  const double tuned = a.tuned.flow ? a.tuned.flow->units_per_s.value : a.tuned.units_per_s;
  return tuned > a.flow.units_per_s.value * 1.01;
}

double usd_per_million(const Analysis& a) {
  return input::request_price_of(a.pipeline).usd() / a.samples * 1e6;
}

std::optional<double> usd_per_epoch(const Analysis& a) {
  if (!a.pipeline.samples) return std::nullopt;
  return usd_per_million(a) * 1e-6 * static_cast<double>(*a.pipeline.samples) / a.flow.filled;
}

Quantity samples_of(const Estimate<double>& rate) { return {rate, unit::kSamples}; }
Quantity samples_of(double rate) { return {rate, unit::kSamples}; }

Value stage_rows(const Analysis& a) {
  Value rows = Value::array();
  for (std::size_t i = 0; i < a.pipeline.stages.size(); ++i) {
    const input::Stage& stage = a.pipeline.stages[i];
    Value row = {{"name", "stage", stage.name},
                 {"workers", "workers", stage.workers},
                 {"threads", "threads", stage.threads},
                 {"busy", "busy", share(a.flow.busy[i]), in::kWholePercent}};
    if (const std::optional<double> rate = alone(a, i))
      row.show("alone", "alone", samples_of(*rate));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// "bounded by host cores"; if advice may not set more workers, the change that would allow it.
std::string bound_text(const Analysis& a) {
  const input::Limit& limit = a.tuned.limit;
  std::string text = "bounded by " + to_string(a.tuned.pipeline, limit);
  if (limit.kind != input::LimitKind::kThreads) return text;
  const input::Stage& stage = a.tuned.pipeline.stages[limit.index];
  if (stage.workers < stage.most_workers) return text;
  return text + fmt::format("; advice is limited to {} by `most` of the stage",
                            counted(stage.workers, "worker"));
}

std::string gain_text(const Analysis& a) {
  if (!helps(a)) return "no setting of workers and threads is faster: " + bound_text(a);
  return (a.tuned.flow ? "gives " + range_words(samples_of(rate_of(a, *a.tuned.flow)))
                       : fmt::format("allows {} (too long to simulate; the minimum for constant "
                                     "times, varying times need more threads)",
                                     range_words(samples_of(a.tuned.units_per_s * a.samples)))) +
         ", " + bound_text(a);
}

Json json_limits(const Pipeline& pipeline, const std::vector<input::Limit>& limits,
                 double samples) {
  Json json = Json::array();
  for (const input::Limit& limit : limits)
    json.push_back(
        {{"what", to_string(pipeline, limit)}, {"rate", samples_of(limit.units_per_s * samples)}});
  return json;
}

Value advice_rows(const Analysis& a) {
  Value advice = Value::array();
  if (!helps(a)) return advice;
  if (a.tuned.kept)
    advice.push_back({{"stage", a.pipeline.stages[*a.tuned.kept].name},
                      {"setting", "keep"},
                      {"memory", a.tuned.kept_bytes},
                      {"text", "setting", kept_text(a), {}, kProse}});
  for (const input::Change& change : a.tuned.changes) {
    Value one = {{"setting", input::kKnobNames[static_cast<int>(change.knob)]},
                 {"from", change.from},
                 {"to", change.to},
                 {"text", "setting", text_of(a, change), {}, kProse}};
    if (change.knob != input::Knob::kInFlight) one["stage"] = a.pipeline.stages[change.stage].name;
    advice.push_back(std::move(one));
  }
  return advice;
}

void add_analysis(const Analysis& a, Document& d) {
  const std::string& last = a.pipeline.stages.back().name;
  const std::string bottleneck = to_string(a.pipeline, a.limits.front());
  const double allowed = a.limits.front().units_per_s;
  const std::optional<double> stall = stall_of(a.pipeline, a.flow);
  const Quantity rate = samples_of(rate_of(a, a.flow));
  d.methods = {Method::kPipeline};
  d.answer = sentence_of(
      range_words(rate),
      {"bounded by " + bottleneck,
       stall ? fmt::format("the accelerator waits for input {:.0f} % of its time", *stall * 100)
             : ""});
  d.show("rate", "rate", rate);
  d["bottleneck"] = bottleneck;
  d.show("", "bottleneck",
         fmt::format("{}: at most {}", bottleneck, range_words(samples_of(allowed * a.samples))));
  if (const double reached = a.flow.units_per_s.value / allowed; reached < 0.95)
    d.show("", "lost to queueing",
           fmt::format("{:.0f} % of that: requests wait for their turn in the order, or for space "
                       "in full queues",
                       (1 - reached) * 100));
  d["limits"] = json_limits(a.pipeline, a.limits, a.samples);
  d["unit_of_last_stage"] = {{"samples", a.samples},
                             {"rate", Quantity(a.flow.units_per_s, unit::kRate)}};
  if (a.samples > 1)
    d.show("", "units of " + last,
           fmt::format("{} per second, {:g} samples each", significant(a.flow.units_per_s.value, 4),
                       a.samples));
  if (stall) d.show("stall", "input stall", share(*stall));
  d.show("epoch_time", "epoch", maybe(a.flow.epoch));
  d.show("time_to_first", "first unit of " + last, maybe(a.first));
  const double usd = usd_per_million(a);
  d["request_cost_per_million_samples_usd"] = usd;
  if (usd > 0) d.show("", "requests of 1M samples", Usd::usd(usd));
  if (const auto epoch = usd_per_epoch(a))
    d.show("request_cost_per_epoch", usd > 0 ? "requests per epoch" : "", Usd::usd(*epoch));
  d.show("stages", "Stages", stage_rows(a));
  d.show("advice", "Settings that remove the stall", advice_rows(a));
  d.line(gain_text(a));
  if (a.tuned.flow) d["tuned"]["rate"] = samples_of(rate_of(a, *a.tuned.flow));
  d["tuned"]["bottleneck"] = to_string(a.tuned.pipeline, a.tuned.limit);
  d["tuned"]["allowed"] = samples_of(a.tuned.units_per_s * a.samples);
}

Result<Analysis> analyse(const Pipeline& pipeline, const std::filesystem::path& path) {
  input::Flow flow = TRY(in_file(path, input::simulate(pipeline)));
  input::Tuned tuned = TRY(in_file(path, input::tune(pipeline)));
  const Result<Seconds> first = input::time_to_first(pipeline, 1);
  return Analysis{pipeline,
                  input::counts_of(pipeline).samples,
                  input::limits_of(pipeline),
                  std::move(flow),
                  std::move(tuned),
                  first ? std::optional(*first) : std::nullopt};
}

Result<Exit> run_file(const std::filesystem::path& path, const Globals& globals) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    return fail_in(path, "is a folder", "a pipeline file",
                   "--measure DIR, to measure the loading of its files");
  const Pipeline pipeline = TRY(input::load_pipeline(path));
  std::optional<Watch> watch(std::in_place, globals.progress_of("simulating"));
  const Analysis analysis = TRY(analyse(pipeline, path));
  watch.reset();
  Document document{.command = "input", .rows = "stages", .rows_title = "Stages"};
  add_analysis(analysis, document);
  return answer_with(globals, document);
}

/// -o names the pipeline file; the measurements go to stdout.
Result<Exit> run_folder(const InputOptions& options, const Globals& globals) {
  std::optional<PendingFile> pending;
  if (!globals.output.empty()) {  // before long work
    pending.emplace(TRY(PendingFile::create(globals.output)));
  }
  const loading::Measured measured = TRY(loading::measure_folder(
      options.folder, options.samples, globals.progress_of("reading and decoding")));
  const std::string text = pipeline_text(measured, options.folder);
  // Analyses the file as written.
  const YamlFile file = TRY(YamlFile::parse(text, options.folder.string()));
  const Pipeline pipeline = input::read_pipeline(file.root());
  TRY(file.status());
  const Analysis analysis = TRY(analyse(pipeline, options.folder));
  const std::vector<PredictedRate> rates = TRY(predicted_rates(pipeline, measured.cores));
  if (pending) {
    TRY(pending->write(text));
    TRY(pending->commit());
  }
  Document document{.command = "input", .rows = "stages", .rows_title = "Stages"};
  add_measured(measured, rates, document);
  add_analysis(analysis, document);
  document["pipeline"] = text;
  document.line(pending ? "written to " + globals.output.string() : text);
  return answer_with(globals.on_stdout(), document);
}

}  // namespace

void add_input(CLI::App& app, Action& action) {
  auto options = std::make_shared<InputOptions>();
  CLI::App* command = app.add_subcommand(
      "input", "Predict the rate and the bottleneck of an input pipeline, and advise settings");
  CLI::Option* pipeline = add_value(*command, "PIPELINE", "FILE", options->pipeline,
                                    "pipeline file: stages, and their sources");
  CLI::Option* measure =
      add_value(*command, "--measure", "DIR", options->folder,
                "instead of PIPELINE: measure reading and decoding of the files in this "
                "folder, recursively, and write a pipeline")
          ->excludes(pipeline);
  add_number(*command, "--samples", options->samples, std::size_t{1}, std::size_t{100'000},
             "number of files to measure, spread evenly over the folder (default 256)")
      ->needs(measure);
  command->footer(
      "Examples:\n"
      "  rehearse input examples/pipelines/imagenet_s3.yaml\n"
      "  rehearse input --measure images -o images.yaml\n"
      "-o FILE with --measure writes the pipeline, which a job uses with `input: FILE`; otherwise "
      "it is printed.");
  command->callback([options, &action] {
    if (options->pipeline.empty() && options->folder.empty())
      throw CLI::RequiredError("PIPELINE or --measure DIR is missing",
                               CLI::ExitCodes::RequiredError);
    action = [options](const Globals& globals) {
      return options->folder.empty() ? run_file(options->pipeline, globals)
                                     : run_folder(*options, globals);
    };
  });
}

}  // namespace rehearse::cli
