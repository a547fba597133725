#include "tests/support/graph_transfer_lines.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace rehearse::graph {
namespace {

/// The sum of two counts still fits.
constexpr std::uint32_t kMostMessages = INT32_MAX;

Result<std::uint32_t> messages(LineReader& line) {
  const auto count = line.number<std::uint32_t>("a count of messages");
  if (count && *count > kMostMessages)
    return line.error(fmt::format("{} messages", *count), fmt::format("at most {}", kMostMessages));
  return count;
}

}  // namespace

Status TransferTables::parse_flows(LineReader& line) {
  TRY(expect_id(line, flows_.size()));
  const auto members = TRY(line.number<std::uint32_t>("a number of members"));
  flows_.push_back({members});
  return {};
}

Status TransferTables::parse_flow(LineReader& line) {
  if (flows_.empty() || flows_.back().made)
    return line.error("a lane needs a line 'lanes' above it, and no transfer between them");
  LaneRows& rows = flows_.back();
  const auto from = TRY(line.number<std::uint32_t>("a member"));
  const auto to = TRY(line.number<std::uint32_t>("a member"));
  const auto count = TRY(messages(line));
  const auto share = TRY(line.number<double>("a share of the size"));
  if (from >= rows.members || to >= rows.members || from == to || count == 0 || !(share >= 0) ||
      !std::isfinite(share))
    return line.error("wrong lane",
                      fmt::format("FROM TO COUNT SHARE, two different members below {}, at least "
                                  "one message, and a finite share that is not negative",
                                  rows.members));
  const auto index = static_cast<std::uint32_t>(rows.flows.size());
  rows.flows.push_back({from, to, count, share});
  while (!line.at_end()) {
    const std::string_view word = line.word();
    if (word == "each" && !rows.waits.empty() && rows.waits.back().flow == index) {
      rows.waits.back().each = true;
    } else if (word == "wait") {
      const auto on = TRY(line.number<std::uint32_t>("a lane"));
      const auto after = TRY(messages(line));
      rows.waits.push_back({index, on, after});
    } else {
      return line.error(fmt::format("unknown word '{}'", word), "wait LANE COUNT [each]");
    }
  }
  return {};
}

Status TransferTables::parse_routes(LineReader& line) {
  TRY(expect_id(line, routes_.size()));
  routes_.push_back(std::make_shared<std::vector<FlowRoute>>());
  return {};
}

Status TransferTables::parse_route(LineReader& line) {
  if (routes_.empty()) return line.error("a way needs a line 'ways' above it");
  const auto demand = TRY(line.id<DemandId>("a demand"));
  const auto latency = TRY(line.time("a latency"));
  double extra = 0;
  if (!line.at_end()) {
    const auto given = TRY(line.number<double>("work of each message"));
    if (!(given >= 0) || !std::isfinite(given))
      return line.error("wrong work of a message", "a finite number that is not negative");
    extra = given;
  }
  routes_.back()->push_back({demand, latency, extra});
  return {};
}

Status TransferTables::parse_transfer(LineReader& line, GraphBuilder& builder) {
  const auto flows_id = TRY(line.number<std::uint32_t>("lanes"));
  if (flows_id >= flows_.size()) return line.error("there are no such lanes");
  LaneRows& rows = flows_[flows_id];
  for (const Wait& wait : rows.waits)
    if (wait.on >= rows.flows.size())
      return line.error(fmt::format("lane {} of lanes {} waits for lane {}, which does not exist",
                                    wait.flow, flows_id, wait.on));
  const auto routes_id = TRY(line.number<std::uint32_t>("ways"));
  if (routes_id >= routes_.size()) return line.error("there are no such ways");
  const auto size = TRY(line.number<double>("a size"));
  Transfer transfer{.flows = {}, .routes = routes_[routes_id], .members = {}, .size = size};
  while (!line.at_end()) {
    const auto op = TRY(line.id<OpId>("an op"));
    transfer.members.push_back(op);
  }
  // Flows take memory for each of their members. A line only claims the number of members until a
  // transfer names them.
  if (transfer.members.size() != rows.members)
    return line.error(fmt::format("the transfer has {} ops", transfer.members.size()),
                      fmt::format("{}, one per member of lanes {}", rows.members, flows_id));
  if (!rows.made)
    rows.made =
        std::make_shared<MessageFlows>(rows.members, std::move(rows.flows), std::move(rows.waits));
  transfer.flows = rows.made;
  builder.add(std::move(transfer));
  return {};
}

std::string transfer_lines(const Graph& graph) {
  fmt::memory_buffer out;
  const auto print = [&out]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  std::vector<const MessageFlows*> flows;
  std::vector<const std::vector<FlowRoute>*> routes;
  const auto place = [](auto& table, const auto* entry, const auto& write) {
    const auto found = std::find(table.begin(), table.end(), entry);
    if (found != table.end()) return static_cast<std::size_t>(found - table.begin());
    table.push_back(entry);
    write(table.size() - 1);
    return table.size() - 1;
  };
  std::vector<std::pair<std::size_t, std::size_t>> of_transfer;
  for (const Transfer& t : graph.transfers()) {
    const std::size_t l = place(flows, t.flows.get(), [&](std::size_t id) {
      print("lanes {} {}\n", id, t.flows->members());
      for (std::uint32_t i = 0; i < t.flows->flows().size(); ++i) {
        const MessageFlow& flow = t.flows->flows()[i];
        print("lane {} {} {} {}", flow.from, flow.to, flow.count, flow.share);
        for (const Wait& wait : t.flows->waits(i))
          print(" wait {} {}{}", wait.on, wait.after, wait.each ? " each" : "");
        print("\n");
      }
    });
    const std::size_t w = place(routes, t.routes.get(), [&](std::size_t id) {
      print("ways {}\n", id);
      for (const FlowRoute& route : *t.routes)
        print("way {} {}ps{}\n", route.demand.index(), route.latency.count(),
              route.extra == 0 ? "" : fmt::format(" {}", route.extra));
    });
    of_transfer.emplace_back(l, w);
  }
  for (std::size_t i = 0; i < of_transfer.size(); ++i) {
    const Transfer& t = graph.transfers()[i];
    print("transfer {} {} {}", of_transfer[i].first, of_transfer[i].second, t.size);
    for (const OpId op : t.members) print(" {}", op.index());
    print("\n");
  }
  return fmt::to_string(out);
}

}  // namespace rehearse::graph
