#include "sim/engine/messages.h"

#include <fmt/core.h>

namespace rehearse::engine {

using graph::Lane;
using graph::Lanes;
using graph::Transfer;
using graph::Wait;

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
  const Lanes& lanes = *t.lanes;
  Active& active = active_[transfer];
  std::uint32_t end = static_cast<std::uint32_t>(slots_.size());
  const auto lane_count = static_cast<std::uint32_t>(lanes.lanes().size());
  active.first_slot = slot_places_.take(lane_count, end);
  slots_.resize(end);
  for (std::uint32_t lane = 0; lane < lane_count; ++lane)
    slots_[active.first_slot + lane] = {.delivered = 0,
                                        .travelling = false,
                                        .transfer = transfer,
                                        .way = &(*t.ways)[lane],
                                        .bytes = lanes.lanes()[lane].share * t.size};
  end = static_cast<std::uint32_t>(members_.size());
  active.first_member = member_places_.take(lanes.members(), end);
  members_.resize(end);
  active.members_left = lanes.members();
  for (std::uint32_t m = 0; m < lanes.members(); ++m)
    members_[active.first_member + m] = {
        .takes_part = false, .lanes_left = static_cast<std::uint32_t>(lanes.of_member(m).size())};
}

void Messages::take_part(OpId op, Consequences& next) {
  const auto [transfer, member] = member_of_[op.index()];
  if (active_[transfer].first_slot == kNone) begin(transfer);
  const Active active = active_[transfer];
  Member& state = members_[active.first_member + member];
  state.takes_part = true;
  const Lanes& lanes = *graph_.transfers()[transfer].lanes;
  if (state.lanes_left == 0) {  // nothing from or to it: it ends at once
    state.lanes_left = 1;
    return lane_done(transfer, member, next);
  }
  for (const std::uint32_t lane : lanes.of_member(member)) try_lane(transfer, active, lane, next);
}

void Messages::try_lane(std::uint32_t transfer, const Active& active, std::uint32_t lane,
                        Consequences& next) {
  Slot& slot = slots_[active.first_slot + lane];
  const Lanes& lanes = *graph_.transfers()[transfer].lanes;
  const Lane& l = lanes.lanes()[lane];
  if (slot.travelling || slot.delivered == l.count) return;
  for (const Wait& wait : lanes.waits(lane))
    if (slots_[active.first_slot + wait.on].delivered < lanes.due(wait, slot.delivered)) return;
  if (!members_[active.first_member + l.from].takes_part ||
      !members_[active.first_member + l.to].takes_part)
    return;
  slot.travelling = true;
  next.leaving.push_back(active.first_slot + lane);
}

void Messages::arrive(std::uint32_t index, Consequences& next) {
  Slot& slot = slots_[index];
  const std::uint32_t transfer = slot.transfer;
  const Active active = active_[transfer];
  const std::uint32_t lane = index - active.first_slot;
  const Lanes& lanes = *graph_.transfers()[transfer].lanes;
  slot.travelling = false;
  const bool last = ++slot.delivered == lanes.lanes()[lane].count;
  if (!last) try_lane(transfer, active, lane, next);
  for (const std::uint32_t woken : lanes.woken_by(lane)) try_lane(transfer, active, woken, next);
  if (!last) return;
  lane_done(transfer, lanes.lanes()[lane].from, next);
  lane_done(transfer, lanes.lanes()[lane].to, next);
}

void Messages::lane_done(std::uint32_t transfer, std::uint32_t member, Consequences& next) {
  Active& active = active_[transfer];
  if (--members_[active.first_member + member].lanes_left > 0) return;
  next.ended.push_back(graph_.transfers()[transfer].members[member]);
  if (--active.members_left > 0) return;
  const Lanes& lanes = *graph_.transfers()[transfer].lanes;
  slot_places_.give_back(active.first_slot, static_cast<std::uint32_t>(lanes.lanes().size()));
  member_places_.give_back(active.first_member, lanes.members());
  active.first_slot = kNone;
}

std::string Messages::describe_waiting(OpId op) const {
  const auto [transfer, member] = member_of_[op.index()];
  const Active& active = active_[transfer];
  const Lanes& lanes = *graph_.transfers()[transfer].lanes;
  for (const std::uint32_t lane : lanes.of_member(member)) {
    const Slot& slot = slots_[active.first_slot + lane];
    const Lane& l = lanes.lanes()[lane];
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
