// rehearse pack: where to put a set of jobs, and why.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/config/pack_file.h"
#include "cli/output/result.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using sharing::Packing;
using sharing::Placed;
using sharing::Sharing;

struct Packed {
  PackFile file;
  Packing packing;
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

std::string why(const Packed& p, const Placed& placed) {
  if (placed.how == Sharing::kAlone) return "no way to share it with others helps the goal";
  std::string rates;
  for (const double rate : placed.rates)
    rates += (rates.empty() ? "" : ", ") + fmt::format("{:.2f}", rate);
  std::string text =
      fmt::format("{:.2f} times the work of one after another; rates {}", placed.gain, rates);
  if (placed.how == Sharing::kSlices) text += "; neighbours do not disturb each other";
  if (placed.how == Sharing::kCrossover) text += "; one computes while another communicates";
  if (placed.how == Sharing::kTogether)
    text +=
        p.file.measured_pairs > 0 ? "; by measured pairs" : "; by time slicing, no pair measured";
  return text;
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
               std::string(sharing::kSharingNames[static_cast<int>(placed.how)]), gpus_of(placed),
               fmt::format("{:.1f}", placed.start.s()), fmt::format("{:.1f}", placed.end.s()),
               why(p, placed)});
  text += table.text(100);
  text += fmt::format("\nall done after {} (every job alone: {}), GPUs held for {} ({})\n",
                      to_string(k.makespan), to_string(k.makespan_alone), to_string(k.held),
                      to_string(k.held_alone));
  if (p.file.usd_per_gpu_hour)
    text += fmt::format("cost {} ({})\n", to_string(Usd::from_si(usd(p, k.held))),
                        to_string(Usd::from_si(usd(p, k.held_alone))));
  if (k.late.s() > 0 || k.late_alone.s() > 0)
    text += fmt::format("late by {} in all ({})\n", to_string(k.late), to_string(k.late_alone));
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
                 std::string(sharing::kSharingNames[static_cast<int>(placed.how)]), gpus_of(placed),
                 placed.slices.empty() ? "" : placed.slices[i],
                 significant(p.packing.started[j].s(), 6), significant(p.packing.finish[j].s(), 6),
                 significant(slowdown(p, j))});
    }
  return table;
}

Json pack_json(const Packed& p) {
  const Packing& k = p.packing;
  Json json = json_root("pack");
  json["goal"] = sharing::kGoalNames[static_cast<int>(p.file.goal)];
  json["placements"] = Json::array();
  for (const Placed& placed : k.placements) {
    Json names = Json::array();
    for (const std::size_t j : placed.jobs) names.push_back(p.file.jobs[j].name);
    json["placements"].push_back({{"jobs", std::move(names)},
                                  {"how", sharing::kSharingNames[static_cast<int>(placed.how)]},
                                  {"gpus", placed.gpus},
                                  {"slices", placed.slices},
                                  {"rates", placed.rates},
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
  if (p.file.usd_per_gpu_hour) {
    json["cost_usd"] = usd(p, k.held);
    json["cost_alone_usd"] = usd(p, k.held_alone);
  }
  return json;
}

Result<Exit> run(const std::filesystem::path& path, const Globals& globals) {
  Result<PackFile> file = load_pack(path);
  if (!file) return forward(file);
  Result<Packing> packing = sharing::pack(file->jobs, file->site, file->goal);
  if (!packing) {
    Error error = std::move(packing.error());
    for (Diagnostic& d : error.diagnostics) d.file = path.string();
    return tl::unexpected(std::move(error));
  }
  const Packed packed{std::move(*file), std::move(*packing)};
  const Formats formats = {.text = [&] { return pack_text(packed); },
                           .json = [&] { return pack_json(packed); },
                           .table = [&] { return pack_table(packed); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_pack(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::filesystem::path>();
  CLI::App* command = app.add_subcommand(
      "pack", "Where to put a set of jobs: slices, together, in turns or alone, and why");
  command->add_option("JOBS", *path, "jobs, and the GPUs to put them on")
      ->type_name("FILE")
      ->required();
  command->footer("Example: rehearse pack examples/fleets/pack.yaml");
  command->callback(
      [path, &action] { action = [path](const Globals& globals) { return run(*path, globals); }; });
}

}  // namespace rehearse::cli
