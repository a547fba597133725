#include "cli/commands/simulate_result.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "cli/config/fidelity_names.h"
#include "cli/output/attribution.h"
#include "models/job/program_ops.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

std::string ranks_text(const job::RankRange& range) {
  if (range.count == 1) return std::to_string(range.first);
  return fmt::format("{}–{}", range.first, range.first + range.count - 1);
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

Value collective_rows(const Simulation& s) {
  Value rows = Value::array();
  for (const CollectiveSum& sum : slowest_collectives(s, 20))
    rows.push_back(
        {{"name", "name", sum.name},
         {"kind", "kind", to_string(sum.kind)},
         {"ranks", "ranks", sum.ranks},
         {"bytes", "size", bare(sum.bytes), in::kMb},
         {"count", "count", sum.count},
         {"mean_s", "mean", bare(sum.total * (1 / static_cast<double>(sum.count))), in::kUs},
         {"slowest_s", "slowest", bare(sum.slowest), in::kUs}});
  return rows;
}

/// How the collectives were simulated, for people.
std::string carried_by(const Simulation& s) {
  if (s.cluster.empty()) return "at the durations of the traces";
  switch (s.fidelity) {
    case step::Fidelity::kClosed:
      return "by closed form";
    case step::Fidelity::kMessage:
      return "message by message: " + counted(s.lowered.messages, "message");
    case step::Fidelity::kSimgrid:
      return "message by message through SimGrid: " + counted(s.lowered.messages, "message");
  }
  return "";
}

/// The basis of the closed forms; nothing if none was used.
std::vector<std::string> pricing_lines(const Simulation& s) {
  std::vector<std::string> lines;
  for (const job::Pricing& p : s.lowered.pricings)
    lines.push_back(fmt::format("{} among {}: {}{}{}", to_string(p.kind), counted(p.ranks, "rank"),
                                p.calibrated ? "calibrated, " : "links of the cluster",
                                !p.calibrated && !p.why.empty() ? ", as " : "", p.why));
  return lines;
}

/// A row per range of ranks; people see the parts that occur.
Value rank_rows(const Simulation& s) {
  Value rows = Value::array();
  const Value mean = occupancy_fields(job::mean(s.occupancy));
  for (const job::RankRange& range : s.occupancy) {
    Value row = {{"", "ranks", ranks_text(range)}, {"rank", range.first}, {"count", range.count}};
    const Value parts = occupancy_fields(range.occupancy, s.step);
    for (std::size_t i = 0; i < parts.fields().size(); ++i) {
      const Entry& part = parts.fields()[i];
      const bool occurs = std::get<Quantity>(mean.fields()[i].value.content()).value > 0;
      row.show(part.key, occurs ? part.label : "", part.value, in::kUs);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Document simulation_document(const Simulation& s) {
  Document d{.command = "simulate", .rows = "ranks", .rows_title = "Ranks"};
  const program::Occupancy mean = job::mean(s.occupancy);
  d.answer = sentence_of(fmt::format("{}, {}{}", s.input, counted(s.job.ranks(), "rank"),
                                     s.cluster.empty() ? "" : " on " + s.cluster),
                         {range_words(s.step, s.cluster.empty() ? "" : " per step"),
                          largest_part(occupancy_fields(mean))});
  d.line(fmt::format(
      "{}; {}, collectives {}", counted(s.job.ops(), "op"),
      !s.lowered.folded ? "every rank was simulated"
      : s.lowered.ranks.size() == 1
          ? "all ranks are equivalent: one was simulated"
          : fmt::format("one rank of each of {} programs was simulated", s.lowered.ranks.size()),
      carried_by(s)));
  d["job"] = {{"input", s.input}, {"ranks", s.job.ranks()}, {"ops", s.job.ops()}};
  if (!s.cluster.empty()) {
    d["cluster"] = s.cluster;
    d["fidelity"] = name_of(s.fidelity);
  }
  d["folded"] = s.lowered.folded;
  d.show("step_time", "step time", s.step);
  if (s.step.low > Seconds::s(0))
    d["throughput"] =
        Quantity(mapped(s.step, [](Seconds time) { return 1 / time.s(); }), unit::kRate);
  const program::Interval interval =
      s.step.value > Seconds::s(0)
          ? program::Interval{s.step.low / s.step.value, s.step.high / s.step.value}
          : program::Interval{};
  add_attribution(
      {mean, program::path_times(s.lowered.graph, job::critical_path(s.job, s.lowered, s.timeline)),
       job::path_parts(s.job, s.lowered, s.timeline, interval, interval)},
      s.step, d);
  d.show("ranks", "Ranks", rank_rows(s), {}, first(20));
  d.show("collectives", "Slowest collectives", collective_rows(s), {}, first(5));
  Value costs = Value::array();
  for (const job::Pricing& p : s.lowered.pricings)
    costs.push_back({{"kind", to_string(p.kind)},
                     {"ranks", p.ranks},
                     {"from", p.calibrated ? "calibration" : "links"},
                     {"why", p.why}});
  d["collective_costs"] = std::move(costs);
  d.show("", "Cost of collectives", pricing_lines(s));
  if (!s.lowered.folded) {
    d["messages"] = s.lowered.messages;
    d["bytes_sent"] = s.lowered.bytes_sent;
  }
  d.add_warnings(s.warnings);
  return d;
}

}  // namespace rehearse::cli
