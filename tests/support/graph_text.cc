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
    } else if (word == "slot") {
      const auto id = line.id<DemandId>("a demand");
      if (!id) return forward(id);
      server.slot_demands.push_back(*id);
    } else {
      return line.error(fmt::format("unknown word '{}'", word),
                        "slots, policy, turnaround or slot");
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
    const std::string_view word = line.word();
    if (word == "turns") {
      const auto quantum = line.time("a turn");
      if (!quantum) return forward(quantum);
      const auto change = line.time("the time between two turns");
      if (!change) return forward(change);
      capacity.turns = Turns{*quantum, *change};
      continue;
    }
    if (word != "at")
      return line.error(fmt::format("unknown word '{}'", word),
                        "at TIMEps RATE or turns QUANTUMps CHANGEps");
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
    } else if (word == "takes") {
      const auto value = line.number<double>("a number");
      if (!value) return forward(value);
      if (demand.capacities.empty())
        return line.error("no capacity is defined above", "through ID");
      demand.units_per_work.resize(demand.capacities.size(), 1);
      demand.units_per_work.back() = *value;
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
                        "server, through, takes, weight, cap, priority, lease, group, due or hold");
    }
  }
  if (!demand.units_per_work.empty()) demand.units_per_work.resize(demand.capacities.size(), 1);
  if (builder.add(std::move(demand)).index() != next)
    return line.error("this demand appears twice");
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
    if (!ok) return forward(ok);
  }
  return std::move(builder).build();
}

}  // namespace rehearse::graph
