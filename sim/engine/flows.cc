#include "sim/engine/flows.h"

#include <algorithm>

#include "sim/base/check.h"

namespace rehearse::engine {

using graph::Capacity;
using graph::Demand;

std::optional<Picoseconds> Turn::at(Picoseconds now, std::span<const FlowGroupId> there) {
  if (!holder_) {
    holder_ = *std::ranges::min_element(there);
    since_ = now;
  }
  if (changes_at_) {
    if (now < *changes_at_) return changes_at_;
    since_ = *changes_at_;
    idle_since_ = since_;
    changes_at_.reset();
  }
  const bool others =
      std::ranges::any_of(there, [&](FlowGroupId group) { return group != *holder_; });
  if (!others) return std::nullopt;
  const bool busy = std::ranges::find(there, *holder_) != there.end();
  const Picoseconds ends = busy ? since_ + law_.quantum : idle_since_ + law_.change;
  if (now < ends) return ends;
  // The next group after the holder, cyclically.
  FlowGroupId next = *holder_;
  for (const FlowGroupId group : there) {
    if (group == *holder_) continue;
    const bool after = group > *holder_, best_after = next > *holder_;
    if (next == *holder_ || (after && !best_after) || (after == best_after && group < next))
      next = group;
  }
  holder_ = next;
  since_ = idle_since_ = now;
  if (law_.change > Picoseconds(0)) {
    changes_at_ = now + law_.change;
    return changes_at_;
  }
  return since_ + law_.quantum;
}

Flows::Flows(const graph::Graph& graph, const RunOptions& options, EventQueue& events)
    : graph_(graph),
      division_(options.division),
      on_failure_(options.on_failure),
      events_(events),
      divider_(graph, users_),
      ports_(graph.capacities().size()),
      class_of_demand_(graph.demands().size(), kNone),
      users_(graph.capacities().size()),
      seen_capacity_(graph.capacities().size(), 0),
      reached_capacity_(graph.capacities().size(), 0),
      wanted_(graph.capacities().size(), 0) {
  constexpr double kRounding = 1 + 1e-9;
  for (std::size_t i = 0; i < graph.capacities().size(); ++i) {
    ports_[i].most = graph.capacities()[i].rate * kRounding;
    if (!graph.capacities()[i].turns) continue;
    turns_.resize(graph.capacities().size());
    turns_[i].emplace(*graph.capacities()[i].turns);
  }
  const bool grouped = division_ == Division::kCoflow || division_ == Division::kEchelon;
  for (const Demand& demand : graph.demands()) {
    double rate = grouped ? 0 : demand.rate_cap;
    for (std::size_t k = 0; k < demand.capacities.size(); ++k) {
      const Capacity& capacity = graph.capacities()[demand.capacities[k].index()];
      const bool constant = capacity.changes.empty() && !capacity.turns;
      rate = constant ? std::min(rate, capacity.rate / demand.units_taken(k)) : 0;
    }
    rate_alone_.push_back(rate);
    first_taken_.push_back(static_cast<std::uint32_t>(taken_alone_.size()));
    for (std::size_t k = 0; k < demand.capacities.size(); ++k)
      taken_alone_.push_back({demand.capacities[k], rate * demand.units_taken(k)});
  }
  first_taken_.push_back(static_cast<std::uint32_t>(taken_alone_.size()));
  if (!grouped) return;
  for (const Demand& demand : graph.demands())
    if (demand.group && demand.group->index() >= group_users_.size())
      group_users_.resize(demand.group->index() + 1);
  group_began_.resize(group_users_.size());
}

std::uint32_t Flows::class_for(DemandId demand) {
  const bool own = !group_users_.empty();
  if (!own && class_of_demand_[demand.index()] != kNone) return class_of_demand_[demand.index()];
  std::uint32_t c = static_cast<std::uint32_t>(classes_.size());
  if (own && !free_classes_.empty()) {
    c = free_classes_.back();
    free_classes_.pop_back();
  } else {
    classes_.emplace_back();
    shares_.push_back({nullptr, demand, 0, 1});
    seen_class_.push_back(0);
  }
  classes_[c].demand = demand;
  const Demand& asked = graph_.demands()[demand.index()];
  shares_[c] = {&asked, demand, asked.priority, asked.weight};
  if (!own) class_of_demand_[demand.index()] = c;
  return c;
}

void Flows::activate(std::uint32_t index, Picoseconds at) {
  Class& c = classes_[index];
  Share& share = shares_[index];
  c.active = true;
  share.service = 0;
  share.at = at;
  share.rate = 0;
  c.since = ++sequence_;
  c.component = kNone;
  const Demand& demand = graph_.demands()[c.demand.index()];
  for (const CapacityId capacity : demand.capacities) {
    users_[capacity.index()].push_back(index);
    ++ports_[capacity.index()].users;
  }
  if (!group_users_.empty() && demand.group) {
    group_users_[demand.group->index()].push_back(index);
    if (auto& began = group_began_[demand.group->index()]; !began) began = at;
  }
}

void Flows::deactivate(std::uint32_t index) {
  Class& c = classes_[index];
  const auto remove = [index](std::vector<std::uint32_t>& users) {
    users.erase(std::ranges::find(users, index));
  };
  const Demand& demand = graph_.demands()[c.demand.index()];
  for (const CapacityId capacity : demand.capacities) {
    remove(users_[capacity.index()]);
    --ports_[capacity.index()].users;
    if (Turn* turn = turn_of(capacity)) turn->left(*demand.group, shares_[index].at);
  }
  if (!group_users_.empty()) {
    if (demand.group) remove(group_users_[demand.group->index()]);
    free_classes_.push_back(index);
  }
  c.active = false;
}

bool Flows::begin_alone(std::uint32_t message, DemandId demand, double work, Picoseconds begin) {
  const double rate = rate_alone_[demand.index()], wait = work / rate;
  if (!(wait < kForever)) return false;
  for (const Taken& taken : taken_alone(demand)) {
    const Port& port = ports_[taken.capacity.index()];
    if (port.users > 0) return false;
    if (port.first_alone != kNone && port.reserved + taken.rate > port.most) return false;
  }
  for (const Taken& taken : taken_alone(demand)) {
    Port& port = ports_[taken.capacity.index()];
    if (port.first_alone == kNone)
      port.first_alone = message;
    else
      port.others_alone.push_back(message);
    port.reserved += taken.rate;
  }
  if (message >= alone_.size()) alone_.resize(message + 1);
  alone_[message] = {begin, work, demand, alone_[message].stale, true};
  events_.push(begin + Picoseconds::from(Seconds::s(wait)), EventKind::kMessageEnds, message);
  ++flowing_;
  return true;
}

void Flows::forget_alone(Alone& alone) {
  alone.active = false;
  const auto message = static_cast<std::uint32_t>(&alone - alone_.data());
  for (const Taken& taken : taken_alone(alone.demand)) {
    Port& port = ports_[taken.capacity.index()];
    std::vector<std::uint32_t>& others = port.others_alone;
    port.reserved -= taken.rate;
    if (port.first_alone != message) {
      others.erase(std::ranges::find(others, message));
    } else if (others.empty()) {
      port.first_alone = kNone;
      port.reserved = 0;  // removes rounding residue
    } else {
      port.first_alone = others.front();
      others.erase(others.begin());
    }
  }
}

bool Flows::ends_alone(std::uint32_t message) {
  if (message >= alone_.size()) return true;
  Alone& alone = alone_[message];
  if (alone.stale > 0) {
    --alone.stale;
    return false;
  }
  if (alone.active) {
    forget_alone(alone);
    --flowing_;
  }
  return true;
}

void Flows::meet_those_alone(DemandId demand, Picoseconds now) {
  for (const CapacityId capacity : capacities_of(demand))
    while (ports_[capacity.index()].first_alone != kNone) {
      const std::uint32_t message = ports_[capacity.index()].first_alone;
      Alone& alone = alone_[message];
      forget_alone(alone);
      ++alone.stale;
      if (alone.begin > now) {
        events_.push(alone.begin, EventKind::kMessageBegins, message);
        --flowing_;
        continue;
      }
      const std::uint32_t index = class_for(alone.demand);
      if (!classes_[index].active) {
        activate(index, alone.begin);
        shares_[index].rate = rate_alone_[alone.demand.index()];
        put(index, alone.work, alone.work, {true, message});
        continue;
      }
      // Another flow with this demand exists, at the same rate.
      shares_[index].advance(now);
      const double moved = shares_[index].rate * (now - alone.begin).seconds().s();
      put(index, alone.work - moved, alone.work, {true, message});
    }
}

void Flows::put(std::uint32_t index, double remaining, double work, FlowTag tag) {
  Class& c = classes_[index];
  c.flows.push_back({shares_[index].service + remaining, work, ++sequence_, tag});
  std::push_heap(c.flows.begin(), c.flows.end());
  first_changed(index);
}

void Flows::first_changed(std::uint32_t index) {
  const std::vector<Flow>& flows = classes_[index].flows;
  if (!flows.empty()) shares_[index].leaves_at = flows.front().leaves_at;
}

void Flows::join(FlowTag tag, DemandId demand, double work, Picoseconds now) {
  meet_those_alone(demand, now);
  const std::uint32_t index = class_for(demand);
  if (!classes_[index].active) activate(index, now);
  shares_[index].advance(now);
  put(index, work, work, tag);
  ++flowing_;
  changed_.push_back({.class_index = index});
}

void Flows::withdraw(FlowTag tag, DemandId demand, Picoseconds now) {
  for (const std::uint32_t index : users_[capacities_of(demand).front().index()]) {
    Class& c = classes_[index];
    const auto found = std::ranges::find(c.flows, tag, &Flow::tag);
    if (c.demand != demand || found == c.flows.end()) continue;
    shares_[index].advance(now);
    c.flows.erase(found);
    std::make_heap(c.flows.begin(), c.flows.end());
    first_changed(index);
    --flowing_;
    if (c.component != kNone) {
      const std::uint32_t component = c.component;
      // No class may keep the number: another component can get it before they are divided.
      for (const std::uint32_t other : components_[component]->classes) {
        if (classes_[other].component != component) continue;
        classes_[other].component = kNone;
        if (other != index) changed_.push_back({.class_index = other});
      }
      dissolve(component);
    }
    if (c.flows.empty())
      deactivate(index);
    else
      changed_.push_back({.class_index = index});
    return;
  }
  REHEARSE_CHECK(false, "the flow that is withdrawn does not flow");
}

void Flows::begin_anew(std::uint32_t index) {
  Class& c = classes_[index];
  for (Flow& flow : c.flows) flow.leaves_at = shares_[index].service + flow.work;
  std::make_heap(c.flows.begin(), c.flows.end());
  first_changed(index);
}

std::optional<CapacityId> Flows::stalled() const {
  const auto ends_at_zero = [&](CapacityId id) {
    const Capacity& capacity = graph_.capacities()[id.index()];
    return (capacity.changes.empty() ? capacity.rate : capacity.changes.back().rate) <= 0;
  };
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (!classes_[i].active || shares_[i].rate > 0) continue;
    const auto& capacities = shares_[i].demand->capacities;
    const auto down = std::ranges::find_if(capacities, ends_at_zero);
    if (down != capacities.end()) return *down;
    if (!capacities.empty()) return capacities.front();
  }
  return std::nullopt;
}

}  // namespace rehearse::engine
