// rehearse plan: search the plans of a job.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/commands/describe_job.h"
#include "cli/commands/options.h"
#include "cli/commands/plan_result.h"
#include "cli/commands/plan_serving.h"
#include "cli/commands/predicted_job.h"
#include "cli/commands/run_answer.h"
#include "cli/commands/shared_work.h"
#include "cli/commands/step_result.h"
#include "cli/config/fidelity_names.h"
#include "cli/config/job_input.h"
#include "cli/config/named_files.h"
#include "cli/config/serve_file.h"
#include "cli/output/run_events.h"
#include "cli/planning/emit.h"
#include "cli/planning/plan_words.h"
#include "cli/planning/referee_plans.h"
#include "cli/planning/robustness.h"
#include "cli/progress_line.h"
#include "cli/recommending/amounts.h"
#include "cli/report/report.h"
#include "models/workload/read_model.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/engine/simgrid.h"

namespace rehearse::cli {
namespace {

using strategies::Figure;

/// The name at an index of two lists, one after the other.
template <std::size_t A, std::size_t B>
constexpr auto joined(const std::string_view (&a)[A], const std::string_view (&b)[B]) {
  std::array<std::string_view, A + B> all;
  std::copy(b, b + B, std::copy(a, a + A, all.begin()));
  return all;
}
/// Those of training, and then those of servers.
constexpr auto kObjectives = joined(strategies::kFigureNames, kServerObjectiveNames);
constexpr auto kEmitted = joined(kFrameworkNames, serving::kFrameworkNames);

struct PlanOptions {
  std::filesystem::path job_file;
  DescribedJob described;
  std::string cluster;
  std::optional<std::size_t> objective, emit;  ///< in the lists above
  std::vector<std::string> within;
  double risk = 0.5;
  step::Fidelity fidelity = step::Fidelity::kMessage;
  bool thorough = false;
  std::filesystem::path journal;
  RunFiles files;
};

/// The reader of a limit on each figure.
constexpr Result<double> (*kAmounts[strategies::kFigures])(std::string_view) = {
    parse_si<Seconds>, parse_si<Bytes>, parse_si<Usd>, parse_si<Joules>, parse_carbon};

/// "memory=76 GiB".
Status read_limit(const std::string& text, strategies::Figures& at_most) {
  const std::size_t equals = text.find('=');
  const std::string_view name = trim(std::string_view(text).substr(0, equals));
  const std::size_t which = index_of(strategies::kFigureNames, name);
  if (which == strategies::kFigures)
    return fail(fmt::format("'{}': unknown quantity '{}'", text, name),
                suggest(name, strategies::kFigureNames));
  if (equals == std::string::npos)
    return fail(fmt::format("'{}': the limit is missing", text),
                fmt::format("such as '{}=…' with a number and a unit", name));
  const std::string_view value = trim(std::string_view(text).substr(equals + 1));
  const Result<double> most = kAmounts[which](value);
  if (!most) {
    Diagnostic d = most.error().diagnostics.front();
    d.problem = fmt::format("'{}': {}", text, d.problem);
    return fail(std::move(d));
  }
  if (!(*most > 0)) return fail(fmt::format("'{}': not above zero", text));
  at_most[which] = std::min(at_most[which], *most);
  return {};
}

Result<PlanRequest> request_of(const PlanOptions& options, const JobFile& file,
                               const std::optional<input::Feed>& feed, const Globals& globals) {
  PlanRequest request;
  request.objective = static_cast<Figure>(options.objective.value_or(0));
  request.risk = options.risk;
  request.thorough = options.thorough;
  for (const std::string& text : options.within) TRY(read_limit(text, request.at_most));
  request.axes = file.axes;
  if (options.emit) keep_to(static_cast<Framework>(*options.emit), request.axes);
  request.confirm = options.fidelity;
  if (feed) request.input = &*feed;
  request.place = file.place;
  request.threads = globals.thread_count();
  if (work::leads())
    request.phase = [&globals](const char* what) { return globals.progress_of(what); };
  if (shows_progress(globals))
    request.first_answer = [objective = request.objective](const FoundPlan& found) {
      say(fmt::format("by closed forms the best plan is {}, with {} of {}; the best plans run next",
                      plan_words(found.training, found.plan),
                      strategies::kFigureNames[slot(objective)],
                      figure_words(objective, strategies::of(found.figures, objective))));
    };
  return request;
}

/// The job's model, as far as the file describes one.
struct Model {
  std::optional<workload::Transformer> dimensions = {};
  bool dropout = false;
};
Model model_of(const std::filesystem::path& path) {
  const Result<YamlFile> file = YamlFile::load(path);
  if (!file) return {};
  const std::optional<YamlMap> map = file->root().map("workload");
  if (!map || map->has("recording")) return {};
  std::optional<workload::Description> model =
      workload::read_model_description(*map, path.parent_path());
  if (!model || !std::holds_alternative<workload::Transformer>(*model)) return {};
  return {std::get<workload::Transformer>(std::move(*model)),
          map->optional<bool>("dropout").value_or(false)};
}

/// Writes the best plan that the framework can express; fails with the first error if there is
/// none.
Result<Exit> write_launch(const Planned& planned, const PlanOptions& options,
                          const Globals& globals) {
  const Model model = model_of(options.job_file);
  std::optional<Error> first;
  for (std::size_t i = 0; i < planned.best.size(); ++i) {
    const step::Step& step = planned.best[i].step;
    Launch launch{planned.best[i].file.spec, planned.file.cluster, model.dimensions, model.dropout};
    launch.headline = fmt::format(
        "{}: {} per step ({} – {}), predicted", plan_words(launch.spec.training, launch.spec.plan),
        to_string(step.time.value, 4), to_string(step.time.low, 4), to_string(step.time.high, 4));
    const Result<Emitted> emitted = emit(static_cast<Framework>(*options.emit), launch);
    if (!emitted) {
      if (!first) first = emitted.error();
      continue;
    }
    if (first)
      globals.warn(fmt::format("emitting plan {} of the list, because {}", i + 1,
                               first->diagnostics.front().problem));
    for (const std::string& note : emitted->notes) globals.warn(note);
    Document document{.command = "plan"};
    document.line(emitted->text);
    document["launch"] = {{"framework", kFrameworkNames[*options.emit]},
                          {"text", emitted->text},
                          {"notes", emitted->notes}};
    document["plan"] = plan_json(launch.spec);
    return answer_with(globals, document);
  }
  return tl::unexpected(std::move(*first));
}

/// Everything on which the result depends.
Result<work::Fingerprint> fingerprint_of(const PlanOptions& options) {
  work::Fingerprint fingerprint;
  TRY(fingerprint.add_program());
  TRY(add_with_named_files(fingerprint, options.job_file));
  if (!options.cluster.empty()) TRY(add_with_named_files(fingerprint, options.cluster));
  fingerprint.add(fmt::format("{} {} {} {} {}", options.objective.value_or(kObjectives.size()),
                              static_cast<int>(options.fidelity), options.risk, options.thorough,
                              options.emit.value_or(kEmitted.size())));
  for (const std::string& limit : options.within) fingerprint.add(limit);
  return fingerprint;
}

/// Evaluates a search's work through one queue after another, if others share it. When the search is
/// asked to stop, its queue stops it and says what is kept: `progress` then only shows.
strategies::Spread spread_by(work::ExecutionOptions execution) {
  if (!execution.communicator && !execution.journal) return {};
  execution.progress = [](double) { return !interrupted.load(); };
  return spread_of(execution);
}
Progress only_shown(Progress progress) {
  return [shown = std::move(progress)](double share) {
    if (shown) shown(share);
    return true;
  };
}

/// Adds the certainty of the best plan: its step time by other models, if they are `shown`, and the
/// errors of the models.
Status judge_plans(Planned& planned, bool shown, const Globals& globals) {
  std::vector<FoundPlan>& best = planned.found.best;
  const step::Fidelity fidelity = *planned.request.confirm;
  if (fidelity != step::Fidelity::kClosed && shown)
    planned.confirmed = TRY(
        referee_plans(best, planned.file.spec, planned.file.cluster, fidelity,
                      planned.request.thorough ? kThoroughRefereeTime : kRefereeTime,
                      globals.thread_count(), globals.progress_of("confirming plans on SimGrid")));
  for (const auto& [common, chance] : {std::pair{kCommonError, &planned.chance},
                                       {0.0, &planned.chance_if_own},
                                       {1.0, &planned.chance_if_common}})
    *chance = chances(best, planned.request.objective, globals.seed, common);
  return {};
}

/// The options of a search for a server. Fails for those of training alone.
Result<PlanServingOptions> for_server(const PlanOptions& options) {
  constexpr std::size_t kFirstObjective = std::size(strategies::kFigureNames),
                        kFirstServer = std::size(kFrameworkNames);
  const std::pair<bool, const char*> of_training[] = {
      {!options.within.empty(), "--within"},
      {options.risk != 0.5, "--risk"},
      {options.fidelity != step::Fidelity::kMessage, "--fidelity"},
      {options.thorough, "--thorough"},
      {!options.files.perfetto.empty(), "--perfetto"}};
  for (const auto& [given, name] : of_training)
    if (given)
      return fail(fmt::format("{} applies to training, not to a server", name),
                  "limits of a server are in serve.slo");
  PlanServingOptions server{.job_file = options.job_file, .cluster = options.cluster};
  if (options.objective && *options.objective < kFirstObjective)
    return fail(fmt::format("--objective {} applies to training, not to a server",
                            kObjectives[*options.objective]),
                fmt::format("{}", fmt::join(kServerObjectiveNames, ", ")));
  if (options.objective)
    server.objective = static_cast<ServerObjective>(*options.objective - kFirstObjective);
  if (options.emit && *options.emit < kFirstServer)
    return fail(
        fmt::format("--emit {} applies to training, not to a server", kEmitted[*options.emit]),
        fmt::format("{}", fmt::join(serving::kFrameworkNames, ", ")));
  if (options.emit) server.emit = static_cast<serving::Framework>(*options.emit - kFirstServer);
  return server;
}

Result<Exit> run_serving(const PlanOptions& options, const Globals& globals, SharedWork& shared) {
  const PlanServingOptions server = TRY(for_server(options));
  const work::ExecutionOptions execution =
      TRY(shared.begin("", "settings of " + options.job_file.string(),
                       [&options] { return fingerprint_of(options); }));
  strategies::SearchOptions search{
      .threads = globals.thread_count(),
      .progress = work::leads() ? globals.progress_of("searching settings") : Progress()};
  search.spread = spread_by(execution);
  if (search.spread) search.progress = only_shown(std::move(search.progress));
  return plan_serving(server, std::move(search), globals);
}

/// The search computes every plan as frameworks with tensor parallelism do. Warns if the first plan
/// has none, and does not fit as `simulate` then computes it.
Status warn_of_other_defaults(const PlanOptions& options, PredictedJob& first) {
  const strategies::Plan& plan = first.file.spec.plan;
  if (plan.tensor > 1 || !plan.stages.empty() || first.file.assumed.empty()) return {};
  const JobFile own = TRY(load_job(options.job_file, options.cluster));
  step::Spec spec = own.spec;
  spec.training = first.file.spec.training;
  spec.plan = plan;
  const step::Step step = TRY(step::predict(
      spec, own.cluster, {.fidelity = step::Fidelity::kClosed, .counterfactuals = false}));
  const memory::StageMemory& most = memory::fullest(step.memory);
  if (most.fit != memory::Fit::kFits)
    first.step.warnings.push_back(
        {fmt::format("memory of the first plan, as `simulate` assumes without tensor parallelism "
                     "(loss eager, fused_accumulation false): {} of {}: {}",
                     to_string(most.peak.value), to_string(most.device.usable),
                     memory::kFitNames[static_cast<int>(most.fit)]),
         "state loss and fused_accumulation in `workload` as the framework computes them, and "
         "search again"});
  return {};
}

/// Gives the best step its run, for its timeline.
Status run_again(Planned& planned) {
  PredictedJob& best = planned.best.front();
  step::Step again =
      TRY(step::predict(best.file.spec, best.file.cluster,
                        {.fidelity = best.fidelity,
                         .unfold = planned.found.best.front().times.all_ranks.has_value(),
                         .counterfactuals = false}));
  best.step.job = std::move(again.job);
  best.step.lowered = std::move(again.lowered);
  best.step.timeline = std::move(again.timeline);
  return {};
}

Result<Exit> run(const PlanOptions& options, const Globals& globals, SharedWork& shared) {
  TRY(check_writable({options.files.perfetto}));
  if (is_serve_file(options.job_file)) return run_serving(options, globals, shared);
  if (options.objective && *options.objective >= std::size(strategies::kFigureNames))
    return fail(fmt::format("--objective {} applies to a server, not to training",
                            kObjectives[*options.objective]),
                fmt::format("{}", fmt::join(strategies::kFigureNames, ", ")));
  if (options.emit && *options.emit >= std::size(kFrameworkNames))
    return fail(
        fmt::format("--emit {} applies to a server, not to training", kEmitted[*options.emit]),
        fmt::format("{}", fmt::join(kFrameworkNames, ", ")));
  JobFile file = TRY(load_job(options.job_file, options.cluster, {}, JobUse::kSearch));
  std::optional<input::Feed> feed;
  if (file.input) feed.emplace(*file.input);
  PlanRequest request = TRY(request_of(options, file, feed, globals));
  const work::ExecutionOptions execution = TRY(shared.begin(
      "", "plans of " + options.job_file.string(), [&options] { return fingerprint_of(options); }));
  request.spread = spread_by(execution);
  if (request.spread)
    request.phase = [shown = std::move(request.phase)](const char* what) {
      return only_shown(shown ? shown(what) : Progress());
    };
  if (request.confirm == step::Fidelity::kSimgrid) TRY(engine::check_simgrid());
  FoundPlans found = TRY(in_file(options.job_file, find_plans(file.spec, file.cluster, request)));
  if (!work::leads()) return Exit::kSuccess;
  Planned planned{std::move(file), std::move(request), std::move(found)};
  const bool shown = !options.emit || !globals.report.empty();
  TRY(judge_plans(planned, shown, globals));
  for (FoundPlan& plan : planned.found.best) {
    JobFile job = planned.file;
    job.spec = spec_of(planned.file.spec, plan);
    planned.best.push_back(predicted_job(std::move(job), std::move(*plan.step),
                                         std::move(plan.path), *planned.request.confirm));
  }
  TRY(warn_of_other_defaults(options, planned.best.front()));
  const step::Step& best = planned.best.front().step;
  if (planned.file.input)
    planned.file.notes.push_back(feed_note(*planned.file.input, planned.file.cluster, best));
  for (const Warning& warning : best.warnings) globals.warn(to_string(warning));
  const Document document = plans_document(planned);
  ReportDetails details;
  if (!options.files.perfetto.empty() || !globals.report.empty()) {
    TRY(run_again(planned));
    const RunView view = view_of(best.job, best.lowered, best.timeline);
    TRY(write_timeline(options.files.perfetto, view.show));
    if (!globals.report.empty()) {
      TRY(try_changes(planned.best.front(), globals));
      details = with_timeline(step_details(planned.best.front(), options.job_file), view);
    }
  }
  if (!options.emit) return answer_with(globals, document, Exit::kSuccess, details);
  TRY(write_report(globals, document, std::move(details)));
  return write_launch(planned, options, globals.without_page());
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand(
      "plan", "Search the parallelism plans of a job, or the settings of a server, for the best");
  add_value(*command, "JOB", "FILE", options->job_file,
            "job file; keys of its plan section are kept");
  add_described_job(*command, options->described, JobUse::kSearch);
  add_value(*command, "--cluster", "FILE", options->cluster, "cluster file, instead of the job's");
  add_choice(
      *command, "--objective", options->objective, kObjectives,
      "figure to minimize: step_time (default), memory, cost, energy or carbon; of a server: "
      "goodput (default, the most requests within the SLO per GPU), tpot or ttft");
  add_value(*command, "--within", "LIMIT", options->within,
            "limit per step, such as 'memory=60 GiB' or 'cost=0.5 USD'; may be repeated")
      ->check(reads_as([](const std::string& text) {
        strategies::Figures at_most = {};
        return read_limit(text, at_most);
      }))
      ->allow_extra_args(false);
  add_number(
      *command, "--risk", options->risk, 0.5, 0.99,
      "rank the best plans by the value that is not exceeded with this probability: 0.5 (default), "
      "the predicted value with the mean of stalls, to 0.99");
  add_choice(*command, "--fidelity", options->fidelity, kFidelityNames,
             "how the best plans are run: closed, message (default; SimGrid confirms them if that "
             "takes seconds) or simgrid");
  command->add_flag("--thorough", options->thorough,
                    "run at least 100 of the best plans instead of 20, and SimGrid for up to 10 s "
                    "instead of 2 s");
  add_choice(*command, "--emit", options->emit, kEmitted,
             "write the launch configuration of megatron, deepspeed or torchtitan, or the command "
             "of a server: vllm, sglang or trtllm");
  add_value(*command, "--perfetto", "FILE", options->files.perfetto,
            "write the timeline of the best plan as a trace for ui.perfetto.dev");
  add_value(*command, "--journal", "FILE", options->journal, kJournalHelp);
  command->footer(
      "Examples:\n"
      "  rehearse plan job.yaml\n"
      "  rehearse plan --model llama3_8b --gpus 16 --device h100_sxm5_80 --batch 256\n"
      "  rehearse plan job.yaml --objective cost --within 'step_time=2 s'\n"
      "  rehearse plan job.yaml --emit megatron -o launch.sh\n"
      "  rehearse plan examples/jobs/serve_llama3_8b_search.yaml --objective tpot\n"
      "Under mpirun, all ranks share the work.");
  run_on_job(*command, action, JobUse::kSearch, options->job_file, options->described,
             shared_action(options, run));
}

}  // namespace rehearse::cli
