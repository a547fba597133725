#include "cli/commands/simulate_result.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "cli/output/critical_path.h"
#include "cli/output/warnings.h"
#include "cli/output/waterfall.h"
#include "models/job/program_ops.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using program::Occupancy;

struct Part {
  const char* name;  ///< for people
  const char* key;
  graph::Category category;
  Seconds Occupancy::*time;
};
constexpr std::array<Part, 5> kParts = {
    {{"compute", "compute", graph::Category::kCompute, &Occupancy::compute},
     {"exposed communication", "exposed_communication", graph::Category::kCommunication,
      &Occupancy::exposed_communication},
     {"memory", "memory", graph::Category::kMemory, &Occupancy::memory},
     {"host", "host", graph::Category::kHost, &Occupancy::host},
     {"idle", "idle", graph::Category::kDelay, &Occupancy::idle}}};

/// Consecutive ranks of equal occupancy.
struct RankRange {
  std::size_t first;
  std::size_t count;
  Occupancy occupancy;
};

std::vector<RankRange> ranges_of(const Simulation& s) {
  std::vector<std::size_t> run_of_program(s.job.programs.size(), 0);
  for (std::size_t i = 0; i < s.lowered.ranks.size(); ++i)
    run_of_program[s.job.program_of[s.lowered.ranks[i].index()]] = i;
  std::vector<RankRange> ranges;
  for (std::size_t r = 0; r < s.job.ranks(); ++r) {
    const Occupancy& occupancy =
        s.occupancy[s.lowered.folded ? run_of_program[s.job.program_of[r]] : r];
    if (ranges.empty() || !(ranges.back().occupancy == occupancy))
      ranges.push_back({r, 0, occupancy});
    ++ranges.back().count;
  }
  return ranges;
}

std::string ranks_text(const RankRange& range) {
  if (range.count == 1) return std::to_string(range.first);
  return fmt::format("{}–{}", range.first, range.first + range.count - 1);
}

/// By ranges, so that ranks that are alike give exactly what each of them has.
Occupancy mean_of(const Simulation& s) {
  Occupancy mean;
  for (const RankRange& range : ranges_of(s))
    for (const Part& part : kParts)
      mean.*part.time +=
          range.occupancy.*part.time * (static_cast<double>(range.count) / s.job.ranks());
  return mean;
}

/// Collectives of one name, size and number of ranks.
struct CollectiveSum {
  std::string name;
  CollectiveKind kind;
  Bytes bytes;
  std::size_t ranks;
  std::size_t count = 0;
  Seconds total = Seconds::s(0);
  Seconds slowest = Seconds::s(0);
};

std::vector<CollectiveSum> slowest_collectives(const Simulation& s, std::size_t most) {
  std::map<std::tuple<std::string_view, CollectiveKind, double, std::size_t>, CollectiveSum> sums;
  for (const job::Collective& c : s.lowered.collectives) {
    const std::string_view name = s.lowered.graph.name(c.members.front());
    const std::size_t ranks = s.job.groups[c.group].members.size();
    CollectiveSum& sum = sums.try_emplace({name, c.kind, c.bytes.b(), ranks},
                                          CollectiveSum{std::string(name), c.kind, c.bytes, ranks})
                             .first->second;
    const Seconds time = job::time_of(c, s.timeline);
    ++sum.count;
    sum.total += time;
    sum.slowest = std::max(sum.slowest, time);
  }
  std::vector<CollectiveSum> list;
  list.reserve(sums.size());
  for (auto& [key, sum] : sums) list.push_back(std::move(sum));
  std::stable_sort(list.begin(), list.end(), [](const CollectiveSum& a, const CollectiveSum& b) {
    return a.slowest > b.slowest;
  });
  if (list.size() > most) list.erase(list.begin() + static_cast<std::ptrdiff_t>(most), list.end());
  return list;
}

Table collective_table(const std::vector<CollectiveSum>& sums) {
  Table table({{"slowest collectives", Align::kLeft},
               {"kind", Align::kLeft},
               {"ranks"},
               {"size (MB)"},
               {"count"},
               {"mean (us)"},
               {"slowest (us)"}});
  for (const CollectiveSum& sum : sums)
    table.add({sum.name, std::string(to_string(sum.kind)), grouped(sum.ranks),
               significant(sum.bytes.b() * 1e-6), grouped(sum.count),
               fmt::format("{:.1f}", sum.total.us() / static_cast<double>(sum.count)),
               fmt::format("{:.1f}", sum.slowest.us())});
  return table;
}

/// How the collectives were had, for people.
std::string carried_by(const Simulation& s) {
  switch (s.fidelity) {
    case SimulateFidelity::kClosed:
      return "by closed form";
    case SimulateFidelity::kMessage:
      return "message by message: " + counted(s.lowered.messages, "message");
    case SimulateFidelity::kSimgrid:
      return "message by message through SimGrid: " + counted(s.lowered.messages, "message");
  }
  return "";
}

/// What closed forms rest on; nothing where there were none.
std::string pricing_text(const Simulation& s) {
  std::string text;
  for (const job::Pricing& p : s.lowered.pricings)
    text += fmt::format("{} among {}: {}{}{}\n", to_string(p.kind), counted(p.ranks, "rank"),
                        p.calibrated ? "calibrated, " : "links of the cluster",
                        !p.calibrated && !p.why.empty() ? ", as " : "", p.why);
  return text;
}

/// A part of the step, with the interval of the whole in proportion.
Estimate<Seconds> part_of(const Estimate<Seconds>& step, Seconds part) {
  if (step.value == Seconds::s(0)) return {part, part, part, step.provenance};
  return {part, part * (step.low / step.value), part * (step.high / step.value), step.provenance};
}

}  // namespace

Table rank_table(const Simulation& s) {
  std::vector<Column> columns = {{"ranks", Align::kLeft}};
  for (const Part& part : kParts) columns.push_back({fmt::format("{} (us)", part.name)});
  Table table(std::move(columns));
  for (const RankRange& range : ranges_of(s)) {
    std::vector<std::string> row = {ranks_text(range)};
    for (const Part& part : kParts)
      row.push_back(fmt::format("{:.1f}", (range.occupancy.*part.time).us()));
    table.add(std::move(row));
  }
  return table;
}

std::string simulation_text(const Simulation& s) {
  std::string text = fmt::format("{}: {} on {}, {}\n", s.input, counted(s.job.ranks(), "rank"),
                                 s.cluster, counted(s.job.ops(), "op"));
  text +=
      fmt::format("{}, collectives {}\n\n",
                  !s.lowered.folded             ? "every rank was run"
                  : s.lowered.ranks.size() == 1 ? "all ranks do the same: one was run"
                                                : fmt::format("one rank of each of {} programs was "
                                                              "run",
                                                              s.lowered.ranks.size()),
                  carried_by(s));
  text += fmt::format("step time   {} ({} – {}, {})\n", to_string(s.step.value, 4),
                      to_string(s.step.low, 4), to_string(s.step.high, 4),
                      to_string(s.step.provenance));
  text += "\nRank occupancy, mean over ranks\n";
  const Occupancy mean = mean_of(s);
  std::vector<WaterfallPart> parts;
  parts.reserve(kParts.size());
  for (const Part& part : kParts) parts.push_back({part.name, mean.*part.time, part.category});
  text += waterfall_text(parts, s.step.value);
  constexpr std::size_t kRowsShown = 20;
  text += "\n" + rank_table(s).text(60, kRowsShown);
  if (!s.lowered.collectives.empty())
    text += "\n" + collective_table(slowest_collectives(s, 5)).text(40);
  if (const std::string pricing = pricing_text(s); !pricing.empty()) text += "\n" + pricing;
  return text;
}

Json simulation_json(const Simulation& s) {
  Json json = json_root("simulate");
  json["job"] = {{"input", s.input}, {"ranks", s.job.ranks()}, {"ops", s.job.ops()}};
  json["cluster"] = s.cluster;
  json["fidelity"] = name_of(s.fidelity);
  json["folded"] = s.lowered.folded;
  json["step_time"] = json_predicted(s.step);
  if (s.step.low > Seconds::s(0))
    json["throughput"] = {{"value", 1 / s.step.value.s()},
                          {"low", 1 / s.step.high.s()},
                          {"high", 1 / s.step.low.s()},
                          {"unit", "1/s"},
                          {"provenance", to_string(s.step.provenance)}};
  const Occupancy mean = mean_of(s);
  json["breakdown"] = {{"total", json_predicted(s.step)}};
  for (const Part& part : kParts)
    json["breakdown"][part.key] = json_predicted(part_of(s.step, mean.*part.time));
  const program::Interval interval =
      s.step.value > Seconds::s(0)
          ? program::Interval{s.step.low / s.step.value, s.step.high / s.step.value}
          : program::Interval{};
  const program::PathParts path = job::path_parts(s.job, s.lowered, s.timeline, interval, interval);
  json["path"] = json_path(path);
  json["path_parts"] = json_path_parts(path);
  json["step_from"] = json_provenance(path.shares_by_provenance());
  json["ranks"] = Json::array();
  for (const RankRange& range : ranges_of(s)) {
    Json row = {{"rank", range.first}, {"count", range.count}};
    for (const Part& part : kParts)
      row[part.key] = json_predicted(part_of(s.step, range.occupancy.*part.time));
    json["ranks"].push_back(std::move(row));
  }
  json["collectives"] = Json::array();
  for (const CollectiveSum& sum : slowest_collectives(s, 20))
    json["collectives"].push_back({{"name", sum.name},
                                   {"kind", to_string(sum.kind)},
                                   {"ranks", sum.ranks},
                                   {"bytes", sum.bytes.b()},
                                   {"count", sum.count},
                                   {"mean_s", sum.total.s() / static_cast<double>(sum.count)},
                                   {"slowest_s", sum.slowest.s()}});
  json["collective_costs"] = Json::array();
  for (const job::Pricing& p : s.lowered.pricings)
    json["collective_costs"].push_back({{"kind", to_string(p.kind)},
                                        {"ranks", p.ranks},
                                        {"from", p.calibrated ? "calibration" : "links"},
                                        {"why", p.why}});
  if (!s.lowered.folded) {
    json["messages"] = s.lowered.messages;
    json["bytes_sent"] = s.lowered.bytes_sent;
  }
  put_warnings(json, s.warnings);
  return json;
}

}  // namespace rehearse::cli
