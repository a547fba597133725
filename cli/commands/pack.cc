// rehearse pack: where to put a set of jobs, and why.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/config/job_file.h"
#include "cli/config/pack_file.h"
#include "cli/output/result.h"
#include "models/sharing/pair_choice.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using sharing::Packing;
using sharing::Placed;
using sharing::SharedHow;

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

std::string gpus_of(const Placed& placed) {
  std::string text;
  for (const std::uint32_t gpu : placed.gpus)
    text += fmt::format("{}{}", text.empty() ? "" : " ", gpu);
  return text;
}

/// What rates of jobs side by side rest on.
std::string basis_of(const Packed& p, std::size_t a, std::size_t b) {
  const PackPairs& pairs = *p.file.pairs;
  const sharing::ShippedPairs* shipped = pairs.shipped();
  const std::string of = shipped ? fmt::format(" on {} ({:.0f} % off on pairs left out)",
                                               shipped->device, shipped->left_out * 100)
                                 : "";
  switch (pairs.shares(a, b)->basis) {
    case PairShares::Basis::kMeasured:
      return "as this pair was measured";
    case PairShares::Basis::kFamilies:
      return "by measured pairs of their families" + of;
    case PairShares::Basis::kStrangers:
      return fmt::format("by time slicing and pairs of other families{}: measure it",
                         shipped ? " on " + shipped->device : "");
    case PairShares::Basis::kSliced:
      break;
  }
  return "by time slicing, no pair measured: measure it";
}

/// What rates on slices rest on, each basis once.
std::string slice_basis_of(const Packed& p, const Placed& placed) {
  constexpr std::string_view kBases[] = {"as given", "by the law of a slice, from a sweep",
                                         "by the law of a slice, from a step and its host",
                                         "by the share of the compute slices, the least known"};
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
  if (placed.how == SharedHow::kAlone) return "no way to share it with others helps the goal";
  std::string rates;
  for (std::size_t i = 0; i < placed.rates.size(); ++i) {
    rates += fmt::format("{}{:.2f}", i == 0 ? "" : ", ", placed.rates[i]);
    if (placed.ranges.empty()) continue;
    const auto [low, high] = placed.ranges[i];
    if (low < high) rates += fmt::format(" ({:.2f} to {:.2f})", low, high);
  }
  std::string text =
      fmt::format("{:.2f} times the work of one after another; rates {}", placed.gain, rates);
  if (placed.how == SharedHow::kSlices)
    text += "; neighbours do not disturb each other; " + slice_basis_of(p, placed);
  if (placed.how == SharedHow::kCrossover)
    text += fmt::format("; one computes while another communicates, links {}",
                        sharing::kLinksNames[static_cast<int>(p.file.site.links)]);
  if (placed.how == SharedHow::kTogether)
    text += "; " + basis_of(p, placed.jobs[0], placed.jobs[1]);
  return text;
}

/// Pairs of jobs that could go together and of which nothing near was measured, as far as `count`.
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

std::string pack_text(const Packed& p) {
  const Packing& k = p.packing;
  std::string text = fmt::format("{} on {} of {}, for {}\n\n", counted(p.file.jobs.size(), "job"),
                                 counted(p.file.site.gpus, "GPU"), p.file.device,
                                 sharing::kGoalNames[static_cast<int>(p.file.goal)]);
  Table table({{"jobs", Align::kLeft},
               {"how", Align::kLeft},
               {"GPUs", Align::kLeft},
               {"from (s)"},
               {"to (s)"},
               {"why", Align::kLeft}});
  for (const Placed& placed : k.placements)
    table.add({names_of(p, placed),
               std::string(sharing::kSharedHowNames[static_cast<int>(placed.how)]), gpus_of(placed),
               fmt::format("{:.1f}", placed.start.s()), fmt::format("{:.1f}", placed.end.s()),
               why(p, placed)});
  text += table.text(240);
  text += fmt::format("\nall done after {} (every job alone: {}), GPUs held for {} ({})\n",
                      to_string(k.makespan), to_string(k.makespan_alone), to_string(k.held),
                      to_string(k.held_alone));
  if (p.file.usd_per_gpu_hour)
    text += fmt::format("cost {} ({})\n", to_string(Usd::from_si(usd(p, k.held))),
                        to_string(Usd::from_si(usd(p, k.held_alone))));
  if (k.late.s() > 0 || k.late_alone.s() > 0)
    text += fmt::format("late by {} in all ({})\n", to_string(k.late), to_string(k.late_alone));
  for (std::size_t i = 0; i < p.to_measure.size(); ++i)
    text += fmt::format("{}{} beside {}", i == 0 ? "measure, the most telling first: " : "; ",
                        p.file.jobs[p.to_measure[i].first].name,
                        p.file.jobs[p.to_measure[i].second].name);
  if (!p.to_measure.empty()) text += "\n";
  return text;
}

double slowdown(const Packed& p, std::size_t job) {
  const Seconds work = p.file.jobs[job].work;
  return work.s() == 0 ? 1 : (p.packing.finish[job] - p.packing.started[job]) / work;
}

Table pack_table(const Packed& p) {
  Table table({{"job", Align::kLeft},
               {"how", Align::kLeft},
               {"GPUs", Align::kLeft},
               {"slice", Align::kLeft},
               {"starts (s)"},
               {"finishes (s)"},
               {"slowdown"}});
  for (const Placed& placed : p.packing.placements)
    for (std::size_t i = 0; i < placed.jobs.size(); ++i) {
      const std::size_t j = placed.jobs[i];
      table.add({p.file.jobs[j].name,
                 std::string(sharing::kSharedHowNames[static_cast<int>(placed.how)]),
                 gpus_of(placed), placed.slices.empty() ? "" : placed.slices[i],
                 significant(p.packing.started[j].s(), 6), significant(p.packing.finish[j].s(), 6),
                 significant(slowdown(p, j))});
    }
  return table;
}

Json two(const Json& a, const Json& b) {
  Json list = Json::array();
  list.push_back(a);
  list.push_back(b);
  return list;
}

Json pack_json(const Packed& p) {
  const Packing& k = p.packing;
  Json json = json_root("pack");
  json["goal"] = sharing::kGoalNames[static_cast<int>(p.file.goal)];
  json["placements"] = Json::array();
  for (const Placed& placed : k.placements) {
    Json names = Json::array();
    for (const std::size_t j : placed.jobs) names.push_back(p.file.jobs[j].name);
    Json ranges = Json::array();
    for (const auto& [low, high] : placed.ranges) ranges.push_back(two(low, high));
    json["placements"].push_back({{"jobs", std::move(names)},
                                  {"how", sharing::kSharedHowNames[static_cast<int>(placed.how)]},
                                  {"gpus", placed.gpus},
                                  {"slices", placed.slices},
                                  {"rates", placed.rates},
                                  {"ranges", std::move(ranges)},
                                  {"start", json_measured(placed.start)},
                                  {"end", json_measured(placed.end)},
                                  {"gain", placed.gain},
                                  {"why", why(p, placed)}});
  }
  json["per_job"] = Json::array();
  for (std::size_t j = 0; j < p.file.jobs.size(); ++j)
    json["per_job"].push_back({{"job", p.file.jobs[j].name},
                               {"slowdown", slowdown(p, j)},
                               {"start", json_measured(k.started[j])},
                               {"finish", json_measured(k.finish[j])}});
  json["makespan"] = json_measured(k.makespan);
  json["makespan_alone"] = json_measured(k.makespan_alone);
  json["gpu_time"] = json_measured(k.held);
  json["gpu_time_alone"] = json_measured(k.held_alone);
  json["late"] = json_measured(k.late);
  json["late_alone"] = json_measured(k.late_alone);
  json["measure"] = Json::array();
  for (const auto& [a, b] : p.to_measure)
    json["measure"].push_back(two(p.file.jobs[a].name, p.file.jobs[b].name));
  if (p.file.usd_per_gpu_hour) {
    json["cost_usd"] = usd(p, k.held);
    json["cost_alone_usd"] = usd(p, k.held_alone);
  }
  return json;
}

struct PackOptions {
  std::filesystem::path path;
  std::size_t measure = 0;
};

Result<Exit> run(const PackOptions& options, const Globals& globals) {
  const std::filesystem::path& path = options.path;
  Result<PackFile> file = load_pack(path);
  if (!file) return forward(file);
  Result<Packing> packing = sharing::pack(file->jobs, file->site, file->goal);
  if (!packing) return wrong_in(path, std::move(packing.error()));
  auto measure = to_measure(*file, options.measure);
  if (!measure) return wrong_in(path, std::move(measure.error()));
  const Packed packed{std::move(*file), std::move(*packing), std::move(*measure)};
  const Formats formats = {.text = [&] { return pack_text(packed); },
                           .json = [&] { return pack_json(packed); },
                           .table = [&] { return pack_table(packed); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_pack(CLI::App& app, Action& action) {
  auto options = std::make_shared<PackOptions>();
  CLI::App* command = app.add_subcommand(
      "pack", "Where to put a set of jobs: slices, together, in turns or alone, and why");
  command->add_option("JOBS", options->path, "jobs, and the GPUs to put them on")
      ->type_name("FILE")
      ->required();
  command->footer("Example: rehearse pack examples/fleets/pack.yaml");
  command
      ->add_option("--measure", options->measure,
                   "say which pairs of jobs are worth measuring beside each other, so many")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  command->callback([options, &action] {
    action = [options](const Globals& globals) { return run(*options, globals); };
  });
}

}  // namespace rehearse::cli
