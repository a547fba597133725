#include "models/workload/lift_traffic.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "profiler/replay/collectives.h"
#include "sim/base/text.h"

namespace rehearse::workload::lifting {
namespace {

/// Smaller messages are numbers (norms of gradients, losses, flags), unless they have the size of an
/// output that tensor parallelism sums.
constexpr double kLeastBytes = 4096;

enum class Serves { kAttention, kExperts, kOther };

/// Whose inputs or results the message exchanges. For attention, it is an all-to-all next to it, or
/// next to fused attention a gather of keys, of values or of both, or the sum of their gradients, or
/// a message of a ring. Those of keys and values may be in one message in backward. For experts, it
/// is an all-to-all next to one of their products.
Serves serves(const Message& message, const trace::Collective& c, double ranks, const Order& order,
              const StepUnits& step, const Shares& shares, const OpMaker& maker) {
  if (step.ring.messages.contains(message.op)) return Serves::kAttention;
  const bool exchange = c.kind == CollectiveKind::kAllToAll;
  const bool gather = c.kind == CollectiveKind::kAllGather;
  if (!exchange && !gather && c.kind != CollectiveKind::kReduceScatter) return Serves::kOther;
  const auto [before, after] = order.around(message);
  for (const std::optional<std::size_t>& u : {after, before}) {
    if (!u) continue;
    const std::optional<std::size_t> forward =
        message.phase == Phase::kForward ? u : step.units[*u].forward;
    if (!forward) continue;
    const Unit& unit = step.units[*forward];
    const Role role = role_of(unit.name);
    if (exchange) {
      if (maker.of_experts(unit)) return Serves::kExperts;
      if (role == Role::kAttention || shares.of_unit[*forward] == Share::kBetween)
        return Serves::kAttention;
    } else if (role == Role::kAttention && unit.operands.size() > 1 && c.bytes_in) {
      const double all = static_cast<double>(*c.bytes_in) * (gather ? ranks : 1);
      const double parts = all / unit.operands[1].bytes();
      const bool backward = message.phase == Phase::kBackward;
      if (parts == 1 || parts == 2 || (backward && parts == 4)) return Serves::kAttention;
    }
  }
  return Serves::kOther;
}

void add(Exchanges& exchanges, const std::pair<Phase, CollectiveKind>& of, const Exchange& more) {
  Exchange& sum = exchanges[of];
  sum.count += more.count;
  sum.bytes += more.bytes;
  sum.largest = std::max(sum.largest, more.largest);
  sum.sized += more.sized;
}

std::map<GpuIndex, std::optional<trace::Collective>> collectives_of(const Recording& recording) {
  std::map<GpuIndex, std::optional<trace::Collective>> what;
  for (const replay::CommunicationOp& op : replay::find_communication(recording))
    what.emplace(op.op, op.what);
  return what;
}

bool is_sum(const trace::Collective& c) {
  return c.kind == CollectiveKind::kAllReduce || c.kind == CollectiveKind::kReduceScatter;
}

/// Divides a linear by its outputs, and the operators on them up to the next linear.
void divide_outputs(std::size_t linear, const StepUnits& step, const OpMaker& maker,
                    Shares& shares) {
  shares.of_unit[linear] = Share::kColumn;
  const double outputs = maker.output(linear).last();
  for (std::size_t u = linear + 1; u < step.units.size(); ++u) {
    const Unit& unit = step.units[u];
    if (unit.phase != Phase::kForward) continue;
    if (!maker.weights(u).empty()) return;
    if (shares.of_unit[u] == Share::kWhole &&
        std::any_of(unit.operands.begin(), unit.operands.end(), [&](const Operand& operand) {
          return operand.is_tensor() && operand.last() == outputs;
        }))
      shares.of_unit[u] = Share::kBetween;
  }
}

}  // namespace

std::vector<std::uint32_t> members_of(std::string_view text) {
  std::vector<std::uint32_t> members;
  text = trim(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return {};
  for (const std::string_view part : split(text.substr(1, text.size() - 2), ',')) {
    const std::string_view number = trim(part);
    if (number.empty() || number.size() > 9 ||
        number.find_first_not_of("0123456789") != std::string_view::npos)
      return {};
    members.push_back(static_cast<std::uint32_t>(std::stoul(std::string(number))));
  }
  std::sort(members.begin(), members.end());
  return members;
}

void find_vocabulary(const Recording& recording, const StepUnits& step, const OpMaker& maker,
                     Shares& shares) {
  const Order order(recording, step);
  const auto what = collectives_of(recording);
  bool tensor = false;
  std::set<std::size_t> tables, linears;  // forward units
  for (const Message& message : step.messages) {
    const auto at = what.find(message.op);
    if (at == what.end() || !at->second || !is_sum(*at->second) || !at->second->bytes_in) continue;
    const std::optional<std::size_t> before = order.around(message).first;
    if (!before) continue;
    const auto bytes = static_cast<double>(*at->second->bytes_in);
    const std::optional<std::size_t> forward =
        message.phase == Phase::kForward ? before : step.units[*before].forward;
    if (!forward) continue;
    const Unit& unit = step.units[*forward];
    const Share share = shares.of_unit[*forward];
    if (message.phase == Phase::kForward) {
      if (maker.output(*forward).bytes() != bytes) continue;
      if (share == Share::kRow) tensor = true;
      if (role_of(unit.name) == Role::kGather) tables.insert(*forward);
    } else if (share == Share::kWhole && !maker.weights(*forward).empty()) {
      const auto factors = factors_of(unit.name, unit.operands);
      if (factors && factors->a.bytes() == bytes) linears.insert(*forward);
    }
  }
  if (!tensor) return;
  for (const std::size_t table : tables) shares.of_unit[table] = Share::kRow;
  for (const std::size_t linear : linears) divide_outputs(linear, step, maker, shares);
}

bool has_whole_experts(const RankTraffic& traffic) {
  return std::ranges::any_of(traffic.groups, [&](const GroupTraffic& group) {
    return group.row_sums > 0 &&
           group.row_sums < (traffic.rows + traffic.expert_rows) * traffic.microbatches;
  });
}

RankTraffic traffic_of(const Recording& recording, const StepUnits& step, const Shares& shares,
                       const OpMaker& maker) {
  const trace::RankInfo& info = recording.rank().info;
  RankTraffic traffic{.source = info.source,
                      .rank = info.rank,
                      .world = info.world_size,
                      .microbatches = step.microbatches,
                      .chunks = step.chunks,
                      .groups = {}};
  std::set<double> outputs;  // of linears that are divided by inputs, in bytes
  for (std::size_t u = 0; u < step.units.size(); ++u)
    if (step.units[u].phase == Phase::kForward && shares.of_unit[u] == Share::kRow) {
      ++(shares.of_experts[u] ? traffic.expert_rows : traffic.rows);
      if (role_of(step.units[u].name) == Role::kGather) ++traffic.tables;
      outputs.insert(maker.output(u).bytes());
    }
  const auto what = collectives_of(recording);
  const Order order(recording, step);
  std::map<std::string, std::size_t> place;
  for (const Message& message : step.messages) {
    const auto at = what.find(message.op);
    if (at == what.end()) continue;
    if (!at->second) {
      ++traffic.unknown;
      continue;
    }
    const trace::Collective& c = *at->second;
    if (c.kind == CollectiveKind::kBarrier) continue;
    const bool sized = c.bytes_in.has_value() && *c.bytes_in > 0;
    const double bytes = sized ? static_cast<double>(*c.bytes_in) : 0;
    const bool row_sum =
        message.phase == Phase::kForward && is_sum(c) && (!sized || outputs.contains(bytes));
    if (sized && bytes < kLeastBytes && !row_sum) continue;
    const auto named = [&](const std::optional<NameId>& name) {
      return name ? std::string(recording.name(*name)) : std::string();
    };
    GroupTraffic group{.name = named(c.group),
                       .members = members_of(named(c.ranks)),
                       .size = c.group_size.value_or(0),
                       .exchanges = {},
                       .attention = {},
                       .experts = {}};
    const bool ring = step.ring.messages.contains(message.op);
    const bool between = c.kind == CollectiveKind::kSendRecv && !ring;
    if (ring) {
      group.members = step.ring.members;
      group.size = step.ring.ranks;
    }
    if (group.size == 0 && !ring) group.size = static_cast<std::uint32_t>(group.members.size());
    if (group.members.size() != group.size) group.members.clear();
    if (group.size == 1 && !between) continue;
    // Messages between two ranks are issued in groups of any size.
    const std::string key = between ? "messages"
                            : group.members.empty()
                                ? fmt::format("{} {}", group.size, group.name)
                                : fmt::format("{}", fmt::join(group.members, " "));
    const auto [found, is_new] = place.try_emplace(key, traffic.groups.size());
    if (is_new) traffic.groups.push_back(std::move(group));
    GroupTraffic& into = traffic.groups[found->second];
    const Serves whom =
        between ? Serves::kOther : serves(message, c, into.size, order, step, shares, maker);
    add(whom == Serves::kAttention ? into.attention
        : whom == Serves::kExperts ? into.experts
                                   : into.exchanges,
        {message.phase, c.kind},
        {.count = 1, .bytes = bytes, .largest = bytes, .sized = sized ? 1U : 0U});
    if (row_sum) ++into.row_sums;
    into.sent.push_back({.op = message.op,
                         .phase = message.phase,
                         .whole = c.kind == CollectiveKind::kAllGather ? bytes * into.size : bytes,
                         .exchange = whom != Serves::kOther});
  }
  // Only the forward pass shows context parallelism: in backward, gathers of weights and sums of
  // gradients are next to attention as well.
  for (GroupTraffic& group : traffic.groups) {
    if (!group.attention.empty() && group.attention.begin()->first.first == Phase::kForward)
      continue;
    for (const auto& [of, exchange] : group.attention) add(group.exchanges, of, exchange);
    group.attention.clear();
    if (group.experts.empty())
      for (Sent& sent : group.sent) sent.exchange = false;
  }
  return traffic;
}

}  // namespace rehearse::workload::lifting
