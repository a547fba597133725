// rehearse pack: placement of a set of jobs on GPUs, with reasons.
#include <fmt/format.h>

#include "cli/commands/options.h"
#include "cli/config/job_file.h"
#include "cli/config/pack_file.h"
#include "cli/output/document.h"
#include "models/sharing/pair_choice.h"
#include "sim/base/text.h"
#include "sim/base/watch.h"

namespace rehearse::cli {
namespace {

using sharing::Packing, sharing::Placed, sharing::SharedHow;

struct Packed {
  PackFile file;
  Packing packing;
  std::vector<std::pair<std::size_t, std::size_t>> to_measure =
      {};  ///< jobs, the most telling first
};

std::string names_of(const Packed& p, const Placed& placed) {
  std::string text;
  for (std::size_t i = 0; i < placed.jobs.size(); ++i) {
    text += (i == 0 ? "" : ", ") + p.file.jobs[placed.jobs[i]].name;
    if (!placed.slices.empty()) text += " on " + placed.slices[i];
  }
  return text;
}

std::string gpus_of(const Placed& placed) { return fmt::format("{}", fmt::join(placed.gpus, " ")); }

/// The basis of the rates of jobs that share a GPU.
std::string basis_of(const Packed& p, std::size_t a, std::size_t b) {
  const PackPairs& pairs = *p.file.pairs;
  const sharing::ShippedPairs* shipped = pairs.shipped();
  const std::string of = shipped ? fmt::format(" on {} (error {:.0f} % on withheld pairs)",
                                               shipped->device, shipped->left_out * 100)
                                 : "";
  switch (pairs.shares(a, b)->basis) {
    case PairShares::Basis::kMeasured: return "as this pair was measured";
    case PairShares::Basis::kFamilies: return "from measured pairs of the same families" + of;
    case PairShares::Basis::kStrangers:
      return fmt::format("from time slicing and pairs of other families{}; measure this pair",
                         shipped ? " on " + shipped->device : "");
    case PairShares::Basis::kSliced: break;
  }
  return "from time slicing, without a measured pair; measure this pair";
}

/// The bases of the rates on slices, each once.
std::string slice_basis_of(const Packed& p, const Placed& placed) {
  constexpr std::string_view kBases[] = {
      "as given", "predicted from a sweep of batch sizes",
      "predicted from a step and its host time",
      "by the share of the compute slices, the least certain estimate"};
  std::string text;
  for (std::size_t basis = 0; basis < std::size(kBases); ++basis)
    for (std::size_t i = 0; i < placed.jobs.size(); ++i)
      if (p.file.basis_on(placed.jobs[i], placed.slices[i]) == static_cast<SliceBasis>(basis)) {
        text += (text.empty() ? "" : ", ") + std::string(kBases[basis]);
        break;
      }
  return text;
}

std::string why(const Packed& p, const Placed& placed) {
  if (placed.how == SharedHow::kAlone) return "sharing it with another job does not help the goal";
  std::string rates;
  for (std::size_t i = 0; i < placed.rates.size(); ++i) {
    rates += fmt::format("{}{:.2f}", i == 0 ? "" : ", ", placed.rates[i]);
    if (placed.ranges.empty()) continue;
    const auto [low, high] = placed.ranges[i];
    if (low < high) rates += fmt::format(" ({:.2f} to {:.2f})", low, high);
  }
  std::string text = fmt::format(
      "{:.2f} times the throughput of running one after another; rates {}", placed.gain, rates);
  if (placed.how == SharedHow::kSlices)
    text += "; slices do not slow each other down; " + slice_basis_of(p, placed);
  if (placed.how == SharedHow::kCrossover)
    text += fmt::format("; one computes while another communicates, links {}",
                        sharing::kLinksNames[static_cast<int>(p.file.site.links)]);
  if (placed.how == SharedHow::kTogether)
    text += "; " + basis_of(p, placed.jobs[0], placed.jobs[1]);
  return text;
}

/// At most `count` pairs of jobs that could share a GPU and have no similar measured pair.
Result<std::vector<std::pair<std::size_t, std::size_t>>> to_measure(const PackFile& file,
                                                                    std::size_t count) {
  std::vector<std::pair<std::size_t, std::size_t>> unknown;
  if (count == 0) return unknown;
  std::vector<sharing::JobPair> pairs, known;
  for (std::size_t a = 0; a < file.jobs.size(); ++a)
    for (std::size_t b = a + 1; b < file.jobs.size(); ++b) {
      const sharing::PackJob &x = file.jobs[a], &y = file.jobs[b];
      if (!x.like || !y.like || !x.memory || !y.memory || x.gpus != 1 || y.gpus != 1 ||
          *x.memory + *y.memory > file.site.memory)
        continue;
      if (file.pairs->measured(a, b)) {
        known.emplace_back(*x.like, *y.like);
        continue;
      }
      const sharing::ShippedPairs* shipped = file.pairs->shipped();
      if (shipped && shipped->law->knows(x.like->family) && shipped->law->knows(y.like->family))
        continue;
      pairs.emplace_back(*x.like, *y.like);
      unknown.emplace_back(a, b);
    }
  if (pairs.size() + known.size() > sharing::kMostToChooseFrom)
    return fail(fmt::format("{} pairs of jobs to choose from", pairs.size() + known.size()),
                fmt::format("{} at most", sharing::kMostToChooseFrom),
                "fewer jobs, one of each family and batch");
  std::vector<std::pair<std::size_t, std::size_t>> chosen;
  for (const std::size_t p : sharing::pairs_to_measure(pairs, count, known))
    chosen.push_back(unknown[p]);
  return chosen;
}

double usd(const Packed& p, Seconds held) {
  return held.s() / 3600 * p.file.usd_per_gpu_hour.value_or(0);
}

double slowdown(const Packed& p, std::size_t job) {
  const Seconds work = p.file.jobs[job].work;
  return work.s() == 0 ? 1 : (p.packing.finish[job] - p.packing.started[job]) / work;
}

Value pair_of(const Value& a, const Value& b) { return Value::array({a, b}); }

/// The screen has a row per placement; CSV has a row per job.
Document pack_document(const Packed& p) {
  const Packing& k = p.packing;
  Document d{.command = "pack", .rows = "per_job", .methods = {Method::kPacking}};
  d.line(fmt::format("{} on {} of {}, for {}", counted(p.file.jobs.size(), "job"),
                     counted(p.file.site.gpus, "GPU"), p.file.device,
                     sharing::kGoalNames[static_cast<int>(p.file.goal)]));
  d["goal"] = sharing::kGoalNames[static_cast<int>(p.file.goal)];
  Value placements = Value::array(), jobs = Value::array();
  for (std::size_t j = 0; j < p.file.jobs.size(); ++j)
    jobs.push_back({{"job", "job", p.file.jobs[j].name}});
  for (const Placed& placed : k.placements) {
    const std::string_view how = sharing::kSharedHowNames[static_cast<int>(placed.how)];
    Value names = Value::array(), ranges = Value::array();
    for (std::size_t i = 0; i < placed.jobs.size(); ++i) {
      const std::size_t j = placed.jobs[i];
      names.push_back(p.file.jobs[j].name);
      Value& job = jobs.list_at(j);
      job.show("", "how", how);
      job.show("", "GPUs", gpus_of(placed));
      job.show("", "slice", placed.slices.empty() ? "" : placed.slices[i]);
    }
    for (const auto& [low, high] : placed.ranges) ranges.push_back(pair_of(low, high));
    placements.push_back({{"", "jobs", names_of(p, placed), {}, kProse},
                          {"jobs", std::move(names)},
                          {"how", "how", how},
                          {"", "GPUs", gpus_of(placed)},
                          {"gpus", placed.gpus},
                          {"slices", placed.slices},
                          {"rates", placed.rates},
                          {"ranges", std::move(ranges)},
                          {"start", "from", placed.start, in::kSeconds, kSpan},
                          {"end", "to", placed.end, in::kSeconds, kSpan},
                          {"gain", placed.gain},
                          {"why", "why", why(p, placed), {}, kProse}});
  }
  for (std::size_t j = 0; j < p.file.jobs.size(); ++j) {
    Value& job = jobs.list_at(j);
    job.show("start", "starts", k.started[j], in::kSeconds);
    job.show("finish", "finishes", k.finish[j], in::kSeconds);
    job.show("slowdown", "slowdown", factor(slowdown(p, j)), in::kTimes);
  }
  d.show("placements", "Placements", std::move(placements));
  d.show("per_job", "Jobs", std::move(jobs), {}, kOnPage);
  Value totals = Value::array();
  const auto total = [&](const char* key, const char* alone_key, const char* label, Quantity packed,
                         Quantity alone) {
    d[key] = packed;
    d[alone_key] = alone;
    totals.push_back({{"", "in all", label}, {"", "packed", packed}, {"", "each alone", alone}});
  };
  total("makespan", "makespan_alone", "all done after", k.makespan, k.makespan_alone);
  total("gpu_time", "gpu_time_alone", "GPUs held for", k.held, k.held_alone);
  total("late", "late_alone", "late by", k.late, k.late_alone);
  if (p.file.usd_per_gpu_hour)
    total("cost_usd", "cost_alone_usd", "cost", bare(Usd::usd(usd(p, k.held))),
          bare(Usd::usd(usd(p, k.held_alone))));
  d.show("", "", std::move(totals));
  d["measure"] = Value::array();
  std::vector<std::string> pairs;
  for (const auto& [a, b] : p.to_measure) {
    d["measure"].push_back(pair_of(p.file.jobs[a].name, p.file.jobs[b].name));
    pairs.push_back(p.file.jobs[a].name + " with " + p.file.jobs[b].name);
  }
  d.show("", "Pairs to measure, the most informative first", pairs);
  return d;
}

struct PackOptions {
  std::filesystem::path path;
  std::size_t measure = 0;
};

Result<Exit> run(const PackOptions& options, const Globals& globals) {
  const std::filesystem::path& path = options.path;
  PackFile file = TRY(load_pack(path));
  std::optional<Watch> watch(std::in_place, globals.progress_of("placing jobs"));
  Packing packing = TRY(in_file(path, sharing::pack(file.jobs, file.site, file.goal)));
  watch.reset();
  auto measure = TRY(in_file(path, to_measure(file, options.measure)));
  const Packed packed{std::move(file), std::move(packing), std::move(measure)};
  return answer_with(globals, pack_document(packed));
}

}  // namespace

void add_pack(CLI::App& app, Action& action) {
  auto options = std::make_shared<PackOptions>();
  CLI::App& command = *app.add_subcommand(
      "pack", "Recommend a placement for a set of jobs: MIG slices, shared, in turns or alone");
  add_value(command, "JOBS", "FILE", options->path, "file of jobs and GPUs")->required();
  command.footer("Example: rehearse pack examples/fleets/pack.yaml");
  add_number(command, "--measure", options->measure, std::size_t{1}, std::size_t{1000},
             "list this many pairs of jobs that are worth measuring together");
  run_by(command, action, options, run);
}

}  // namespace rehearse::cli
