#include "sim/graph/transfer_lines.h"

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

Status TransferTables::parse_lanes(LineReader& line) {
  if (Status ok = expect_id(line, lanes_.size()); !ok) return ok;
  const auto members = line.number<std::uint32_t>("a number of members");
  if (!members) return forward(members);
  lanes_.push_back({*members});
  return {};
}

Status TransferTables::parse_lane(LineReader& line) {
  if (lanes_.empty() || lanes_.back().made)
    return line.error("a lane needs a line 'lanes' above it, and no transfer between them");
  LaneRows& rows = lanes_.back();
  const auto from = line.number<std::uint32_t>("a member");
  if (!from) return forward(from);
  const auto to = line.number<std::uint32_t>("a member");
  if (!to) return forward(to);
  const auto count = messages(line);
  if (!count) return forward(count);
  const auto share = line.number<double>("a share of the size");
  if (!share) return forward(share);
  if (*from >= rows.members || *to >= rows.members || *from == *to || *count == 0 ||
      !(*share >= 0) || !std::isfinite(*share))
    return line.error("wrong lane",
                      fmt::format("FROM TO COUNT SHARE, two different members below {}, at least "
                                  "one message, and a finite share that is not negative",
                                  rows.members));
  const auto index = static_cast<std::uint32_t>(rows.lanes.size());
  rows.lanes.push_back({*from, *to, *count, *share});
  while (!line.at_end()) {
    const std::string_view word = line.word();
    if (word == "each" && !rows.waits.empty() && rows.waits.back().lane == index) {
      rows.waits.back().each = true;
    } else if (word == "wait") {
      const auto on = line.number<std::uint32_t>("a lane");
      if (!on) return forward(on);
      const auto after = messages(line);
      if (!after) return forward(after);
      rows.waits.push_back({index, *on, *after});
    } else {
      return line.error(fmt::format("unknown word '{}'", word), "wait LANE COUNT [each]");
    }
  }
  return {};
}

Status TransferTables::parse_ways(LineReader& line) {
  if (Status ok = expect_id(line, ways_.size()); !ok) return ok;
  ways_.push_back(std::make_shared<std::vector<Way>>());
  return {};
}

Status TransferTables::parse_way(LineReader& line) {
  if (ways_.empty()) return line.error("a way needs a line 'ways' above it");
  const auto demand = line.id<DemandId>("a demand");
  if (!demand) return forward(demand);
  const auto latency = line.time("a latency");
  if (!latency) return forward(latency);
  ways_.back()->push_back({*demand, *latency});
  return {};
}

Status TransferTables::parse_transfer(LineReader& line, GraphBuilder& builder) {
  const auto lanes_id = line.number<std::uint32_t>("lanes");
  if (!lanes_id) return forward(lanes_id);
  if (*lanes_id >= lanes_.size()) return line.error("there are no such lanes");
  LaneRows& rows = lanes_[*lanes_id];
  for (const Wait& wait : rows.waits)
    if (wait.on >= rows.lanes.size())
      return line.error(fmt::format("lane {} of lanes {} waits for lane {}, which does not exist",
                                    wait.lane, *lanes_id, wait.on));
  const auto ways_id = line.number<std::uint32_t>("ways");
  if (!ways_id) return forward(ways_id);
  if (*ways_id >= ways_.size()) return line.error("there are no such ways");
  const auto size = line.number<double>("a size");
  if (!size) return forward(size);
  Transfer transfer{.lanes = {}, .ways = ways_[*ways_id], .members = {}, .size = *size};
  while (!line.at_end()) {
    const auto op = line.id<OpId>("an op");
    if (!op) return forward(op);
    transfer.members.push_back(*op);
  }
  // Lanes take memory for each of their members, whose number a line only claims until a transfer
  // names them.
  if (transfer.members.size() != rows.members)
    return line.error(fmt::format("the transfer has {} ops", transfer.members.size()),
                      fmt::format("{}, one per member of lanes {}", rows.members, *lanes_id));
  if (!rows.made)
    rows.made = std::make_shared<Lanes>(rows.members, std::move(rows.lanes), std::move(rows.waits));
  transfer.lanes = rows.made;
  builder.add(std::move(transfer));
  return {};
}

std::string transfer_lines(const Graph& graph) {
  fmt::memory_buffer out;
  const auto print = [&out]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
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
  return fmt::to_string(out);
}

}  // namespace rehearse::graph
