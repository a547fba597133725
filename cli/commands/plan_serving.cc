#include "cli/commands/plan_serving.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/commands/plan_result.h"
#include "cli/commands/simulate_serving.h"
#include "cli/output/document.h"
#include "cli/planning/emit_server.h"
#include "cli/planning/setting_fields.h"
#include "cli/report/report.h"
#include "sim/base/file.h"
#include "sim/base/on_threads.h"
#include "sim/base/text.h"
#include "sim/work/communicator.h"

namespace rehearse::cli {
namespace {

/// A setting that is shown: run as `simulate` runs it.
struct Shown {
  std::string plan;
  std::vector<ServerFlag> flags;
  Value row;          ///< of a table
  Value fields;       ///< as `simulate` answers; of the best settings alone
  std::string words;  ///< of the first one, for the sentence
};

/// Figures of a setting, for people and programs.
Value figures_of(const ServedLoad& load) {
  Value row = Value::object();
  row.show("goodput_per_device", "requests/s per GPU",
           Quantity(load.goodput_per_device(), unit::kRate), {"1/s", 1, 3});
  row.show("tokens_per_s_per_device", "tokens/s/GPU",
           Quantity(load.tokens_per_s_per_device(), unit::kTokens), {"1/s", 1, 4});
  row.show("tokens_per_s_per_user", "tokens/s/user",
           Quantity(load.tokens_per_user(), unit::kTokens), {"1/s", 1, 3});
  row.show("mean_ttft", "TTFT", load.ttft(&serving::Spread::mean), in::kMs);
  row.show("mean_tpot", "TPOT", load.mean_tpot(), in::kMs);
  return row;
}

/// `in_full`: also what `simulate` answers.
Result<Shown> shown(const ServeFile& file, const ServerSetting& setting, bool in_full) {
  ServeFile job = file;
  set(job, setting);
  const ServedLoad load = TRY(serve(job));
  const std::vector<ServerFlag> flags = TRY(flags_of(job));
  const std::string plan = plan_words(setting);
  Shown shown;
  shown.plan = plan;
  shown.flags = flags;
  shown.row = TRY(setting_fields(job));
  if (job.prefill) shown.row.show("", "prompt tokens per step", job.prefill->rules.tokens_per_step);
  shown.row.show("devices", "GPUs", job.devices);
  if (job.scaling)
    shown.row.show("mean_devices", "on average",
                   Quantity(load.estimate<double>([&](const serving::Measures& m) {
                     return device_seconds(job, m) / m.duration;
                   }),
                            unit::kCount),
                   {"GPUs", 1, 3});
  shown.row.add(figures_of(load));
  if (!in_full) return shown;
  const Document document = TRY(serving_document(load));
  shown.fields = without_labels(document.content);
  const Estimate<double> goodput = load.goodput_per_device();
  // The tokens and rows of a step.
  const std::vector<ServerFlag> limits(flags.begin(), flags.begin() + 2);
  shown.words = sentence_of(
      fmt::format("{} on {} × {} by {}, {}, {}", job.deployment.model.name, job.devices,
                  job.deployment.device,
                  serving::kFrameworkNames[static_cast<std::size_t>(job.deployment.framework)],
                  plan, flag_words(limits)),
      {fmt::format("{} ({} – {}) requests/s per GPU{}", significant(goodput.value),
                   significant(goodput.low), significant(goodput.high),
                   file.slo ? " within the SLO" : ""),
       "TTFT " + range_words(load.ttft(&serving::Spread::mean)),
       "TPOT " + range_words(load.mean_tpot())});
  return shown;
}

/// All of them on threads, in their order.
Result<std::vector<Shown>> shown_all(const ServeFile& file, const std::vector<FoundSetting>& found,
                                     bool in_full, unsigned threads) {
  std::vector<std::optional<Result<Shown>>> results(found.size());
  on_threads(found.size(), threads,
             [&](std::size_t i) { results[i] = shown(file, found[i].setting, in_full); });
  std::vector<Shown> all;
  for (std::optional<Result<Shown>>& each : results) all.push_back(TRY(*std::move(each)));
  return all;
}

const std::string* find(const std::vector<ServerFlag>& flags, std::string_view name) {
  const auto at = std::ranges::find(flags, name, &ServerFlag::name);
  return at == flags.end() ? nullptr : &at->value;
}

/// The flags that all settings share, and the names of the others.
struct SharedFlags {
  std::vector<ServerFlag> common;
  std::vector<std::string_view> differ;
};
SharedFlags shared_flags(const std::vector<Shown>& settings) {
  SharedFlags shared;
  for (const Shown& setting : settings)
    for (const ServerFlag& flag : setting.flags) {
      const bool known = find(shared.common, flag.name) != nullptr ||
                         std::ranges::find(shared.differ, flag.name) != shared.differ.end();
      if (known) continue;
      const bool same = std::ranges::all_of(settings, [&](const Shown& other) {
        const std::string* value = find(other.flags, flag.name);
        return value != nullptr && *value == flag.value;
      });
      if (same)
        shared.common.push_back(flag);
      else
        shared.differ.push_back(flag.name);
    }
  return shared;
}

/// The row of a table: its plan, the flags that differ, and its figures. The first two flags are the
/// tokens and rows of a step, under long names.
Value row_of(const Shown& setting, const std::vector<std::string_view>& differ) {
  Value row = {{"", "plan", setting.plan}};
  for (const std::string_view name : differ) {
    const std::string* value = find(setting.flags, name);
    const std::string_view heading = name == setting.flags[0].name   ? "tokens per step"
                                     : name == setting.flags[1].name ? "rows"
                                                                     : name;
    row.show("", heading, value == nullptr ? "" : *value);
  }
  row.add(setting.row);
  return row;
}

Document document_of(const ServeFile& file, const FoundSettings& found,
                     const std::vector<Shown>& best, const std::vector<Shown>& front,
                     ServerObjective objective) {
  Document d{.command = "plan",
             .rows = "best",
             .rows_title = "Settings",
             .methods = {Method::kServerSearch, Method::kServer}};
  const std::string_view by = kServerObjectiveNames[static_cast<std::size_t>(objective)];
  d.answer =
      best.front().words + fmt::format("; best of {} settings by {}", grouped(found.seen), by);
  d.line(fmt::format("{} settings seen, {} run", grouped(found.seen), grouped(found.evaluated)));
  d["job"] = {{"workload", file.deployment.model.name}, {"devices", file.in_cluster}};
  d["objective"] = by;
  d["candidates_seen"] = found.seen;
  d["candidates_evaluated"] = found.evaluated;
  d["candidates_per_s"] = found.seen_per_s;
  d["evaluated_per_s"] = found.evaluated_per_s;
  d["left_out"] = Value::array();
  std::vector<std::string> left_out;
  for (const LeftOut& l : found.left_out) {
    d["left_out"].push_back({{"reason", l.reason}, {"count", l.count}, {"example", l.example}});
    left_out.push_back(fmt::format("{} {}: {}", grouped(l.count), l.reason, l.example));
  }
  std::vector<Shown> all = best;
  all.insert(all.end(), front.begin(), front.end());
  const SharedFlags flags = shared_flags(all);
  if (!flags.common.empty()) d.show("", "flags of all", flag_words(flags.common));
  Value rows = Value::array(), curve = Value::array();
  for (std::size_t i = 0; i < best.size(); ++i) {
    Value one = {{"", "rank", i + 1}};
    one.add(row_of(best[i], flags.differ));
    one.add(best[i].fields);
    rows.push_back(std::move(one));
  }
  for (const Shown& each : front) curve.push_back(row_of(each, flags.differ));
  d.show("best", fmt::format("The best {} by {}", counted(best.size(), "setting"), by),
         std::move(rows));
  constexpr std::size_t kRows = 12;
  d.show("pareto", "Pareto front of tokens/s per user and per GPU", std::move(curve), {},
         first(kRows));
  if (!left_out.empty()) d.show("", "Left out", left_out);
  d["notes"] = file.notes;
  if (!file.notes.empty()) d.show("", "Notes", file.notes);
  return d;
}

Result<Exit> emit_best(const ServeFile& file, const FoundSettings& found,
                       const PlanServingOptions& options, const Document& document,
                       const Globals& globals) {
  ServeFile job = file;
  set(job, found.best.front().setting);
  const ServerLaunch launch = TRY(emit_server(job, document.answer));
  for (const std::string& note : launch.notes) globals.warn(note);
  Document d{.command = "plan"};
  d.line(launch.text);
  d["launch"] = {{"framework", serving::kFrameworkNames[static_cast<std::size_t>(*options.emit)]},
                 {"text", launch.text},
                 {"notes", launch.notes}};
  d.content.add(TRY(setting_fields(job)));
  return answer_with(globals, d);
}

}  // namespace

Result<Exit> plan_serving(const PlanServingOptions& options, strategies::SearchOptions search,
                          const Globals& globals) {
  const ServeFile file = TRY(load_serve_file(options.job_file, options.cluster));
  if (options.emit && *options.emit != file.deployment.framework)
    return fail(
        fmt::format("--emit {}: the job describes a server by {}",
                    serving::kFrameworkNames[static_cast<std::size_t>(*options.emit)],
                    serving::kFrameworkNames[static_cast<std::size_t>(file.deployment.framework)]),
        fmt::format("set serve.framework to {}, because settings of one server are not the "
                    "best of another",
                    serving::kFrameworkNames[static_cast<std::size_t>(*options.emit)]));
  const unsigned threads = search.threads;
  const Result<FoundSettings> found =
      find_settings(file, {.objective = options.objective, .search = std::move(search)});
  if (!found) return wrong_in(options.job_file, found.error());
  if (!work::leads()) return Exit::kSuccess;
  const Result<std::vector<Shown>> best = shown_all(file, found->best, true, threads);
  if (!best) return wrong_in(options.job_file, best.error());
  const Result<std::vector<Shown>> front = shown_all(file, found->front, false, threads);
  if (!front) return wrong_in(options.job_file, front.error());
  const Document document = document_of(file, *found, *best, *front, options.objective);
  const ReportDetails details{.inputs = {options.job_file}};
  if (!options.emit) return answer_with(globals, document, Exit::kSuccess, details);
  TRY(write_report(globals, document, details));
  return emit_best(file, *found, options, document, globals.without_page());
}

}  // namespace rehearse::cli
