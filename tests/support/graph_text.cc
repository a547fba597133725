#include "tests/support/graph_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/base/text.h"
#include "tests/support/graph_text_line.h"
#include "tests/support/graph_transfer_lines.h"

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

Status parse_server(LineReader& line, GraphBuilder& builder) {
  TRY(expect_id(line, builder.so_far().servers().size()));
  const std::string name = TRY(line.quoted_name());
  Server server{.name = builder.intern(name)};
  while (!line.at_end()) {
    const std::string_view word = line.word();
    if (word == "slots") {
      server.slots = TRY(line.number<std::uint32_t>("slots"));
    } else if (word == "policy") {
      const std::string_view policy = line.word();
      const auto found = std::find(kPolicies.begin(), kPolicies.end(), policy);
      if (found == kPolicies.end())
        return line.error(fmt::format("unknown policy '{}'", policy), suggest(policy, kPolicies));
      server.policy = static_cast<Policy>(found - kPolicies.begin());
    } else if (word == "turnaround") {
      server.turnaround = TRY(line.time("turnaround"));
    } else if (word == "slot") {
      const auto id = TRY(line.id<DemandId>("a demand"));
      server.slot_demands.push_back(id);
    } else {
      return line.error(fmt::format("unknown word '{}'", word),
                        "slots, policy, turnaround or slot");
    }
  }
  builder.add(server);
  return {};
}

Status parse_capacity(LineReader& line, GraphBuilder& builder) {
  TRY(expect_id(line, builder.so_far().capacities().size()));
  const std::string name = TRY(line.quoted_name());
  const double rate = TRY(line.number<double>("work per second"));
  Capacity capacity{.name = builder.intern(name), .rate = rate};
  while (!line.at_end()) {
    const std::string_view word = line.word();
    if (word == "turns") {
      const auto quantum = TRY(line.time("a turn"));
      const auto change = TRY(line.time("the time between two turns"));
      capacity.turns = Turns{quantum, change};
      continue;
    }
    if (word != "at")
      return line.error(fmt::format("unknown word '{}'", word),
                        "at TIMEps RATE or turns QUANTUMps CHANGEps");
    const auto at = TRY(line.time("an instant"));
    const auto changed = TRY(line.number<double>("work per second"));
    capacity.changes.push_back({at, changed});
  }
  builder.add(std::move(capacity));
  return {};
}

Status parse_demand(LineReader& line, GraphBuilder& builder) {
  const std::size_t next = builder.so_far().demands().size();
  TRY(expect_id(line, next));
  Demand demand;
  while (!line.at_end()) {
    const std::string_view word = line.word();
    if (word == "server") {
      demand.server = TRY(line.id<ServerId>("a server"));
    } else if (word == "through") {
      const auto id = TRY(line.id<CapacityId>("a capacity"));
      demand.capacities.push_back(id);
    } else if (word == "takes") {
      const auto value = TRY(line.number<double>("a number"));
      if (demand.capacities.empty())
        return line.error("no capacity is defined above", "through ID");
      demand.units_per_work.resize(demand.capacities.size(), 1);
      demand.units_per_work.back() = value;
    } else if (word == "weight" || word == "cap") {
      const auto value = TRY(line.number<double>("a number"));
      (word == "weight" ? demand.weight : demand.rate_cap) = value;
    } else if (word == "priority") {
      demand.priority = TRY(line.number<std::int32_t>("a priority"));
    } else if (word == "lease") {
      demand.lease = TRY(line.id<LeaseId>("a lease"));
    } else if (word == "group") {
      demand.group = TRY(line.id<FlowGroupId>("a group"));
    } else if (word == "due") {
      demand.due = TRY(line.time("a due time"));
    } else if (word == "hold") {
      demand.hold = TRY(line.id<DemandId>("a demand"));
    } else {
      return line.error(fmt::format("unknown word '{}'", word),
                        "server, through, takes, weight, cap, priority, lease, group, due or hold");
    }
  }
  if (!demand.units_per_work.empty()) demand.units_per_work.resize(demand.capacities.size(), 1);
  if (builder.add(std::move(demand)).index() != next)
    return line.error("this demand appears twice");
  return {};
}

Status parse_op(LineReader& line, GraphBuilder& builder) {
  TRY(expect_id(line, builder.size()));
  const std::string name = TRY(line.quoted_name());
  const std::string_view category_name = line.word();
  const auto category = category_from(category_name);
  if (!category)
    return line.error(fmt::format("unknown category '{}'", category_name),
                      suggest(category_name, kCategoryNames));
  const Picoseconds duration = TRY(line.time("a duration"));
  Op op{.name = builder.intern(name), .category = *category, .duration = duration};
  const OpId id(builder.size());
  std::optional<std::uint32_t> first;
  while (!line.at_end()) {
    const std::string_view word = line.word();
    if (word == "on") {
      op.demand = TRY(line.id<DemandId>("a demand"));
    } else if (word == "work") {
      op.work = TRY(line.number<double>("an amount of work"));
    } else if (word == "first") {
      first = TRY(line.number<std::uint32_t>("a count"));
    } else if (word == "after") {
      while (!line.at_end()) {
        const auto before = TRY(line.id<OpId>("an op"));
        builder.add_edge(before, id);
      }
    } else {
      return line.error(fmt::format("unknown word '{}'", word), "on, work, first or after");
    }
  }
  builder.add(op);
  if (first) builder.wait_for_first(id, *first);
  return {};
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
    print("server {} {} slots {} policy {} turnaround {}ps", i, quoted(names[s.name]), s.slots,
          kPolicies[static_cast<std::size_t>(s.policy)], s.turnaround.count());
    for (const DemandId d : s.slot_demands) print(" slot {}", d.index());
    print("\n");
  }
  for (std::size_t i = 0; i < graph.capacities().size(); ++i) {
    const Capacity& c = graph.capacities()[i];
    print("capacity {} {} {}", i, quoted(names[c.name]), c.rate);
    for (const RateChange& change : c.changes) print(" at {}ps {}", change.at.count(), change.rate);
    if (c.turns) print(" turns {}ps {}ps", c.turns->quantum.count(), c.turns->change.count());
    print("\n");
  }
  for (std::size_t i = 1; i < graph.demands().size(); ++i) {
    const Demand& d = graph.demands()[i];
    print("demand {}", i);
    if (d.server) print(" server {}", d.server->index());
    for (std::size_t c = 0; c < d.capacities.size(); ++c) {
      print(" through {}", d.capacities[c].index());
      if (!d.units_per_work.empty()) print(" takes {}", d.units_per_work[c]);
    }
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
  return fmt::to_string(out) + transfer_lines(graph);
}

Result<Graph> parse_graph(std::string_view text, std::string_view file) {
  GraphBuilder builder;
  TransferTables transfers;
  std::uint32_t number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    LineReader line(raw, ++number, file);
    if (number == 1) {
      if (raw != kHeader)
        return line.error(fmt::format("is not a graph of this format version"),
                          std::string(kHeader));
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
      ok = transfers.parse_flows(line);
    } else if (kind == "lane") {
      ok = transfers.parse_flow(line);
    } else if (kind == "ways") {
      ok = transfers.parse_routes(line);
    } else if (kind == "way") {
      ok = transfers.parse_route(line);
    } else if (kind == "transfer") {
      ok = transfers.parse_transfer(line, builder);
    } else {
      ok = line.error(fmt::format("unknown line '{}'", kind),
                      "server, capacity, demand, op, lanes, lane, ways, way or transfer");
    }
    TRY(ok);
  }
  return std::move(builder).build();
}

}  // namespace rehearse::graph
