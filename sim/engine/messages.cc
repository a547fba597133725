#include "sim/engine/messages.h"

#include <fmt/core.h>

namespace rehearse::engine {

using graph::MessageFlow, graph::MessageFlows, graph::Transfer, graph::Wait;

Messages::Messages(const graph::Graph& graph) : graph_(graph), active_(graph.transfers().size()) {
  if (graph.transfers().empty()) return;
  member_of_.resize(graph.size());
  for (std::uint32_t t = 0; t < graph.transfers().size(); ++t) {
    const std::vector<OpId>& members = graph.transfers()[t].members;
    for (std::uint32_t m = 0; m < members.size(); ++m) member_of_[members[m].index()] = {t, m};
  }
}

std::uint32_t Messages::Places::take(std::uint32_t length, std::uint32_t& end) {
  std::vector<std::uint32_t>& free = free_[length];
  std::uint32_t first = end;
  if (free.empty()) {
    end += length;
  } else {
    first = free.back();
    free.pop_back();
  }
  return first;
}

void Messages::begin(std::uint32_t transfer) {
  const Transfer& t = graph_.transfers()[transfer];
  const MessageFlows& flows = *t.flows;
  Active& active = active_[transfer];
  std::uint32_t end = static_cast<std::uint32_t>(slots_.size());
  const auto flow_count = static_cast<std::uint32_t>(flows.flows().size());
  active.first_slot = slot_places_.take(flow_count, end);
  slots_.resize(end);
  for (std::uint32_t flow = 0; flow < flow_count; ++flow)
    slots_[active.first_slot + flow] = {
        .delivered = 0,
        .travelling = false,
        .transfer = transfer,
        .route = &(*t.routes)[flow],
        .bytes = flows.flows()[flow].share * t.size + (*t.routes)[flow].extra};
  end = static_cast<std::uint32_t>(members_.size());
  active.first_member = member_places_.take(flows.members(), end);
  members_.resize(end);
  active.members_left = flows.members();
  for (std::uint32_t m = 0; m < flows.members(); ++m)
    members_[active.first_member + m] = {
        .takes_part = false, .flows_left = static_cast<std::uint32_t>(flows.of_member(m).size())};
}

void Messages::take_part(OpId op, Consequences& next) {
  const auto [transfer, member] = member_of_[op.index()];
  if (active_[transfer].first_slot == kNone) begin(transfer);
  const Active active = active_[transfer];
  Member& state = members_[active.first_member + member];
  state.takes_part = true;
  const MessageFlows& flows = *graph_.transfers()[transfer].flows;
  if (state.flows_left == 0) {  // nothing from or to it: it ends at once
    state.flows_left = 1;
    return flow_done(transfer, member, next);
  }
  for (const std::uint32_t flow : flows.of_member(member)) try_flow(transfer, active, flow, next);
}

void Messages::try_flow(std::uint32_t transfer, const Active& active, std::uint32_t flow,
                        Consequences& next) {
  Slot& slot = slots_[active.first_slot + flow];
  const MessageFlows& flows = *graph_.transfers()[transfer].flows;
  const MessageFlow& l = flows.flows()[flow];
  if (slot.travelling || slot.delivered == l.count) return;
  for (const Wait& wait : flows.waits(flow))
    if (slots_[active.first_slot + wait.on].delivered < flows.due(wait, slot.delivered)) return;
  if (!members_[active.first_member + l.from].takes_part ||
      !members_[active.first_member + l.to].takes_part)
    return;
  slot.travelling = true;
  next.leaving.push_back(active.first_slot + flow);
}

void Messages::arrive(std::uint32_t index, Consequences& next) {
  Slot& slot = slots_[index];
  const std::uint32_t transfer = slot.transfer;
  const Active active = active_[transfer];
  const std::uint32_t flow = index - active.first_slot;
  const MessageFlows& flows = *graph_.transfers()[transfer].flows;
  slot.travelling = false;
  const bool last = ++slot.delivered == flows.flows()[flow].count;
  if (!last) try_flow(transfer, active, flow, next);
  for (const std::uint32_t woken : flows.woken_by(flow)) try_flow(transfer, active, woken, next);
  if (!last) return;
  flow_done(transfer, flows.flows()[flow].from, next);
  flow_done(transfer, flows.flows()[flow].to, next);
}

void Messages::flow_done(std::uint32_t transfer, std::uint32_t member, Consequences& next) {
  Active& active = active_[transfer];
  if (--members_[active.first_member + member].flows_left > 0) return;
  next.ended.push_back(graph_.transfers()[transfer].members[member]);
  if (--active.members_left > 0) return;
  const MessageFlows& flows = *graph_.transfers()[transfer].flows;
  slot_places_.give_back(active.first_slot, static_cast<std::uint32_t>(flows.flows().size()));
  member_places_.give_back(active.first_member, flows.members());
  active.first_slot = kNone;
}

std::string Messages::describe_waiting(OpId op) const {
  const auto [transfer, member] = member_of_[op.index()];
  const Active& active = active_[transfer];
  const MessageFlows& flows = *graph_.transfers()[transfer].flows;
  for (const std::uint32_t flow : flows.of_member(member)) {
    const Slot& slot = slots_[active.first_slot + flow];
    const MessageFlow& l = flows.flows()[flow];
    if (slot.delivered == l.count) continue;
    for (const std::uint32_t other : {l.from, l.to})
      if (!members_[active.first_member + other].takes_part) {
        const OpId absent = graph_.transfers()[transfer].members[other];
        return fmt::format("member {} of its transfer, op {} '{}', which never takes part", other,
                           absent.index(), graph_.name(absent));
      }
    if (slot.travelling)
      return fmt::format("message {} of {} from member {} to {}", slot.delivered + 1, l.count,
                         l.from, l.to);
  }
  return "messages that wait for each other";
}

}  // namespace rehearse::engine
