#include "models/input/tiles.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/engine/engine.h"
#include "sim/graph/graph.h"

namespace rehearse::input {
namespace {

constexpr double kMostTiles = 1e6;

/// Tiles as ops of a graph, in which a cycle is a nanosecond.
class Tiles {
 public:
  explicit Tiles(const Accelerator& accelerator)
      : accelerator_(accelerator), passed_(accelerator.stages.size()) {
    std::map<std::string_view, DemandId> units;
    for (const TileStage& stage : accelerator.stages) {
      auto unit = units.find(stage.unit);
      if (unit == units.end()) {
        const ServerId server = graph_.add(graph::Server{.name = graph_.intern(stage.unit)});
        unit = units.emplace(stage.unit, graph_.add(graph::Demand{.server = server})).first;
      }
      demands_.push_back(unit->second);
    }
  }

  void add(const TileLayer& layer) {
    const double tiles = tiles_of(accelerator_, layer);
    for (double tile = 0; tile < tiles; ++tile) {
      std::optional<OpId> before = tile == 0 ? last_ : std::nullopt;
      for (std::size_t s = 0; s < accelerator_.stages.size(); ++s) {
        const TileStage& stage = accelerator_.stages[s];
        const double requests = std::ceil(layer.amounts[stage.column] / tiles / stage.rate);
        const OpId op =
            graph_.add(graph::Op{.name = graph_.intern(stage.name),
                                 .category = graph::Category::kCompute,
                                 .duration = Picoseconds::from(Seconds::ns(
                                     requests > 0 ? stage.start + requests * stage.interval : 0)),
                                 .demand = demands_[s]});
        std::vector<OpId> after;
        if (before) after.push_back(*before);
        if (!passed_[s].empty()) after.push_back(passed_[s].back().op);  // tiles stay in order
        if (stage.queue)
          if (const auto makes_room = room_after(s, layer.amounts[stage.queue->column] / tiles))
            after.push_back(*makes_room);
        std::ranges::sort(after);
        after.erase(std::unique(after.begin(), after.end()), after.end());
        for (const OpId other : after) graph_.add_edge(other, op);
        passed_[s].push_back({op, stage.queue ? layer.amounts[stage.queue->column] / tiles : 0});
        before = op;
      }
      last_ = before;
    }
  }

  Result<double> cycles() && {
    const graph::Graph graph = TRY(std::move(graph_).build());
    const graph::Timeline timeline = TRY(engine::run(graph));
    return timeline.makespan().seconds().s() * 1e9;
  }

 private:
  struct Passed {
    OpId op;
    double bytes;  // in the queue after the stage
  };

  /// The op of the next stage that makes room for so many bytes; nothing if there is room.
  std::optional<OpId> room_after(std::size_t s, double bytes) const {
    double held = bytes;
    for (std::size_t k = passed_[s].size(); k-- > 0;) {
      held += passed_[s][k].bytes;
      if (held > accelerator_.stages[s].queue->size * (1 + 1e-9)) return passed_[s + 1][k].op;
    }
    return std::nullopt;
  }

  const Accelerator& accelerator_;
  graph::GraphBuilder graph_;
  std::vector<DemandId> demands_;            // by stage
  std::vector<std::vector<Passed>> passed_;  // by stage
  std::optional<OpId> last_;
};

double number_at(const YamlMap& map, std::string_view key, double least, double absent) {
  return map.within<double>(key, least, 1e15).value_or(absent);
}

std::size_t column_at(const YamlMap& map, std::string_view key,
                      const std::vector<std::string>& columns) {
  const auto name = map.required<std::string>(key);
  const auto found = std::ranges::find(columns, name.value_or(""));
  if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  if (name)
    map.report(key, fmt::format("no layer has '{}'", *name),
               suggest(*name, std::vector<std::string_view>(columns.begin(), columns.end())));
  return 0;
}

}  // namespace

double Accelerator::area() const {
  double sum = fixed_area;
  for (const TileStage& stage : stages)
    sum += stage.area + (stage.queue ? stage.queue->size / 1024 * area_per_kib : 0);
  return sum;
}

double tiles_of(const Accelerator& accelerator, const TileLayer& layer) {
  double tiles = 1;
  for (const TileStage& stage : accelerator.stages)
    if (stage.queue)
      tiles =
          std::max(tiles, std::ceil(layer.amounts[stage.queue->column] / (stage.queue->size / 2)));
  return tiles;
}

Result<double> cycles_of(const Accelerator& accelerator) {
  double tiles = 0;
  for (const TileLayer& layer : accelerator.layers)
    tiles += tiles_of(accelerator, layer) * layer.times;
  if (tiles > kMostTiles)
    return fail(fmt::format("{:.3g} tiles", tiles), fmt::format("{:g} at most", kMostTiles),
                "larger queues, or fewer layers");
  Tiles built(accelerator);
  for (const TileLayer& layer : accelerator.layers)
    for (std::uint32_t i = 0; i < layer.times; ++i) built.add(layer);
  return std::move(built).cycles();
}

Accelerator read_accelerator(const YamlMap& map) {
  Accelerator accelerator{.cycle = map.required<Seconds>("cycle").value_or(Seconds::ns(1)),
                          .fixed_area = number_at(map, "area", 0, 0),
                          .area_per_kib = number_at(map, "area_per_kib", 0, 0)};
  if (!(accelerator.cycle > Seconds::s(0) && accelerator.cycle <= Seconds::s(1)))
    map.report("cycle", "is out of range", "above 0 s, at most 1 s");
  std::vector<std::string> columns;
  for (const YamlMap& row : map.maps("layers")) {
    if (columns.empty())
      for (const std::string& key : row.keys())
        if (key != "name" && key != "times") columns.push_back(key);
    row.optional<std::string>("name");
    TileLayer layer{.times = static_cast<std::uint32_t>(
                        row.within<std::int64_t>("times", 1, 100'000).value_or(1))};
    for (const std::string& column : columns) {
      if (!row.has(column)) row.report(column, "is missing", "a number, as in the first layer");
      layer.amounts.push_back(number_at(row, column, 0, 0));
    }
    row.no_other_keys();
    accelerator.layers.push_back(std::move(layer));
  }
  if (columns.empty()) map.report("layers", "are missing", "a list such as [{bytes: 4096, …}]");
  for (const YamlMap& row : map.maps("stages")) {
    TileStage stage{.name = row.required<std::string>("name").value_or(""),
                    .unit = row.optional<std::string>("unit").value_or(""),
                    .column = column_at(row, "of", columns),
                    .rate = number_at(row, "rate", 1e-9, 1),
                    .interval = number_at(row, "interval", 0, 1),
                    .start = number_at(row, "start", 0, 0),
                    .area = number_at(row, "area", 0, 0)};
    if (stage.unit.empty()) stage.unit = stage.name;
    if (const auto size = row.optional<Bytes>("queue")) {
      if (!(size->b() >= 1 && size->b() <= 1e12))
        row.report("queue", "is out of range", "1 B to 1 TB");
      stage.queue = Scratchpad{size->b(), column_at(row, "holds", columns)};
    }
    row.no_other_keys();
    accelerator.stages.push_back(std::move(stage));
  }
  if (accelerator.stages.empty())
    map.report("stages", "are missing", "a list such as [{name: load, of: bytes, rate: 8}]");
  else if (accelerator.stages.back().queue)
    map.report("stages", "end with a queue", "a last stage without one");
  map.no_other_keys();
  return accelerator;
}

}  // namespace rehearse::input
