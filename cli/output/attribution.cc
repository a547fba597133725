#include "cli/output/attribution.h"

#include <algorithm>

#include "cli/output/table.h"

namespace rehearse::cli {
namespace {

/// The field that `shown` makes of each part.
template <class Shown>
Value fields_of(const program::Occupancy& of, Shown shown) {
  return {{"total", shown(of.total)},
          {"compute", "compute", shown(of.compute)},
          {"exposed_communication", "exposed communication", shown(of.exposed_communication)},
          {"memory", "memory", shown(of.memory)},
          {"bubble", "bubble", shown(of.bubble)},
          {"input", "input", shown(of.input)},
          {"launch", "launch", shown(of.launch)},
          {"host_bound", "host-bound", shown(of.host)},
          {"unexplained_wait", "unexplained wait", shown(of.unexplained_wait)},
          {"profiler", "profiler", shown(of.profiler)},
          {"idle", "idle", shown(of.idle)}};
}

/// By category of op, with the largest of each.
Json json_critical_path(const program::PathTimes& path, const Estimate<Seconds>& step) {
  Json list = Json::array();
  Seconds total = Seconds::s(0);
  for (const Seconds time : path.by_category) total += time;
  for (std::size_t c = 0; c < path.by_category.size(); ++c) {
    if (path.by_category[c] == Seconds::s(0)) continue;
    Json top = Json::array();
    std::size_t listed = 0;
    for (const program::PathTimes::Named& share : path.by_name)
      if (static_cast<std::size_t>(share.category) == c && listed++ < 5)
        top.push_back({{"name", share.name}, {"time", part_of(step, share.time)}});
    list.push_back({{"category", graph::kCategoryNames[c]},
                    {"time", part_of(step, path.by_category[c])},
                    {"share", path.by_category[c] / total},
                    {"top", std::move(top)}});
  }
  return list;
}

/// The parts of a path, the longest first, each with its longest op.
Value path_rows(const program::PathParts& path) {
  std::vector<const program::PathPart*> parts;
  for (const program::PathPart& part : path.parts) parts.push_back(&part);
  std::ranges::stable_sort(parts, [](const auto* a, const auto* b) { return a->time > b->time; });
  const Picoseconds total = path.total();
  Value rows = Value::array();
  for (const program::PathPart* part : parts)
    if (const double of_path = part->time / total; of_path >= 0.005)
      rows.push_back({{"", "part", part->name},
                      {"", "time", part->time.seconds() * (1.0 / path.steps)},
                      {"", "share", share(of_path)},
                      {"", "longest op", part->ops.front().name}});
  return rows;
}

}  // namespace

Value occupancy_fields(const program::Occupancy& occupancy) {
  return fields_of(occupancy, [](Seconds part) { return part; });
}

Value occupancy_fields(const program::Occupancy& occupancy, const Estimate<Seconds>& step) {
  return fields_of(occupancy, [&](Seconds part) { return part_of(step, part); });
}

void add_attribution(const Attribution& of, const Estimate<Seconds>& step, Document& document) {
  document.show("breakdown", kOccupancyTitle, occupancy_fields(of.occupancy, step), {}, kBars);
  if (of.path_times) document["critical_path"] = json_critical_path(*of.path_times, step);
  document.show("", "Critical path per step, with the longest op of each part", path_rows(of.path),
                {}, first(3));
  document["path"] = {
      {"ends_on", of.path.ends_on}, {"ranks", of.path.ranks}, {"steps", of.path.steps}};
  document["path_parts"] = json_path_parts(of.path);
  document["step_from"] = json_provenance(of.path.shares_by_provenance());
}

Json json_path_parts(const program::PathParts& path) {
  constexpr std::size_t kOps = 6;
  constexpr std::size_t kLongestName = 160;
  const auto of_a_step = [&](const Estimate<Seconds>& e) {
    return Quantity(e * (1.0 / path.steps));
  };
  const Picoseconds total = path.total();
  Json list = Json::array();
  for (const program::PathPart& part : path.parts) {
    std::array<double, 4> from = {};
    for (std::size_t p = 0; p < from.size(); ++p) from[p] = part.from[p] / part.time;
    Json ops = Json::array();
    for (std::size_t i = 0; i < std::min(kOps, part.ops.size()); ++i)
      ops.push_back({{"name", shortened(part.ops[i].name, kLongestName)},
                     {"time", of_a_step(part.ops[i].time)}});
    list.push_back({{"kind", to_string(part.kind)},
                    {"part", part.name},
                    {"time", of_a_step(part.estimate)},
                    {"share", part.time / total},
                    {"from", json_provenance(from)},
                    {"ops", std::move(ops)},
                    {"more_ops", part.ops.size() - std::min(kOps, part.ops.size())}});
  }
  return list;
}

Json json_provenance(const std::array<double, 4>& shares) {
  Json json = Json::object();
  for (std::size_t p = 0; p < shares.size(); ++p)
    json[to_string(static_cast<Provenance>(p))] = shares[p];
  return json;
}

}  // namespace rehearse::cli
