#include "cli/output/critical_path.h"

#include <algorithm>

#include "cli/output/table.h"

namespace rehearse::cli {

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

Json json_path(const program::PathParts& path) {
  return {{"ends_on", path.ends_on}, {"ranks", path.ranks}, {"steps", path.steps}};
}

Json json_provenance(const std::array<double, 4>& shares) {
  Json json = Json::object();
  for (std::size_t p = 0; p < shares.size(); ++p)
    json[to_string(static_cast<Provenance>(p))] = shares[p];
  return json;
}

}  // namespace rehearse::cli
