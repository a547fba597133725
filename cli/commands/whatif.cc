// rehearse whatif: replay an edited recording.
#include "cli/commands/whatif.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/commands/edits.h"
#include "cli/commands/join_sums.h"
#include "cli/commands/networking.h"
#include "cli/commands/options.h"
#include "cli/commands/pass_edits.h"
#include "cli/commands/recorded_tenants.h"
#include "cli/commands/share_options.h"
#include "cli/config/job_file.h"
#include "models/input/read_pipeline.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/interval.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// Whether the text gives workers for the recorded loop, instead of a pipeline file.
bool is_inline_pipeline(std::string_view text) { return text.find('=') != std::string_view::npos; }
bool feeds_from_file(const WhatifOptions& options) {
  return !options.input_pipeline.empty() && !is_inline_pipeline(options.input_pipeline);
}

/// The program fed by the pipeline of a file. Sets `fed`.
Result<replay::RecordedProgram> feed(const WhatifOptions& options, const input::Pipeline& pipeline,
                                     const ReplayJob& job, const replay::RecordedProgram& program,
                                     std::optional<FedBy>& fed) {
  FedProgram with =
      TRY(in_file(options.input_pipeline,
                  feed_recording(job.recordings, program, pipeline,
                                 options.batch > 0 ? std::optional(options.batch) : std::nullopt)));
  fed = std::move(with.by);
  return std::move(with.program);
}

/// What the options name outside the recording.
struct Named {
  std::optional<comm::CollectiveTime> network;
  std::optional<input::Pipeline> pipeline;
};
Result<Named> read_named(const WhatifOptions& options) {
  Named named;
  if (!options.network.empty()) named.network = TRY(parse_network(options.network));
  if (feeds_from_file(options)) named.pipeline = TRY(input::load_pipeline(options.input_pipeline));
  return named;
}

Texts texts_of(const WhatifOptions& options, std::string_view option) {
  for (std::size_t i = 0; i < named_edits().size(); ++i)
    if (named_edits()[i].option == option) return options.named[i];
  return {};
}

/// All edits of a recording in the order in which they are applied: by kind, not as typed. The
/// pipeline comes last, because its warm-up has the pace of the edited recording. `fed` is set when
/// that edit is applied. REQUIRES: the arguments outlive the edits.
std::vector<Edit> edits_of(const WhatifOptions& options, const Named& of, const ReplayJob& job,
                           const Globals& globals, std::optional<FedBy>& fed) {
  using replay::RecordedProgram;
  const auto& network = of.network;
  const auto& pipeline = of.pipeline;
  std::vector<Edit> edits;
  const auto& recordings = job.recordings;
  const auto add_named = [&](bool before_messages) {
    for (std::size_t i = 0; i < named_edits().size(); ++i) {
      const NamedEdit& named = named_edits()[i];
      if (named.before_messages != before_messages) continue;
      const Texts all = options.named[i];
      const std::size_t at_once = named.given == NamedEdit::Given::kTogether ? all.size() : 1;
      for (std::size_t k = 0; k < all.size(); k += at_once) {
        const Texts texts = all.subspan(k, at_once);
        std::string assumption;
        for (const std::string& text : texts)
          if (assumption.empty()) assumption = named.assumption(text);
        edits.push_back(
            {[&job, &globals, texts, apply = named.apply](RecordedProgram program, Bound bound) {
               return apply(job, texts, std::move(program), bound, globals);
             },
             std::move(assumption)});
      }
    }
  };
  add_named(true);
  if (options.bucket && options.data_parallel == 0)
    edits.push_back(
        {[&](RecordedProgram program, Bound bound) {
           return join_sums(job, std::move(program), *options.bucket, bound);
         },
         "sums of gradients in larger buckets: their fixed time, as their recorded times "
         "show it, is spent once per bucket"});
  if (network && options.data_parallel == 0)
    edits.push_back({[&](RecordedProgram program, Bound bound) {
      Globals once = globals;  // the same warning at both bounds
      once.quiet = once.quiet || bound != Bound::kValue;
      return on_network(job, std::move(program), *network, once);
    }});
  add_named(false);
  if (!options.input_pipeline.empty() && !pipeline)
    edits.push_back({[&](RecordedProgram program, Bound) {
      return replay::overlap_input(recordings, std::move(program),
                                   *replay::parse_input_pipeline(options.input_pipeline));
    }});
  if (network && options.data_parallel > 0)
    edits.push_back(
        {[&](RecordedProgram program, Bound) {
           double share = 1;  // of the sums, as of the update
           for (const std::string& passes : texts_of(options, "--accumulation"))
             share = share_of_update(job, *parse_count(passes));
           return data_parallel(
               job, std::move(program), options.data_parallel,
               options.bucket.value_or(strategies::DataParallelPlan{.ranks = 1}.bucket),
               [&](CollectiveKind kind, std::uint32_t ranks, Bytes bytes) -> Result<Seconds> {
                 return TRY((*network)(kind, ranks, bytes)) * share;
               });
         },
         options.data_parallel > 1 && job.recorded.graph.program.replays.front().has_device
             ? "sums of gradients: kernels that overlap them take 1.1 times as long and "
               "2 us more, or lose from nothing to 2.6 times as much"
             : ""});
  if (options.sum_order)
    edits.push_back({[&](RecordedProgram program, Bound bound) {
      Globals once = globals;
      once.quiet = once.quiet || bound != Bound::kValue;
      return order_sums(job, std::move(program), *options.sum_order, once);
    }});
  if (!options.request.sharing.slice.empty())
    edits.push_back(on_slice(job, options.request.sharing.slice));
  if (pipeline)
    edits.push_back({[&](const RecordedProgram& program, Bound) {
      return feed(options, *pipeline, job, program, fed);
    }});
  return edits;
}

double change_of(Seconds before, Seconds after) {
  return before > Seconds::s(0) ? after / before - 1 : 0;
}

void add_recorded(const replay::StepComparison& before, const replay::StepComparison& after,
                  Value& row) {
  if (before.host && after.host) {
    row.show("", "as recorded", before.host->simulated, in::kMs);
    row.show("", "change", change(change_of(before.host->simulated, after.host->simulated)));
  }
  if (!before.device || !after.device) return;
  row.show("", "GPU as recorded", before.device->simulated, in::kMs);
  row.show("", "GPU change", change(change_of(before.device->simulated, after.device->simulated)));
}

}  // namespace

Document whatif_document(const EditedJob& of) {
  const auto& [job, with, after, fed, idle] = of;
  const ReplayRun &recorded = job.recorded, &edited = with.run;
  const replay::Comparison& c = recorded.comparison;
  const Estimate<Seconds> before = replay::estimate_step(c);
  const double changed = change_of(c.step_time.simulated, edited.comparison.step_time.simulated);
  const Attribution attribution = attribution_of(job, edited, after),
                    unedited = attribution_of(job, recorded, before);
  Document d{.command = "whatif", .rows = "ranks.steps", .rows_title = "Steps"};
  d.answer =
      sentence_of(fmt::format("Step time {} → {}, {}", unit::kTime.text(before.value.s()),
                              range_words(after), signed_percent(changed)),
                  {distrust_words(job), largest_part(occupancy_fields(attribution.occupancy))});
  d.line(describe_input(job));
  if (fed) d.line(fed_text(*fed));
  d.show("step_time", "with the edit", after);
  d.show("change", "change", change(changed));
  d["baseline"] = {{"measured", "recorded, measured", c.step_time.measured},
                   {"simulated", "recorded, simulated", before},
                   {"error", {{"median", c.median_error}, {"worst", c.worst_error}}},
                   {"breakdown",
                    std::string(kOccupancyTitle) + ", as recorded",
                    occupancy_fields(unedited.occupancy, before),
                    {},
                    kBars},
                   {"path_parts", json_path_parts(unedited.path)}};
  add_errors(job, d);
  add_attribution(attribution, after, d);
  if (fed) d["input_pipeline"] = fed_json(*fed);
  if (!with.assumptions.empty()) d.show("notes", "Assumptions", with.assumptions);
  d.show("ranks", "Steps",
         rank_rows(job, edited,
                   [&](std::size_t step, Value& row) {
                     add_recorded(c.steps[step], edited.comparison.steps[step], row);
                   }),
         {}, first(kStepsShown));
  d.methods = {Method::kRecordedTimes, Method::kEdits};
  if (fed) d.methods.push_back(Method::kPipeline);
  std::vector<Warning> warnings;
  for (const std::string& edit : idle)
    warnings.push_back({fmt::format("{}: without it every step takes as long", edit),
                        "another edit may set the same times, or hide it: give it alone"});
  d.add_warnings(warnings);
  d.add_problems(job.trace->problems);
  return d;
}

namespace {

/// An edit as it was written, and the options without it.
struct LeftOut {
  std::string edit;
  WhatifOptions others;
};
std::vector<LeftOut> each_left_out(const WhatifOptions& options) {
  std::vector<LeftOut> all;
  const auto leave_out = [&](const std::string& edit, auto change) {
    change(all.emplace_back(LeftOut{edit, options}).others);
  };
  for (std::size_t i = 0; i < named_edits().size(); ++i)
    for (std::size_t k = 0; k < options.named[i].size(); ++k)
      leave_out(fmt::format("{} {}", named_edits()[i].option, options.named[i][k]),
                [&](WhatifOptions& others) {
                  std::vector<std::string>& texts = others.named[i];
                  texts.erase(texts.begin() + static_cast<std::ptrdiff_t>(k));
                });
  if (options.bucket) leave_out("--bucket", [](WhatifOptions& others) { others.bucket.reset(); });
  if (!options.network.empty())
    leave_out("--network", [](WhatifOptions& others) {
      others.network.clear();
      others.data_parallel = 0;
    });
  if (!options.input_pipeline.empty())
    leave_out("--input-pipeline", [](WhatifOptions& others) { others.input_pipeline.clear(); });
  if (options.sum_order)
    leave_out("--sum-order", [](WhatifOptions& others) { others.sum_order.reset(); });
  if (!options.request.sharing.slice.empty())
    leave_out("--slice", [](WhatifOptions& others) { others.request.sharing.slice.clear(); });
  return all;
}

bool as_long(const replay::Comparison& a, const replay::Comparison& b) {
  const auto same = [](const auto& one, const auto& other) {
    return one.has_value() == other.has_value() && (!one || one->simulated == other->simulated);
  };
  return std::ranges::equal(a.steps, b.steps, [&](const auto& one, const auto& other) {
    return same(one.host, other.host) && same(one.device, other.device);
  });
}

/// Several edits may hide or overwrite one another.
Result<std::vector<std::string>> idle_edits(const WhatifOptions& options, const EditedJob& run,
                                            Globals globals) {
  std::vector<std::string> idle;
  const std::vector<LeftOut> all = each_left_out(options);
  if (all.size() < 2) return idle;
  globals.quiet = true;  // the run with all edits has warned
  for (const LeftOut& left_out : all) {
    const Named named = TRY(read_named(left_out.others));
    std::optional<FedBy> fed;
    const Result<ReplayRun> without =
        run_at(run.job, edits_of(left_out.others, named, run.job, globals, fed), Bound::kValue);
    if (without && as_long(without->comparison, run.edited.run.comparison))
      idle.push_back(left_out.edit);
  }
  return idle;
}

Result<Exit> run(const WhatifOptions& options, const Globals& globals) {
  EditedJob run = TRY(run_edits(options, globals));
  run.idle = TRY(idle_edits(options, run, globals));
  if (options.request.sharing.asked())
    return share_recorded({run.job, run.edited.run, run.step}, options.request, "whatif", globals);
  return answer_replay(globals, options.request, run.job, run.edited.run, whatif_document(run));
}

/// Fails if the text cannot be a pipeline; a file's contents are checked later.
Status check_pipeline(const std::string& text) {
  if (!is_inline_pipeline(text)) return {};
  TRY(replay::parse_input_pipeline(text));
  return {};
}

Result<Bytes> parse_bucket(const std::string& text) {
  const Result<Bytes> size = parse_quantity<Bytes>(text);
  if (size && !(*size >= Bytes::b(1) && *size <= Bytes::gib(1024)))
    return fail(fmt::format("'{}' is not a bucket size", text), "1 B to 1 TiB");
  return size;
}

}  // namespace

Result<EditedJob> run_edits(const WhatifOptions& options, const Globals& globals,
                            std::optional<ReplayJob> read) {
  const Named named = TRY(read_named(options));  // before long work
  if (!read) read = TRY(load_job(options.request, globals));
  ReplayJob& job = *read;
  std::optional<FedBy> fed;
  EditedRun edited = TRY(run_edited(job, edits_of(options, named, job, globals, fed)));
  const bool others =
      named.network ||
      (!named.pipeline && !options.input_pipeline.empty() &&
       fills_cpus(job.recordings, *replay::parse_input_pipeline(options.input_pipeline)));
  const Estimate<Seconds> step = edited.step(job, others ? replay::kOtherRanksError : 0);
  return EditedJob{std::move(job), std::move(edited), step, std::move(fed)};
}

void add_edits(CLI::App& command, WhatifOptions& options) {
  const auto add_edit = [&](const char* name, auto& value, auto read, const char* what) {
    return add_value(command, name, "EDIT", value, what)->check(reads_as(read));
  };
  options.named.resize(named_edits().size());
  for (std::size_t i = 0; i < named_edits().size(); ++i) {
    const NamedEdit& edit = named_edits()[i];
    add_edit(edit.option, options.named[i], edit.check, edit.help)->allow_extra_args(false);
  }
  add_edit("--input-pipeline", options.input_pipeline, check_pipeline,
           "workers=N[,prefetch=2][,load=PATTERN][,cpus=N][,receive=TIME], load batches in worker "
           "processes; or "
           "an input pipeline file, which replaces the recorded loading on every host");
  add_number(command, "--batch", options.batch, 1U, 1000000U,
             "samples per batch from the file's pipeline (default: a unit of its last stage)");
  CLI::Option* network =
      add_value(command, "--network", "LINK", options.network,
                "network for the recorded collectives and those of --data-parallel: "
                "latency=5us,rate=100GB/s between ranks, a link file or a cluster file")
          ->check(reads_as(check_link));
  add_number(command, "--data-parallel", options.data_parallel, 1U, 1000000U,
             "number of data-parallel ranks, each with the recorded work, that all-reduce "
             "their gradients")
      ->needs(network);
  add_read(command, "--bucket", "SIZE", options.bucket, parse_bucket,
           "minimum bucket size: recorded sums of gradients are joined until a bucket has it; with "
           "--data-parallel, the size of its buckets (default: 25 MiB)");
  add_read(command, "--sum-order", "ORDER", options.sum_order, parse_sum_order,
           "order of the recorded sums of gradients on their stream: ready, as their gradients "
           "become ready; reverse, among waiting sums the one that became ready last goes first");
}

void check_edits(const WhatifOptions& options) {
  for (std::size_t i = 0; i < named_edits().size(); ++i)
    if (named_edits()[i].given == NamedEdit::Given::kOnce && options.named[i].size() > 1)
      wrong_usage(fmt::format("{} can be given once", named_edits()[i].option));
  if (options.batch > 0 && !feeds_from_file(options))
    wrong_usage("--batch needs --input-pipeline FILE");
  if (options.sum_order && options.data_parallel > 0)
    wrong_usage(
        "--sum-order excludes --data-parallel, whose sums run as their gradients become ready");
}

bool has_edits(const WhatifOptions& options) {
  return !options.input_pipeline.empty() || !options.network.empty() || options.bucket ||
         options.sum_order ||
         std::ranges::any_of(options.named, [](const auto& texts) { return !texts.empty(); });
}

void add_whatif(CLI::App& app, Action& action) {
  auto options = std::make_shared<WhatifOptions>();
  CLI::App* command = app.add_subcommand(
      "whatif",
      "Edit a recording and simulate it: faster kernels, another loader, no collectives, ...");
  add_replay_options(*command, options->request);
  add_edits(*command, *options);
  add_share_options(*command, options->request.sharing, "recording",
                    "run each recorded rank on an instance of this MIG profile, such as 2g.20gb; "
                    "after all other edits but a pipeline file");
  command->footer(
      "Example: rehearse whatif trace.json.gz --scale 'kernel=*gemm*:0.5'\n"
      "Another plan, or number format of all work: rehearse simulate with a job file that has "
      "workload: {recording: trace.json.gz}");
  command->callback([options, &action] {
    if (!has_edits(*options) && options->request.sharing.slice.empty() &&
        !options->request.sharing.asked())
      throw CLI::RequiredError("an edit is missing, such as --scale 'kernel=*gemm*:0.5'",
                               CLI::ExitCodes::RequiredError);
    check_edits(*options);
    if (feeds_from_file(*options) && options->request.sharing.asked())
      wrong_usage("--input-pipeline FILE excludes --share-with");
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
