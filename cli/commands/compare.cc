// rehearse compare: jobs, recordings and saved results next to each other.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "cli/commands/catalog_names.h"
#include "cli/commands/describe_job.h"
#include "cli/commands/options.h"
#include "cli/commands/predicted_job.h"
#include "cli/commands/replay_job.h"
#include "cli/comparing/side.h"
#include "cli/config/fidelity_names.h"
#include "profiler/ingest/detect.h"
#include "profiler/replay/interval.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/watch.h"

namespace rehearse::cli {
namespace {

struct CompareOptions {
  std::vector<std::filesystem::path> inputs;
  std::vector<std::filesystem::path> clusters;
  std::vector<std::string> plans, devices;
  DescribedJob described;
  step::Fidelity fidelity = step::Fidelity::kMessage;
};

/// A job file on its own cluster or another.
Result<Side> predicted_side(std::string name, const std::filesystem::path& path,
                            const std::filesystem::path& cluster, const CompareOptions& options) {
  const PredictedJob job =
      TRY(predict_job(path, {.cluster = cluster, .fidelity = options.fidelity}));
  return side_of(std::move(name), step_document(job));
}

Result<Side> recorded_side(const std::filesystem::path& path, const Globals& globals) {
  ReplayRequest request;
  request.inputs = {path};
  const ReplayJob job = TRY(load_job(request, globals));
  const Estimate<Seconds> step = replay::estimate_step(job.recorded.comparison);
  Document d;
  d["step_time"] = step;
  d.methods = {Method::kRecordedTimes};
  add_attribution(attribution_of(job, job.recorded, step), step, d);
  return side_of(path.filename().string(), d);
}

Result<Side> side_of_input(const std::filesystem::path& path, const CompareOptions& options,
                           const Globals& globals) {
  if (ingest::detect_input(path)) return recorded_side(path, globals);
  if (is_job_file(path)) return predicted_side(path.filename().string(), path, {}, options);
  return read_side(path);
}

/// The job that options describe, under each plan or on each device.
Result<std::vector<Side>> described_sides(const CompareOptions& options) {
  const bool by_device = options.devices.size() > 1;
  std::vector<Side> sides;
  for (const std::string& varied : by_device ? options.devices : options.plans) {
    DescribedJob job = options.described;
    (by_device ? job.device : job.plan) = varied;
    if (by_device && !options.plans.empty()) job.plan = options.plans.front();
    std::filesystem::path path;
    sides.push_back(TRY(on_described_job(
        job, JobUse::kOnePlan, path, [&] { return predicted_side(varied, path, {}, options); })));
  }
  return sides;
}

Result<std::vector<Side>> sides_of(const CompareOptions& options, const Globals& globals) {
  if (!options.described.model.empty()) return described_sides(options);
  std::vector<Side> sides;
  for (const std::filesystem::path& path : options.inputs)
    sides.push_back(TRY(side_of_input(path, options, globals)));
  for (const std::filesystem::path& cluster : options.clusters)
    sides.push_back(
        TRY(predicted_side(cluster.filename().string(), options.inputs.front(), cluster, options)));
  // Files of one name in several folders.
  for (std::size_t i = 0; i < options.inputs.size(); ++i)
    for (std::size_t j = 0; j < options.inputs.size(); ++j)
      if (i != j && options.inputs[i].filename() == options.inputs[j].filename())
        sides[i].name = options.inputs[i].string();
  return sides;
}

/// "a.yaml and b.yaml have the same results"
std::string same_words(const Side& a, const Side& b) {
  if (a.name == b.name) return fmt::format("{} has the same results twice", a.name);
  return fmt::format("{} and {} have the same results", a.name, b.name);
}

/// "B is 1.34 times as fast as A (1.20 – 1.50)", the faster one first.
std::string speed_words(const Side& a, const Side& b, const Estimate<double>& ratio) {
  const bool b_first = ratio.value >= 1;
  const Estimate<double> shown = b_first ? ratio : mapped(ratio, [](double r) { return 1 / r; });
  return fmt::format("{} is {} times as fast as {} ({} – {}{})", b_first ? b.name : a.name,
                     significant(shown.value), b_first ? a.name : b.name, significant(shown.low),
                     significant(shown.high), shown.low < 1 ? ": not certain" : "");
}

/// "tp2 does not fit"
std::string memory_words(const std::vector<Side>& sides) {
  std::vector<std::string> words;
  for (const Side& side : sides)
    if (!side.verdict.empty() && side.verdict != "fits")
      words.push_back(fmt::format("{} {}", side.name, side.verdict));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// "17.8 samples/s (14.3 – 19.3)": the ends have units only where one has another unit.
std::string cell_words(const Quantity& q) {
  std::array<std::string, 3> words = {q.unit->text(q.value)};
  if (!q.interval || q.interval->first == q.interval->second) return words[0];
  words[1] = q.unit->text(q.interval->first);
  words[2] = q.unit->text(q.interval->second);
  const auto unit_of = [](const std::string& text) {
    return text.substr(std::min(text.find(' '), text.size()));
  };
  const std::string unit = unit_of(words[0]);
  if (unit_of(words[1]) == unit && unit_of(words[2]) == unit)
    for (std::string* end : {&words[1], &words[2]}) end->resize(end->size() - unit.size());
  return fmt::format("{} ({} – {})", words[0], words[1], words[2]);
}

/// The part of the step that differs most: "the largest difference is compute: 4.16 s in tp8 and
/// 3.60 s in tp4", since the answer may name the faster side first.
std::string largest_difference(const Side& a, const Side& b) {
  double most = 0;
  std::string words;
  for (std::size_t p = 0; p < a.parts.size(); ++p) {
    if (!a.parts[p] || !b.parts[p]) continue;
    const double difference = std::abs(b.parts[p]->value - a.parts[p]->value);
    if (difference <= most) continue;
    most = difference;
    words = fmt::format("the largest difference is {}: {} in {} and {} in {}",
                        part_fields()[p].label, unit::kTime.text(a.parts[p]->value), a.name,
                        unit::kTime.text(b.parts[p]->value), b.name);
  }
  return words;
}

/// A row for each field that a side has: every side, and the change of the last from the first.
Value difference_rows(const std::vector<Side>& sides, std::span<const ComparedField> fields,
                      std::vector<std::optional<Quantity>> Side::*values) {
  Value rows = Value::array();
  for (std::size_t m = 0; m < fields.size(); ++m) {
    const auto at = [&](const Side& side) { return (side.*values)[m]; };
    if (std::ranges::none_of(sides,
                             [&](const Side& side) { return at(side) && at(side)->value != 0; }))
      continue;
    Value row = {{"key", fields[m].path},
                 {"", "quantity", fields[m].label},
                 {"", "unit", fields[m].unit->si, {}, kInTables}};
    Value each = Value::array();
    for (const Side& side : sides) {
      row.show("", side.name, at(side) ? cell_words(*at(side)) : "–", {}, kOnScreen);
      if (at(side)) row.show("", side.name, *at(side), {}, kOnPage);
      const auto end = [&](bool high) -> std::optional<double> {
        if (!at(side) || !at(side)->interval) return std::nullopt;
        return high ? at(side)->interval->second : at(side)->interval->first;
      };
      row.show("", side.name + ", value", at(side) ? Value(at(side)->value) : Value(), {},
               kInTables);
      row.show("", side.name + ", low", end(false), {}, kInTables);
      row.show("", side.name + ", high", end(true), {}, kInTables);
      each.push_back(at(side));
    }
    row["values"] = std::move(each);
    const auto first = at(sides.front()), last = at(sides.back());
    if (first && last && first->value > 0)
      row.show("change", "change", change(last->value / first->value - 1));
    rows.push_back(std::move(row));
  }
  return rows;
}

Document comparison_document(const std::vector<Side>& sides) {
  const Side &a = sides.front(), &b = sides[1];
  Document d{.command = "compare", .rows = "differences", .rows_title = "Differences"};
  const std::optional<Speedup> speed = speedup(a, b);
  const std::string memory = memory_words(sides);
  d.answer =
      (memory.empty() ? "" : memory + "; ") + sentence_of(same_results(a, b) ? same_words(a, b)
                                                          : speed ? speed_words(a, b, speed->ratio)
                                                                  : a.name + " and " + b.name,
                                                          {largest_difference(a, b)});
  if (speed) {
    d.line(fmt::format("compared by {}", speed->by->label));
    d["ratio"] = Quantity(speed->ratio, unit::kFactor);
    d["compared_by"] = speed->by->path;
  }
  Value list = Value::array();
  for (const Side& side : sides) {
    const std::optional<Speedup> to_first = speedup(a, side);
    Value ratio = to_first ? Value(Quantity(to_first->ratio, unit::kFactor)) : Value();
    Value row = {{"name", "compared", side.name}, {"verdict", "memory", side.verdict}};
    row.show("ratio", fmt::format("speed, {} = 1", a.name), &side == &a ? Value(factor(1)) : ratio);
    list.push_back(std::move(row));
  }
  d.show("sides", sides.size() > 2 ? "Compared" : "", std::move(list));
  d.show("differences", "Results", difference_rows(sides, whole_fields(), &Side::whole));
  d.show("breakdown", "Rank occupancy per step, mean over ranks",
         difference_rows(sides, part_fields(), &Side::parts));
  for (const Side& side : sides)
    for (const Method method : side.methods)
      if (std::ranges::find(d.methods, method) == d.methods.end()) d.methods.push_back(method);
  return d;
}

Result<Exit> run(const CompareOptions& options, const Globals& globals) {
  std::optional<Watch> watch(std::in_place, globals.progress_of("comparing"));
  const std::vector<Side> sides = TRY(sides_of(options, globals));
  watch.reset();
  return answer_with(globals, comparison_document(sides));
}

void check(CompareOptions& options) {
  if (options.described.model.empty()) {
    if (!options.devices.empty() || !options.plans.empty())
      wrong_usage("--plan and --device need --model");
    if (!options.clusters.empty() && options.inputs.size() != 1)
      wrong_usage("--cluster needs one job file, which is compared on each cluster");
    if (options.inputs.size() + options.clusters.size() < 2)
      wrong_usage("compare needs two or more inputs, or --model NAME");
    return check_described_job({}, options.described, JobUse::kOnePlan);
  }
  if (!options.inputs.empty() || !options.clusters.empty())
    wrong_usage("inputs or --model, not both");
  if (options.devices.size() > 1 && options.plans.size() > 1)
    wrong_usage("several --plan or several --device, not both");
  if (options.devices.size() < 2 && options.plans.size() < 2)
    wrong_usage("--model needs --plan or --device more than once");
  if (!options.devices.empty()) options.described.device = options.devices.front();
  check_described_job({}, options.described, JobUse::kOnePlan);
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand(
      "compare", "Show how jobs, plans, clusters, recordings or saved results differ");
  add_value(*command, "INPUT", "FILE", options->inputs,
            "job files, recordings, or results saved with --format json -o FILE; the first is the "
            "reference");
  const auto add_list = [&](const char* name, const char* type, auto& list, const char* what) {
    return add_value(*command, name, type, list, what)->allow_extra_args(false);
  };
  add_list("--cluster", "FILE", options->clusters,
           "compare the job on this cluster, too; repeatable");
  add_described_job(*command, options->described, JobUse::kOnePlan);
  for (const char* single : {"--plan", "--device", "--save"})
    command->remove_option(command->get_option(single));
  add_list("--plan", "PLAN", options->plans,
           "with --model: degrees and keys of a plan, such as tp8,pp4,zero=1; repeatable");
  offer(add_list("--device", "NAME", options->devices,
                 "with --model: a GPU of the catalog, on nodes of 8, or an instance; repeatable"),
        device_names);
  add_choice(*command, "--fidelity", options->fidelity, kFidelityNames,
             "closed, message (default) or simgrid", "fidelity");
  command->footer(
      "Examples:\n"
      "  rehearse compare before.json.gz after.json.gz\n"
      "  rehearse compare job.yaml --cluster h200.yaml --cluster b200.yaml\n"
      "  rehearse compare --model llama3_8b --gpus 16 --device h100_sxm5_80 --batch 64 --plan tp2 "
      "--plan tp4,pp2");
  command->callback([options, &action] {
    check(*options);
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
