#include "sim/engine/flows.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace rehearse::engine {

using graph::Capacity;
using graph::Demand;
using graph::RateChange;

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
  for (std::size_t i = 0; i < graph.capacities().size(); ++i) {
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
  }
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
  c.active = true;
  c.service = 0;
  c.at = at;
  shares_[index].rate = 0;
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
    users.erase(std::find(users.begin(), users.end(), index));
  };
  const Demand& demand = graph_.demands()[c.demand.index()];
  for (const CapacityId capacity : demand.capacities) {
    remove(users_[capacity.index()]);
    --ports_[capacity.index()].users;
    if (Turn* turn = turn_of(capacity)) turn->left(*demand.group, c.at);
  }
  if (!group_users_.empty()) {
    if (demand.group) remove(group_users_[demand.group->index()]);
    free_classes_.push_back(index);
  }
  c.active = false;
}

std::uint32_t Flows::new_component() {
  std::uint32_t index = static_cast<std::uint32_t>(components_.size());
  if (free_components_.empty()) {
    components_.emplace_back();
  } else {
    index = free_components_.back();
    free_components_.pop_back();
  }
  Component& component = components_[index];
  component.live = true;
  component.in_queue = false;
  component.changed = false;
  return index;
}

void Flows::dissolve(std::uint32_t index) {
  Component& component = components_[index];
  if (!component.live) return;
  component.live = false;
  if (!component.in_queue && !component.changed) free_components_.push_back(index);
}

bool Flows::begin_alone(std::uint32_t message, DemandId demand, double work, Picoseconds begin) {
  const double rate = rate_alone_[demand.index()], wait = work / rate;
  if (!(wait < kForever)) return false;
  const Demand& asked = graph_.demands()[demand.index()];
  constexpr double kRounding = 1 + 1e-9;
  for (std::size_t k = 0; k < asked.capacities.size(); ++k) {
    const std::size_t capacity = asked.capacities[k].index();
    const Port& port = ports_[capacity];
    if (port.users > 0) return false;
    if (!port.alone.empty() && port.reserved + rate * asked.units_taken(k) >
                                   graph_.capacities()[capacity].rate * kRounding)
      return false;
  }
  for (std::size_t k = 0; k < asked.capacities.size(); ++k) {
    Port& port = ports_[asked.capacities[k].index()];
    port.alone.push_back(message);
    port.reserved += rate * asked.units_taken(k);
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
  const Demand& demand = graph_.demands()[alone.demand.index()];
  for (std::size_t k = 0; k < demand.capacities.size(); ++k) {
    Port& port = ports_[demand.capacities[k].index()];
    port.alone.erase(std::find(port.alone.begin(), port.alone.end(), message));
    port.reserved -= rate_alone_[alone.demand.index()] * demand.units_taken(k);
    if (port.alone.empty()) port.reserved = 0;  // removes rounding residue
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
    while (!ports_[capacity.index()].alone.empty()) {
      const std::uint32_t message = ports_[capacity.index()].alone.front();
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
        put(classes_[index], {alone.work, alone.work, ++sequence_, {true, message}});
        continue;
      }
      // Another flow with this demand exists, at the same rate.
      Class& c = classes_[index];
      advance(c, shares_[index].rate, now);
      const double moved = shares_[index].rate * (now - alone.begin).seconds().s();
      put(c, {c.service + (alone.work - moved), alone.work, ++sequence_, {true, message}});
    }
}

void Flows::put(Class& c, const Flow& flow) {
  c.flows.push_back(flow);
  std::push_heap(c.flows.begin(), c.flows.end());
  c.leaves_at = c.flows.front().leaves_at;
}

void Flows::take_first(Class& c) {
  std::pop_heap(c.flows.begin(), c.flows.end());
  c.flows.pop_back();
  if (!c.flows.empty()) c.leaves_at = c.flows.front().leaves_at;
}

void Flows::join(FlowTag tag, DemandId demand, double work, Picoseconds now) {
  meet_those_alone(demand, now);
  const std::uint32_t index = class_for(demand);
  if (!classes_[index].active) activate(index, now);
  Class& c = classes_[index];
  advance(c, shares_[index].rate, now);
  put(c, {c.service + work, work, ++sequence_, tag});
  ++flowing_;
  changed_.push_back({.class_index = index});
}

void Flows::withdraw(FlowTag tag, DemandId demand, Picoseconds now) {
  for (const std::uint32_t index : users_[capacities_of(demand).front().index()]) {
    Class& c = classes_[index];
    const auto found = std::find_if(c.flows.begin(), c.flows.end(),
                                    [&](const Flow& flow) { return flow.tag == tag; });
    if (c.demand != demand || found == c.flows.end()) continue;
    advance(c, shares_[index].rate, now);
    c.flows.erase(found);
    std::make_heap(c.flows.begin(), c.flows.end());
    if (!c.flows.empty()) c.leaves_at = c.flows.front().leaves_at;
    --flowing_;
    if (c.component != kNone) {
      const std::uint32_t component = c.component;
      // No class may keep the number: another component can get it before they are divided.
      for (const std::uint32_t other : components_[component].classes) {
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

void Flows::begin_anew(Class& c) {
  for (Flow& flow : c.flows) flow.leaves_at = c.service + flow.work;
  std::make_heap(c.flows.begin(), c.flows.end());
  c.leaves_at = c.flows.front().leaves_at;
}

void Flows::advance(Class& c, double rate, Picoseconds now) {
  c.service += rate * (now - c.at).seconds().s();
  c.at = now;
}

/// Offers the rates of those of these capacities that are in use, and finds when they next change
/// and which of them fail now.
void Flows::offer(const std::vector<CapacityId>& capacities, Picoseconds now) {
  next_change_.reset();
  failing_.clear();
  for (const CapacityId id : capacities) {
    if (ports_[id.index()].users == 0) continue;
    const Capacity& capacity = graph_.capacities()[id.index()];
    double rate = capacity.rate;
    for (const RateChange& change : capacity.changes) {
      if (change.at <= now) {
        rate = change.rate;
        if (change.at == now && rate == 0) failing_.push_back(id);
        continue;
      }
      if (!next_change_ || change.at < *next_change_) next_change_ = change.at;
      break;
    }
    divider_.offer(id, rate);
    if (Turn* turn = turn_of(id)) {
      waiting_.clear();
      for (const std::uint32_t user : users_[id.index()])
        waiting_.push_back(*graph_.demands()[classes_[user].demand.index()].group);
      const std::optional<Picoseconds> change = turn->at(now, waiting_);
      if (change && (!next_change_ || *change < *next_change_)) next_change_ = change;
    }
  }
}

bool Flows::stands_still(const Demand& demand) {
  return std::any_of(demand.capacities.begin(), demand.capacities.end(), [&](CapacityId capacity) {
    const Turn* turn = turn_of(capacity);
    return turn && turn->holder() != demand.group;
  });
}

/// Fills gathered_ with the classes of the seed's component, by falling priority, then by age, and
/// their capacities.
void Flows::gather(std::uint32_t seed) {
  gathered_.clear();
  gathered_capacities_.clear();
  const auto see = [&](std::uint32_t index) {
    if (seen_class_[index] == gathering_) return;
    seen_class_[index] = gathering_;
    gathered_.push_back(index);
  };
  see(seed);
  for (std::size_t i = 0; i < gathered_.size(); ++i) {
    const Class& c = classes_[gathered_[i]];
    for (const CapacityId capacity : capacities_of(c.demand)) {
      if (seen_capacity_[capacity.index()] == gathering_) continue;
      seen_capacity_[capacity.index()] = gathering_;
      gathered_capacities_.push_back(capacity);
      for (const std::uint32_t user : users_[capacity.index()]) see(user);
    }
    const auto& group = shares_[gathered_[i]].demand->group;
    if (!group_users_.empty() && group)
      for (const std::uint32_t user : group_users_[group->index()]) see(user);
    if (c.component != kNone) dissolve(c.component);
  }
  std::sort(gathered_.begin(), gathered_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::int32_t pa = shares_[a].priority, pb = shares_[b].priority;
    return pa != pb ? pa > pb : classes_[a].since < classes_[b].since;
  });
}

/// Whether the component stays connected without the classes that have left. False if a short search
/// from one of their capacities does not reach the others that are in use.
bool Flows::still_connected(const Component& component) {
  if (!group_users_.empty()) return false;
  ++searching_;
  std::size_t to_meet = 0;
  reached_.clear();
  for (const CapacityId id : component.left_behind) {
    if (ports_[id.index()].users == 0 || wanted_[id.index()] == searching_) continue;
    wanted_[id.index()] = searching_;
    ++to_meet;
    if (reached_.empty()) reached_.push_back(id);
  }
  if (to_meet < 2) return true;
  --to_meet;
  reached_capacity_[reached_.front().index()] = searching_;
  for (std::size_t budget = 64 + component.classes.size() / 8; !reached_.empty();) {
    const CapacityId from = reached_.back();
    reached_.pop_back();
    for (const std::uint32_t user : users_[from.index()]) {
      if (budget-- == 0) return false;
      for (const CapacityId id : capacities_of(classes_[user].demand)) {
        if (reached_capacity_[id.index()] == searching_) continue;
        reached_capacity_[id.index()] = searching_;
        if (wanted_[id.index()] == searching_ && --to_meet == 0) return true;
        reached_.push_back(id);
      }
    }
  }
  return false;
}

void Flows::divide(Picoseconds now) {
  ++gathering_;
  const auto divide_around = [&](std::uint32_t seed) {
    if (!classes_[seed].active || seen_class_[seed] == gathering_) return;
    gather(seed);
    const std::uint32_t component = new_component();
    components_[component].classes = gathered_;
    components_[component].capacities = gathered_capacities_;
    divide_component(component, now);
  };
  const bool only_left = std::all_of(changed_.begin(), changed_.end(), [](const Change& change) {
    return change.component != kNone;
  });
  for (const Change& change : changed_) {
    if (change.component == kNone) {
      divide_around(change.class_index);
      continue;
    }
    // Most components stay connected when flows leave them.
    if (only_left && components_[change.component].live &&
        still_connected(components_[change.component])) {
      components_[change.component].changed = false;
      divide_component(change.component, now);
      continue;
    }
    const std::vector<std::uint32_t> classes = std::move(components_[change.component].classes);
    for (const std::uint32_t c : classes) divide_around(c);
    // Its number is free for others only from here on.
    components_[change.component].live = components_[change.component].changed = false;
    free_components_.push_back(change.component);
  }
  changed_.clear();
}

void Flows::divide_component(std::uint32_t index, Picoseconds now) {
  Component& component = components_[index];
  offer(component.capacities, now);
  sharing_.clear();
  for (const std::uint32_t each : component.classes) {
    Class& c = classes_[each];
    Share& share = shares_[each];
    c.component = index;
    advance(c, share.rate, now);
    if (!failing_.empty() && on_failure_ != OnFailure::kStall)
      for (const CapacityId capacity : capacities_of(c.demand)) {
        if (std::find(failing_.begin(), failing_.end(), capacity) == failing_.end()) continue;
        if (on_failure_ == OnFailure::kRetry) begin_anew(c);
        if (on_failure_ == OnFailure::kFail && !failed_) failed_ = capacity;
      }
    share.rate = 0;
    if (!turns_.empty() && stands_still(*share.demand)) continue;
    share.flows = static_cast<double>(c.flows.size());
    share.remaining = std::max(0.0, c.leaves_at - c.service);
    if (!group_users_.empty() && share.demand->group)
      share.due =
          (*group_began_[share.demand->group->index()] + share.demand->due - now).seconds().s();
    sharing_.push_back(each);
  }
  divider_.divide(shares_, sharing_, division_);
  double wait = kForever;
  for (const std::uint32_t each : sharing_) {
    const Share& share = shares_[each];
    if (share.rate > 0) wait = std::min(wait, share.remaining / share.rate);
  }
  std::optional<Picoseconds> next = next_change_;
  if (wait < kForever) {
    const Picoseconds end = now + Picoseconds::from(Seconds::s(wait));
    if (!next || end < *next) next = end;
  }
  if (!next) return;
  component.in_queue = true;
  events_.push(*next, EventKind::kFlowEnds, index);
}

void Flows::leave(std::uint32_t index, Picoseconds now, std::vector<FlowTag>& done) {
  Component& component = components_[index];
  component.in_queue = false;
  if (!component.live) {
    if (!component.changed) free_components_.push_back(index);
    return;
  }
  component.left_behind.clear();
  std::size_t kept = 0;
  for (const std::uint32_t each : component.classes) {
    Class& c = classes_[each];
    const double rate = shares_[each].rate;
    advance(c, rate, now);
    // Within half a picosecond of its end, the rounding of instants, or within the rounding of the
    // service itself.
    const double slack = std::max(rate * 0.51e-12, std::abs(c.leaves_at) * 1e-15);
    if (c.leaves_at - c.service <= slack && !leave_class(each, done)) {
      const auto capacities = capacities_of(c.demand);
      component.left_behind.insert(component.left_behind.end(), capacities.begin(),
                                   capacities.end());
      continue;
    }
    component.classes[kept++] = each;
  }
  component.classes.resize(kept);
  component.changed = true;
  changed_.push_back({.component = index});
}

/// Removes the flows of a class that have moved their work. False if none is left.
bool Flows::leave_class(std::uint32_t index, std::vector<FlowTag>& done) {
  Class& c = classes_[index];
  while (!c.flows.empty()) {
    const double slack = std::max(shares_[index].rate * 0.51e-12, std::abs(c.leaves_at) * 1e-15);
    if (std::isinf(c.leaves_at) || c.leaves_at - c.service > slack) return true;
    done.push_back(c.flows.front().tag);
    take_first(c);
    --flowing_;
  }
  c.component = kNone;
  deactivate(index);
  return false;
}

std::optional<CapacityId> Flows::stalled() const {
  const auto ends_at_zero = [&](CapacityId id) {
    const Capacity& capacity = graph_.capacities()[id.index()];
    return (capacity.changes.empty() ? capacity.rate : capacity.changes.back().rate) <= 0;
  };
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (!classes_[i].active || shares_[i].rate > 0) continue;
    const auto& capacities = shares_[i].demand->capacities;
    const auto down = std::find_if(capacities.begin(), capacities.end(), ends_at_zero);
    if (down != capacities.end()) return *down;
    if (!capacities.empty()) return capacities.front();
  }
  return std::nullopt;
}

}  // namespace rehearse::engine
