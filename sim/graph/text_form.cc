#include "sim/graph/text_form.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/text.h"

namespace rehearse::graph {
namespace {

constexpr std::string_view kHeader = "rehearse-graph 1";
constexpr std::array<std::string_view, 3> kPolicies = {"fifo", "priority", "lease"};

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Reads one line, word by word.
class LineReader {
 public:
  LineReader(std::string_view line, std::uint32_t number, std::string_view file)
      : line_(line), number_(number), file_(file) {}

  bool at_end() {
    while (at_ < line_.size() && line_[at_] == ' ') ++at_;
    return at_ == line_.size();
  }

  std::string_view word() {
    at_end();
    word_at_ = at_;
    while (at_ < line_.size() && line_[at_] != ' ') ++at_;
    return line_.substr(word_at_, at_ - word_at_);
  }

  Result<std::string> quoted_name() {
    at_end();
    word_at_ = at_;
    if (at_ == line_.size() || line_[at_] != '"') return error("a name is due", "\"name\"");
    std::string name;
    for (++at_; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (c == '"') {
        ++at_;
        return name;
      }
      if (c == '\\' && at_ + 1 < line_.size()) {
        ++at_;
        name += line_[at_] == 'n' ? '\n' : line_[at_];
      } else {
        name += c;
      }
    }
    return error("the name has no closing quote");
  }

  template <class Number>
  Result<Number> number(std::string_view what, std::string_view unit = "") {
    std::string_view text = word();
    if (!text.ends_with(unit)) return error(fmt::format("{} must end in '{}'", what, unit));
    text.remove_suffix(unit.size());
    Number value{};
    const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || rest != text.data() + text.size())
      return error(fmt::format("'{}' is not a number", text), std::string(what));
    return value;
  }

  template <class AnyId>
  Result<AnyId> id(std::string_view what) {
    return number<std::uint32_t>(what).map([](std::uint32_t index) { return AnyId(index); });
  }

  Result<Picoseconds> time(std::string_view what) {
    return number<std::int64_t>(what, "ps").map([](std::int64_t ps) { return Picoseconds(ps); });
  }

  /// An error at the word read last.
  tl::unexpected<Error> error(std::string problem, std::string expected = {}) const {
    return fail(Diagnostic{.file = std::string(file_),
                           .line = number_,
                           .column = static_cast<std::uint32_t>(word_at_ + 1),
                           .problem = std::move(problem),
                           .expected = std::move(expected)});
  }

 private:
  std::string_view line_;
  std::size_t at_ = 0;
  std::size_t word_at_ = 0;
  std::uint32_t number_;
  std::string_view file_;
};

/// Tables are written in order of id, so a line's id must be the next one of its table.
Status expect_id(LineReader& line, std::size_t next) {
  const Result<std::uint32_t> id = line.number<std::uint32_t>("an id");
  if (!id) return forward(id);
  if (*id != next)
    return line.error(fmt::format("id {} is out of order", *id), fmt::format("id {}", next));
  return {};
}

Status parse_server(LineReader& line, GraphBuilder& builder) {
  if (Status ok = expect_id(line, builder.so_far().servers().size()); !ok) return ok;
  const Result<std::string> name = line.quoted_name();
  if (!name) return forward(name);
  Server server{.name = builder.intern(*name)};
  while (!line.at_end()) {
    const std::string_view word = line.word();
    if (word == "slots") {
      const auto slots = line.number<std::uint32_t>("slots");
      if (!slots) return forward(slots);
      server.slots = *slots;
    } else if (word == "policy") {
      const std::string_view policy = line.word();
      const auto found = std::find(kPolicies.begin(), kPolicies.end(), policy);
      if (found == kPolicies.end())
        return line.error(fmt::format("unknown policy '{}'", policy), suggest(policy, kPolicies));
      server.policy = static_cast<Policy>(found - kPolicies.begin());
    } else if (word == "turnaround") {
      const auto time = line.time("turnaround");
      if (!time) return forward(time);
      server.turnaround = *time;
    } else {
      return line.error(fmt::format("unknown word '{}'", word), "slots, policy or turnaround");
    }
  }
  builder.add(server);
  return {};
}

Status parse_capacity(LineReader& line, GraphBuilder& builder) {
  if (Status ok = expect_id(line, builder.so_far().capacities().size()); !ok) return ok;
  const Result<std::string> name = line.quoted_name();
  if (!name) return forward(name);
  const Result<double> rate = line.number<double>("work per second");
  if (!rate) return forward(rate);
  Capacity capacity{.name = builder.intern(*name), .rate = *rate};
  while (!line.at_end()) {
    if (const std::string_view word = line.word(); word != "at")
      return line.error(fmt::format("unknown word '{}'", word), "at TIMEps RATE");
    const auto at = line.time("an instant");
    if (!at) return forward(at);
    const auto changed = line.number<double>("work per second");
    if (!changed) return forward(changed);
    capacity.changes.push_back({*at, *changed});
  }
  builder.add(std::move(capacity));
  return {};
}

Status parse_demand(LineReader& line, GraphBuilder& builder) {
  const std::size_t next = builder.so_far().demands().size();
  if (Status ok = expect_id(line, next); !ok) return ok;
  Demand demand;
  while (!line.at_end()) {
    const std::string_view word = line.word();
    if (word == "server") {
      const auto id = line.id<ServerId>("a server");
      if (!id) return forward(id);
      demand.server = *id;
    } else if (word == "through") {
      const auto id = line.id<CapacityId>("a capacity");
      if (!id) return forward(id);
      demand.capacities.push_back(*id);
    } else if (word == "weight" || word == "cap") {
      const auto value = line.number<double>("a number");
      if (!value) return forward(value);
      (word == "weight" ? demand.weight : demand.rate_cap) = *value;
    } else if (word == "priority") {
      const auto value = line.number<std::int32_t>("a priority");
      if (!value) return forward(value);
      demand.priority = *value;
    } else if (word == "lease") {
      const auto id = line.id<LeaseId>("a lease");
      if (!id) return forward(id);
      demand.lease = *id;
    } else if (word == "group") {
      const auto id = line.id<FlowGroupId>("a group");
      if (!id) return forward(id);
      demand.group = *id;
    } else if (word == "due") {
      const auto time = line.time("a due time");
      if (!time) return forward(time);
      demand.due = *time;
    } else if (word == "hold") {
      const auto id = line.id<DemandId>("a demand");
      if (!id) return forward(id);
      demand.hold = *id;
    } else {
      return line.error(fmt::format("unknown word '{}'", word),
                        "server, through, weight, cap, priority, lease, group, due or hold");
    }
  }
  if (builder.add(std::move(demand)).index() != next) return line.error("this demand stands twice");
  return {};
}

Status parse_op(LineReader& line, GraphBuilder& builder) {
  if (Status ok = expect_id(line, builder.size()); !ok) return ok;
  const Result<std::string> name = line.quoted_name();
  if (!name) return forward(name);
  const std::string_view category_name = line.word();
  const auto category = category_from(category_name);
  if (!category)
    return line.error(fmt::format("unknown category '{}'", category_name),
                      suggest(category_name, kCategoryNames));
  const Result<Picoseconds> duration = line.time("a duration");
  if (!duration) return forward(duration);
  Op op{.name = builder.intern(*name), .category = *category, .duration = *duration};
  const OpId id(builder.size());
  std::optional<std::uint32_t> first;
  while (!line.at_end()) {
    const std::string_view word = line.word();
    if (word == "on") {
      const auto demand = line.id<DemandId>("a demand");
      if (!demand) return forward(demand);
      op.demand = *demand;
    } else if (word == "work") {
      const auto work = line.number<double>("an amount of work");
      if (!work) return forward(work);
      op.work = *work;
    } else if (word == "first") {
      const auto m = line.number<std::uint32_t>("a count");
      if (!m) return forward(m);
      first = *m;
    } else if (word == "after") {
      while (!line.at_end()) {
        const auto before = line.id<OpId>("an op");
        if (!before) return forward(before);
        builder.add_edge(*before, id);
      }
    } else {
      return line.error(fmt::format("unknown word '{}'", word), "on, work, first or after");
    }
  }
  builder.add(op);
  if (first) builder.wait_for_first(id, *first);
  return {};
}

/// The tables that transfers share. Rows of a table follow its first line.
struct TransferTables {
  struct LaneRows {
    std::uint32_t members;
    std::vector<Lane> lanes = {};
    std::vector<Wait> waits = {};
  };
  std::vector<LaneRows> lane_rows;
  std::vector<std::shared_ptr<const Lanes>> lanes;  // made when the first transfer needs them
  std::vector<std::shared_ptr<std::vector<Way>>> ways;

  Status parse_lanes(LineReader& line) {
    if (Status ok = expect_id(line, lane_rows.size()); !ok) return ok;
    const auto members = line.number<std::uint32_t>("a number of members");
    if (!members) return forward(members);
    lane_rows.push_back({*members});
    return {};
  }

  Status parse_lane(LineReader& line) {
    if (lane_rows.size() <= lanes.size()) return line.error("a lane needs a line 'lanes' above it");
    LaneRows& rows = lane_rows.back();
    std::uint32_t numbers[3];
    for (std::uint32_t& number : numbers) {
      const auto parsed = line.number<std::uint32_t>("members or a count of messages");
      if (!parsed) return forward(parsed);
      number = *parsed;
    }
    const auto share = line.number<double>("a share of the size");
    if (!share) return forward(share);
    const auto [from, to, count] = numbers;
    if (from >= rows.members || to >= rows.members || from == to || count == 0 || !(*share >= 0))
      return line.error("wrong lane",
                        fmt::format("FROM TO COUNT SHARE, two different members below {}, at least "
                                    "one message, and a share that is not negative",
                                    rows.members));
    const auto index = static_cast<std::uint32_t>(rows.lanes.size());
    rows.lanes.push_back({from, to, count, *share});
    while (!line.at_end()) {
      const std::string_view word = line.word();
      if (word == "each" && !rows.waits.empty() && rows.waits.back().lane == index) {
        rows.waits.back().each = true;
      } else if (word == "wait") {
        const auto on = line.number<std::uint32_t>("a lane");
        if (!on) return forward(on);
        const auto after = line.number<std::uint32_t>("a count of messages");
        if (!after) return forward(after);
        rows.waits.push_back({index, *on, *after});
      } else {
        return line.error(fmt::format("unknown word '{}'", word), "wait LANE COUNT [each]");
      }
    }
    return {};
  }

  Status parse_ways(LineReader& line) {
    if (Status ok = expect_id(line, ways.size()); !ok) return ok;
    ways.push_back(std::make_shared<std::vector<Way>>());
    return {};
  }

  Status parse_way(LineReader& line) {
    if (ways.empty()) return line.error("a way needs a line 'ways' above it");
    const auto demand = line.id<DemandId>("a demand");
    if (!demand) return forward(demand);
    const auto latency = line.time("a latency");
    if (!latency) return forward(latency);
    ways.back()->push_back({*demand, *latency});
    return {};
  }

  Status parse_transfer(LineReader& line, GraphBuilder& builder) {
    const auto lanes_id = line.number<std::uint32_t>("lanes");
    if (!lanes_id) return forward(lanes_id);
    if (*lanes_id >= lane_rows.size()) return line.error("there are no such lanes");
    const auto ways_id = line.number<std::uint32_t>("ways");
    if (!ways_id) return forward(ways_id);
    if (*ways_id >= ways.size()) return line.error("there are no such ways");
    const auto size = line.number<double>("a size");
    if (!size) return forward(size);
    while (lanes.size() < lane_rows.size()) {
      LaneRows& rows = lane_rows[lanes.size()];
      for (const Wait& wait : rows.waits)
        if (wait.on >= rows.lanes.size())
          return line.error(
              fmt::format("lane {} of lanes {} waits for lane {}, which does not exist", wait.lane,
                          lanes.size(), wait.on));
      lanes.push_back(
          std::make_shared<Lanes>(rows.members, std::move(rows.lanes), std::move(rows.waits)));
    }
    Transfer transfer{
        .lanes = lanes[*lanes_id], .ways = ways[*ways_id], .members = {}, .size = *size};
    while (!line.at_end()) {
      const auto op = line.id<OpId>("an op");
      if (!op) return forward(op);
      transfer.members.push_back(*op);
    }
    builder.add(std::move(transfer));
    return {};
  }
};

template <class Print>
void print_transfers(const Graph& graph, const Print& print) {
  std::vector<const Lanes*> lanes;
  std::vector<const std::vector<Way>*> ways;
  const auto place = [](auto& table, const auto* entry, const auto& write) {
    const auto found = std::find(table.begin(), table.end(), entry);
    if (found != table.end()) return static_cast<std::size_t>(found - table.begin());
    table.push_back(entry);
    write(table.size() - 1);
    return table.size() - 1;
  };
  std::vector<std::pair<std::size_t, std::size_t>> of_transfer;
  for (const Transfer& t : graph.transfers()) {
    const std::size_t l = place(lanes, t.lanes.get(), [&](std::size_t id) {
      print("lanes {} {}\n", id, t.lanes->members());
      for (std::uint32_t i = 0; i < t.lanes->lanes().size(); ++i) {
        const Lane& lane = t.lanes->lanes()[i];
        print("lane {} {} {} {}", lane.from, lane.to, lane.count, lane.share);
        for (const Wait& wait : t.lanes->waits(i))
          print(" wait {} {}{}", wait.on, wait.after, wait.each ? " each" : "");
        print("\n");
      }
    });
    const std::size_t w = place(ways, t.ways.get(), [&](std::size_t id) {
      print("ways {}\n", id);
      for (const Way& way : *t.ways)
        print("way {} {}ps\n", way.demand.index(), way.latency.count());
    });
    of_transfer.emplace_back(l, w);
  }
  for (std::size_t i = 0; i < of_transfer.size(); ++i) {
    const Transfer& t = graph.transfers()[i];
    print("transfer {} {} {}", of_transfer[i].first, of_transfer[i].second, t.size);
    for (const OpId op : t.members) print(" {}", op.index());
    print("\n");
  }
}

}  // namespace

std::string to_text(const Graph& graph) {
  fmt::memory_buffer out;
  const auto print = [&out]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  const NamePool& names = graph.names();
  print("{}\n", kHeader);
  for (std::size_t i = 0; i < graph.servers().size(); ++i) {
    const Server& s = graph.servers()[i];
    print("server {} {} slots {} policy {} turnaround {}ps\n", i, quoted(names[s.name]), s.slots,
          kPolicies[static_cast<std::size_t>(s.policy)], s.turnaround.count());
  }
  for (std::size_t i = 0; i < graph.capacities().size(); ++i) {
    const Capacity& c = graph.capacities()[i];
    print("capacity {} {} {}", i, quoted(names[c.name]), c.rate);
    for (const RateChange& change : c.changes) print(" at {}ps {}", change.at.count(), change.rate);
    print("\n");
  }
  for (std::size_t i = 1; i < graph.demands().size(); ++i) {
    const Demand& d = graph.demands()[i];
    print("demand {}", i);
    if (d.server) print(" server {}", d.server->index());
    for (const CapacityId c : d.capacities) print(" through {}", c.index());
    if (d.weight != 1) print(" weight {}", d.weight);
    if (!std::isinf(d.rate_cap)) print(" cap {}", d.rate_cap);
    if (d.priority != 0) print(" priority {}", d.priority);
    if (d.lease) print(" lease {}", d.lease->index());
    if (d.group) print(" group {}", d.group->index());
    if (d.due != Picoseconds(0)) print(" due {}ps", d.due.count());
    if (d.hold) print(" hold {}", d.hold->index());
    print("\n");
  }

  std::vector<std::vector<OpId>> before(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i)
    for (const OpId to : graph.successors(OpId(i))) before[to.index()].push_back(OpId(i));
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const OpId id(i);
    print("op {} {} {} {}ps", i, quoted(graph.name(id)), to_string(graph.category(id)),
          graph.duration(id).count());
    if (graph.demand_id(id).index() != 0) print(" on {}", graph.demand_id(id).index());
    if (graph.work(id) != 0) print(" work {}", graph.work(id));
    if (graph.need(id) != before[i].size()) print(" first {}", graph.need(id));
    if (!before[i].empty()) print(" after");
    for (const OpId from : before[i]) print(" {}", from.index());
    print("\n");
  }
  print_transfers(graph, print);
  return fmt::to_string(out);
}

Result<Graph> parse_graph(std::string_view text, std::string_view file) {
  GraphBuilder builder;
  TransferTables transfers;
  std::uint32_t number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    LineReader line(raw, ++number, file);
    if (number == 1) {
      if (raw != kHeader)
        return line.error(fmt::format("is not a graph of this version"), std::string(kHeader));
      continue;
    }
    if (line.at_end()) continue;
    const std::string_view kind = line.word();
    Status ok;
    if (kind == "server") {
      ok = parse_server(line, builder);
    } else if (kind == "capacity") {
      ok = parse_capacity(line, builder);
    } else if (kind == "demand") {
      ok = parse_demand(line, builder);
    } else if (kind == "op") {
      ok = parse_op(line, builder);
    } else if (kind == "lanes") {
      ok = transfers.parse_lanes(line);
    } else if (kind == "lane") {
      ok = transfers.parse_lane(line);
    } else if (kind == "ways") {
      ok = transfers.parse_ways(line);
    } else if (kind == "way") {
      ok = transfers.parse_way(line);
    } else if (kind == "transfer") {
      ok = transfers.parse_transfer(line, builder);
    } else {
      ok = line.error(fmt::format("unknown line '{}'", kind),
                      "server, capacity, demand, op, lanes, lane, ways, way or transfer");
    }
    if (!ok) return forward(ok);
  }
  return std::move(builder).build();
}

}  // namespace rehearse::graph
