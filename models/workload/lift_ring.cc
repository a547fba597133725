#include <map>

#include "models/workload/lift_steps.h"
#include "models/workload/lift_traffic.h"
#include "profiler/replay/collectives.h"

namespace rehearse::workload::lifting {
namespace {

bool is_attention(const Unit& unit) { return role_of(unit.name) == Role::kAttention; }

/// The forward unit that a unit is or belongs to.
std::optional<std::size_t> forward_of(const StepUnits& step, std::size_t u) {
  return step.units[u].phase == Phase::kForward ? u : step.units[u].forward;
}

/// Whether the bytes are those of keys, of values or of both; in backward with their gradients too.
bool holds_keys(double bytes, Phase phase, const Unit& attention) {
  if (!is_attention(attention) || attention.operands.size() < 2) return false;
  const double parts = bytes / attention.operands[1].bytes();
  return parts == 1 || parts == 2 || (phase == Phase::kBackward && parts == 4);
}

struct Found {
  Ring ring;
  std::uint32_t group = 0;  ///< ranks of the largest recorded group
};

Found find_messages(const Recording& recording, const StepUnits& step) {
  const Order order(recording, step);
  std::map<GpuIndex, trace::Collective> what;
  for (const replay::CommunicationOp& op : replay::find_communication(recording))
    if (op.what && op.what->kind == CollectiveKind::kSendRecv && op.what->bytes_in)
      what.emplace(op.op, *op.what);
  Found found;
  std::set<std::uint32_t> members;
  bool forward = false;
  for (const Message& message : step.messages) {
    const auto at = what.find(message.op);
    if (at == what.end()) continue;
    const trace::Collective& c = at->second;
    const auto [before, after] = order.around(message);
    for (const std::optional<std::size_t>& u : {after, before}) {
      const std::optional<std::size_t> of = u ? forward_of(step, *u) : std::nullopt;
      if (!of || !holds_keys(static_cast<double>(*c.bytes_in), message.phase, step.units[*of]))
        continue;
      found.ring.messages.insert(message.op);
      forward = forward || message.phase == Phase::kForward;
      const std::vector<std::uint32_t> named =
          c.ranks ? members_of(recording.name(*c.ranks)) : std::vector<std::uint32_t>{};
      members.insert(named.begin(), named.end());
      found.group = std::max(
          {found.group, c.group_size.value_or(0), static_cast<std::uint32_t>(named.size())});
      break;
    }
  }
  if (!forward) return {};
  found.ring.members.assign(members.begin(), members.end());
  return found;
}

/// By unit: the first part of the attention that it is a part of, else itself. Forward parts have no
/// product between them; others follow their forward units.
std::vector<std::size_t> first_parts(const StepUnits& step) {
  std::vector<std::size_t> first(step.units.size());
  std::optional<std::size_t> open;
  std::map<std::pair<Phase, std::size_t>, std::size_t> of_forward;
  for (std::size_t u = 0; u < step.units.size(); ++u) {
    const Unit& unit = step.units[u];
    first[u] = u;
    if (unit.phase == Phase::kForward) {
      if (is_attention(unit) && open) first[u] = *open;
      if (is_landmark(unit)) open = is_attention(unit) ? std::optional(first[u]) : std::nullopt;
    } else if (is_attention(unit) && unit.forward) {
      first[u] = of_forward.try_emplace({unit.phase, first[*unit.forward]}, u).first->second;
    }
  }
  return first;
}

/// The ranks of the ring; 0 if they are unknown, or if attention has not one part for each.
std::uint32_t ranks_of(const StepUnits& step, const std::vector<std::size_t>& first,
                       const Found& found) {
  std::map<std::size_t, std::uint32_t> parts;
  for (std::size_t u = 0; u < first.size(); ++u)
    if (step.units[u].phase == Phase::kForward && is_attention(step.units[u])) ++parts[first[u]];
  const std::uint32_t most =
      std::ranges::max_element(parts, {}, [](const auto& one) { return one.second; })->second;
  if (std::ranges::any_of(parts, [&](const auto& one) { return one.second != most; })) return 0;
  // Groups of two may be those of neighbours.
  if (most > 1) return found.group > 2 && found.group != most ? 0 : most;
  return found.ring.members.size() > found.group ? 0 : found.group;
}

}  // namespace

void join_ring(const Recording& recording, StepUnits& step) {
  Found found = find_messages(recording, step);
  if (found.ring.messages.empty()) return;
  const std::vector<std::size_t> first = first_parts(step);
  found.ring.ranks = ranks_of(step, first, found);
  if (found.ring.members.size() != found.ring.ranks) found.ring.members.clear();
  std::vector<Unit> units;
  std::vector<std::size_t> now(first.size());
  for (std::size_t u = 0; u < first.size(); ++u) {
    Unit& unit = step.units[u];
    if (first[u] != u) {
      now[u] = now[first[u]];
      Unit& whole = units[now[u]];
      whole.time += unit.time;
      ++whole.parts;
      whole.device.insert(whole.device.end(), unit.device.begin(), unit.device.end());
      continue;
    }
    now[u] = units.size();
    if (is_attention(unit)) unit.ring = std::max(1U, found.ring.ranks);
    units.push_back(std::move(unit));
  }
  for (Unit& unit : units)
    if (unit.forward) unit.forward = now[*unit.forward];
  for (Gradient& gradient : step.gradients)
    if (gradient.unit) gradient.unit = now[*gradient.unit];
  step.units = std::move(units);
  step.ring = std::move(found.ring);
}

}  // namespace rehearse::workload::lifting
