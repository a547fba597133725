#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "cli/study/feed_runs.h"
#include "sim/base/text.h"
#include "sim/engine/engine.h"
#include "sim/graph/graph.h"

namespace rehearse::cli {
namespace {

constexpr std::string_view kDivisionNames[] = {"fair", "coflow", "echelon", "first_come"};
constexpr std::string_view kPolicyNames[] = {"fifo", "priority"};
constexpr Seconds kLongestOp = Seconds::s(1e6);
constexpr double kMostEdges = 1e6;

/// Equal ops, one for each of `count` numbers.
struct Row {
  std::string name;
  OpId first;
  std::uint32_t count;
};

/// Reads the section `graph` of a job.
class OpsReader {
 public:
  explicit OpsReader(const YamlMap& map) : map_(map) {}

  Result<graph::Graph> read() {
    map_.choose("division", kDivisionNames, division_);
    read_links();
    read_servers();
    const std::vector<YamlMap> ops = map_.maps("ops");
    for (const YamlMap& op : ops) read_row(op);
    if (ops.empty())
      map_.report("ops", map_.has("ops") ? "holds no ops" : "is missing",
                  "ops: [{name: …, time: …}]");
    map_.no_other_keys();
    TRY(map_.status());
    return std::move(builder_).build();
  }
  engine::Division division() const { return division_; }

 private:
  void read_links() {
    const auto links = map_.map("links");
    if (!links) return;
    for (const std::string& name : links->keys()) {
      const auto rate = links->optional<ByteRate>(name);
      if (!rate) continue;
      if (!(rate->bytes_per_s() > 0)) links->report(name, "moves nothing", "a rate above 0");
      links_.emplace(name, builder_.add({.name = builder_.intern(name),
                                         .rate = std::max(rate->bytes_per_s(), 1e-9)}));
    }
    links->no_other_keys();
  }

  void read_servers() {
    const auto servers = map_.map("servers");
    if (!servers) return;
    for (const std::string& name : servers->keys())
      if (const auto server = servers->map(name)) {
        graph::Server of{.name = builder_.intern(name)};
        of.slots = static_cast<std::uint32_t>(
            server->within<std::int64_t>("slots", 1, 100'000).value_or(1));
        server->choose("policy", kPolicyNames, of.policy);
        server->no_other_keys();
        servers_.emplace(name, builder_.add(std::move(of)));
      }
    servers->no_other_keys();
  }

  void read_row(const YamlMap& map) {
    Row row{.name = map.required<std::string>("name").value_or(""),
            .first = OpId(static_cast<std::uint32_t>(builder_.size())),
            .count = static_cast<std::uint32_t>(
                map.within<std::int64_t>("repeat", 1, 100'000).value_or(1))};
    if (!row.name.empty() && find(row.name))
      map.report("name", fmt::format("'{}' appears twice", row.name), "a unique name");
    const double work =
        map.within<Bytes>("work", Bytes::b(0), Bytes::b(1e18)).value_or(Bytes::b(0)).b();
    graph::Demand demand = read_demand(map);
    if (work > 0 && !map.has("through"))
      map.report("work", "flows through no link", "through: LINK");
    if (work == 0 && !demand.capacities.empty())
      map.report("through", "carries nothing", "work: 1 MB");
    const auto time =
        map.within<Seconds>("time", Seconds::s(0), kLongestOp).value_or(Seconds::s(0));
    const auto [due, every] = read_due(map);
    const graph::Category category =
        work > 0 ? graph::Category::kCommunication : graph::Category::kCompute;
    const std::vector<std::string> after = names(map, "after");
    const auto first = map.within<std::int64_t>("first", 1, 1'000'000'000);
    map.no_other_keys();
    if (!map.status()) return;
    const NameId name = builder_.intern(row.name);
    for (std::uint32_t i = 0; i < row.count; ++i) {
      demand.due = Picoseconds::from(due + every * i);
      builder_.add(graph::Op{.name = name,
                             .category = category,
                             .duration = Picoseconds::from(time),
                             .demand = builder_.add(demand),
                             .work = work});
    }
    add_edges(map, row, after, first);
    rows_.push_back(std::move(row));
  }

  graph::Demand read_demand(const YamlMap& map) {
    graph::Demand demand;
    if (const auto on = map.optional<std::string>("on")) {
      const auto known = servers_.find(*on);
      demand.server =
          known != servers_.end()
              ? known->second
              : servers_.emplace(*on, builder_.add(graph::Server{.name = builder_.intern(*on)}))
                    .first->second;
    }
    for (const std::string& name : names(map, "through")) {
      if (const auto link = links_.find(name); link != links_.end()) {
        demand.capacities.push_back(link->second);
        continue;
      }
      std::vector<std::string_view> known;
      for (const auto& [link, id] : links_) known.push_back(link);
      map.report("through", fmt::format("'{}' is not a link", name),
                 known.empty() ? "links: {NAME: 1 GB/s}" : "",
                 known.empty() ? "" : suggest(name, known));
    }
    demand.priority =
        static_cast<std::int32_t>(map.within<std::int64_t>("priority", -1000, 1000).value_or(0));
    if (const auto group = map.optional<std::string>("group"))
      demand.group = FlowGroupId(
          static_cast<std::uint32_t>(groups_.emplace(*group, groups_.size()).first->second));
    return demand;
  }

  /// The arrangement of the due times of a row: of its first op, and from one to the next.
  static std::pair<Seconds, Seconds> read_due(const YamlMap& map) {
    const auto at = [](const YamlMap& of, std::string_view key) {
      return of.within<Seconds>(key, Seconds::s(0), kLongestOp).value_or(Seconds::s(0));
    };
    if (map.has("due") && !map.has("group"))
      map.report("due", "is counted from the first flow of a group", "group: NAME");
    if (!map.is_map("due")) return {at(map, "due"), Seconds::s(0)};
    const YamlMap due = *map.map("due");
    const std::pair arrangement(at(due, "first"), at(due, "every"));
    due.no_other_keys();
    return arrangement;
  }

  /// Each op of a row follows the op of the same number; of rows of another length, all of them.
  void add_edges(const YamlMap& map, const Row& row, const std::vector<std::string>& after,
                 std::optional<std::int64_t> first) {
    std::uint32_t before = 0;
    for (const std::string& name : after) {
      const Row* const other = find(name);
      if (!other) {
        std::vector<std::string_view> known;
        for (const Row& each : rows_) known.push_back(each.name);
        map.report("after", fmt::format("'{}' is no op above", name), {}, suggest(name, known));
        continue;
      }
      const bool one_by_one = other->count == row.count;
      before += one_by_one ? 1 : other->count;
      edges_ += one_by_one ? row.count : double{1} * row.count * other->count;
      if (edges_ > kMostEdges)
        return map.report("after", fmt::format("{:g} dependencies", edges_),
                          fmt::format("{:g} at most", kMostEdges));
      for (std::uint32_t i = 0; i < row.count; ++i)
        for (std::uint32_t j = 0; j < other->count; ++j)
          if (!one_by_one || i == j) builder_.add_edge(of(*other, j), of(row, i));
    }
    if (!first) return;
    if (*first > before)
      return map.report("first", fmt::format("{} of {} ops before it", *first, before),
                        fmt::format("1 to {}", before));
    for (std::uint32_t i = 0; i < row.count; ++i)
      builder_.wait_for_first(of(row, i), static_cast<std::uint32_t>(*first));
  }

  static OpId of(const Row& row, std::uint32_t number) {
    return OpId(static_cast<std::uint32_t>(row.first.index()) + number);
  }
  static std::vector<std::string> names(const YamlMap& map, std::string_view key) {
    if (map.is_list(key)) return map.list<std::string>(key);
    const auto name = map.optional<std::string>(key);
    return name ? std::vector{*name} : std::vector<std::string>{};
  }
  const Row* find(const std::string& name) const {
    const auto row = std::ranges::find(rows_, name, &Row::name);
    return row == rows_.end() ? nullptr : &*row;
  }

  const YamlMap& map_;
  graph::GraphBuilder builder_;
  engine::Division division_ = engine::Division::kFair;
  std::map<std::string, CapacityId> links_;
  std::map<std::string, ServerId> servers_;
  std::map<std::string, std::size_t> groups_;
  std::vector<Row> rows_;
  double edges_ = 0;
};

}  // namespace

Result<FeedRun> run_ops(const YamlMap& map, const FeedContext&) {
  const auto section = map.map("graph");
  map.no_other_keys();
  TRY(map.status());
  OpsReader reader(*section);
  const graph::Graph graph = TRY(reader.read());
  const graph::Timeline timeline = TRY(engine::run(graph, {.division = reader.division()}));
  std::vector<double> arrivals;
  for (std::uint32_t i = 0; i < graph.size(); ++i)
    if (graph.successors(OpId(i)).empty()) arrivals.push_back(timeline[OpId(i)].end.seconds().s());
  std::ranges::sort(arrivals);
  return
      [arrivals, last = timeline.makespan().seconds().s()](std::string_view name) -> Result<Term> {
        return name == "arrivals" ? exact_list(arrivals) : exact(last);
      };
}

}  // namespace rehearse::cli
