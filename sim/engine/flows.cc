#include "sim/engine/flows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

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
      divider_(graph.capacities().size()),
      ports_(graph.capacities().size()),
      class_of_demand_(graph.demands().size(), kNone),
      users_(graph.capacities().size()),
      seen_capacity_(graph.capacities().size(), 0) {
  for (std::size_t i = 0; i < graph.capacities().size(); ++i) {
    if (!graph.capacities()[i].turns) continue;
    turns_.resize(graph.capacities().size());
    turns_[i].emplace(*graph.capacities()[i].turns);
  }
  const bool grouped = division_ == Division::kCoflow || division_ == Division::kEchelon;
  first_capacity_.push_back(0);
  for (const Demand& demand : graph.demands()) {
    double rate = grouped ? 0 : demand.rate_cap;
    for (std::size_t k = 0; k < demand.capacities.size(); ++k) {
      capacities_.push_back(demand.capacities[k]);
      const Capacity& capacity = graph.capacities()[demand.capacities[k].index()];
      const bool constant = capacity.changes.empty() && !capacity.turns;
      rate = constant ? std::min(rate, capacity.rate / demand.taken(k)) : 0;
    }
    first_capacity_.push_back(static_cast<std::uint32_t>(capacities_.size()));
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
    seen_class_.push_back(0);
  }
  classes_[c].demand = demand;
  if (!own) class_of_demand_[demand.index()] = c;
  return c;
}

void Flows::activate(std::uint32_t index, Picoseconds at) {
  Class& c = classes_[index];
  c.active = true;
  c.service = 0;
  c.rate = 0;
  c.at = at;
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
    const auto found = std::find(users.begin(), users.end(), index);
    *found = users.back();
    users.pop_back();
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
  component.classes.clear();
  return index;
}

void Flows::dissolve(std::uint32_t index) {
  Component& component = components_[index];
  if (!component.live) return;
  component.live = false;
  if (!component.in_queue) free_components_.push_back(index);
}

bool Flows::begin_alone(std::uint32_t message, DemandId demand, double work, Picoseconds begin) {
  const double wait = work / rate_alone_[demand.index()];
  if (!(wait < kForever)) return false;
  const auto capacities = capacities_of(demand);
  for (const CapacityId capacity : capacities)
    if (const Port& port = ports_[capacity.index()]; port.users > 0 || port.alone != kNone)
      return false;
  for (const CapacityId capacity : capacities) ports_[capacity.index()].alone = message;
  if (message >= alone_.size()) alone_.resize(message + 1);
  Alone& alone = alone_[message];
  alone.begin = begin;
  alone.work = work;
  alone.demand = demand;
  alone.active = true;
  events_.push(begin + Picoseconds::from(Seconds::s(wait)), EventKind::kMessageEnds, message);
  ++flowing_;
  return true;
}

void Flows::forget_alone(Alone& alone) {
  alone.active = false;
  for (const CapacityId capacity : capacities_of(alone.demand))
    ports_[capacity.index()].alone = kNone;
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
  for (const CapacityId capacity : capacities_of(demand)) {
    const std::uint32_t message = ports_[capacity.index()].alone;
    if (message == kNone) continue;
    Alone& alone = alone_[message];
    forget_alone(alone);
    ++alone.stale;
    if (alone.begin > now) {
      events_.push(alone.begin, EventKind::kMessageBegins, message);
      --flowing_;
      continue;
    }
    const std::uint32_t index = class_for(alone.demand);
    activate(index, alone.begin);
    Class& c = classes_[index];
    c.rate = rate_alone_[alone.demand.index()];
    c.flows.push_back({alone.work, alone.work, ++sequence_, {true, message}});
  }
}

void Flows::join(FlowTag tag, DemandId demand, double work, Picoseconds now) {
  meet_those_alone(demand, now);
  const std::uint32_t index = class_for(demand);
  if (!classes_[index].active) activate(index, now);
  Class& c = classes_[index];
  advance(c, now);
  c.flows.push_back({c.service + work, work, ++sequence_, tag});
  std::push_heap(c.flows.begin(), c.flows.end());
  ++flowing_;
  changed_.push_back(index);
}

void Flows::withdraw(FlowTag tag, DemandId demand, Picoseconds now) {
  for (const std::uint32_t index : users_[capacities_of(demand).front().index()]) {
    Class& c = classes_[index];
    const auto found = std::find_if(c.flows.begin(), c.flows.end(),
                                    [&](const Flow& flow) { return flow.tag == tag; });
    if (c.demand != demand || found == c.flows.end()) continue;
    advance(c, now);
    c.flows.erase(found);
    std::make_heap(c.flows.begin(), c.flows.end());
    --flowing_;
    if (c.component != kNone) {
      const std::uint32_t component = c.component;
      // None may keep the number: another component can have it before they are divided.
      for (const std::uint32_t other : components_[component].classes) {
        classes_[other].component = kNone;
        if (other != index) changed_.push_back(other);
      }
      dissolve(component);
    }
    if (c.flows.empty())
      deactivate(index);
    else
      changed_.push_back(index);
    return;
  }
  REHEARSE_CHECK(false, "the flow that is withdrawn does not flow");
}

void Flows::begin_anew(Class& c) {
  for (Flow& flow : c.flows) flow.leaves_at = c.service + flow.work;
  std::make_heap(c.flows.begin(), c.flows.end());
}

void Flows::advance(Class& c, Picoseconds now) {
  c.service += c.rate * (now - c.at).seconds().s();
  c.at = now;
}

void Flows::offer(CapacityId id, Picoseconds now) {
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

bool Flows::stands_still(const Demand& demand) {
  return std::any_of(demand.capacities.begin(), demand.capacities.end(), [&](CapacityId capacity) {
    const Turn* turn = turn_of(capacity);
    return turn && turn->holder() != demand.group;
  });
}

/// Into gathered_: the classes of the seed's component, by falling priority, then by age.
void Flows::gather(std::uint32_t seed, Picoseconds now) {
  gathered_.clear();
  next_change_.reset();
  failing_.clear();
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
      offer(capacity, now);
      for (const std::uint32_t user : users_[capacity.index()]) see(user);
    }
    const auto& group = graph_.demands()[c.demand.index()].group;
    if (!group_users_.empty() && group)
      for (const std::uint32_t user : group_users_[group->index()]) see(user);
    if (c.component != kNone) dissolve(c.component);
  }
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const std::int32_t pa = graph_.demands()[classes_[a].demand.index()].priority;
    const std::int32_t pb = graph_.demands()[classes_[b].demand.index()].priority;
    return pa != pb ? pa > pb : classes_[a].since < classes_[b].since;
  };
  // After a leave, those that stay have changed, in order: no need to sort.
  const bool all_changed =
      seed == changed_.front() && changed_.size() == gathered_.size() &&
      std::all_of(changed_.begin(), changed_.end(),
                  [&](std::uint32_t c) { return seen_class_[c] == gathering_; }) &&
      std::adjacent_find(changed_.begin(), changed_.end(), std::not_fn(before)) == changed_.end();
  if (all_changed)
    gathered_ = changed_;
  else
    std::sort(gathered_.begin(), gathered_.end(), before);
}

void Flows::divide(Picoseconds now) {
  ++gathering_;
  for (const std::uint32_t seed : changed_) {
    if (!classes_[seed].active || seen_class_[seed] == gathering_) continue;
    gather(seed, now);
    divide_component(gathered_, now);
  }
  changed_.clear();
}

void Flows::divide_component(const std::vector<std::uint32_t>& classes, Picoseconds now) {
  std::optional<Picoseconds> next = next_change_;
  shares_.clear();
  for (const std::uint32_t index : classes) {
    Class& c = classes_[index];
    advance(c, now);
    const Demand& demand = graph_.demands()[c.demand.index()];
    if (!failing_.empty() && on_failure_ != OnFailure::kStall)
      for (const CapacityId capacity : demand.capacities) {
        if (std::find(failing_.begin(), failing_.end(), capacity) == failing_.end()) continue;
        if (on_failure_ == OnFailure::kRetry) begin_anew(c);
        if (on_failure_ == OnFailure::kFail && !failed_) failed_ = capacity;
      }
    c.rate = 0;
    if (!turns_.empty() && stands_still(demand)) continue;
    double due = 0;
    if (!group_users_.empty() && demand.group)
      due = (*group_began_[demand.group->index()] + demand.due - now).seconds().s();
    shares_.push_back({.demand = &demand,
                       .flows = static_cast<double>(c.flows.size()),
                       .remaining = std::max(0.0, c.flows.front().leaves_at - c.service),
                       .due = due});
  }
  divider_.divide(shares_, division_);
  const std::uint32_t component = new_component();
  auto share = shares_.begin();
  for (const std::uint32_t index : classes) {
    Class& c = classes_[index];
    c.component = component;
    if (share == shares_.end() || share->demand != &graph_.demands()[c.demand.index()]) continue;
    c.rate = share->rate;
    const double wait = c.rate > 0 ? share->remaining / c.rate : kForever;
    ++share;
    if (!(wait < kForever)) continue;
    const Picoseconds end = now + Picoseconds::from(Seconds::s(wait));
    if (!next || end < *next) next = end;
  }
  components_[component].classes = classes;
  if (!next) return;
  components_[component].in_queue = true;
  events_.push(*next, EventKind::kFlowEnds, component);
}

void Flows::leave(std::uint32_t index, Picoseconds now, std::vector<FlowTag>& done) {
  Component& component = components_[index];
  component.in_queue = false;
  if (!component.live) {
    free_components_.push_back(index);
    return;
  }
  for (const std::uint32_t each : component.classes) {
    Class& c = classes_[each];
    advance(c, now);
    while (!c.flows.empty()) {
      // Within half a picosecond of its end, which is how far instants are rounded, or within the
      // rounding of the service itself.
      const double leaves_at = c.flows.front().leaves_at;
      const double slack = std::max(c.rate * 0.51e-12, std::abs(leaves_at) * 1e-15);
      if (std::isinf(leaves_at) || leaves_at - c.service > slack) break;
      done.push_back(c.flows.front().tag);
      std::pop_heap(c.flows.begin(), c.flows.end());
      c.flows.pop_back();
      --flowing_;
    }
    c.component = kNone;
    if (c.flows.empty())
      deactivate(each);
    else
      changed_.push_back(each);
  }
  dissolve(index);
}

std::optional<CapacityId> Flows::stalled() const {
  const auto ends_at_zero = [&](CapacityId id) {
    const Capacity& capacity = graph_.capacities()[id.index()];
    return (capacity.changes.empty() ? capacity.rate : capacity.changes.back().rate) <= 0;
  };
  for (const Class& c : classes_) {
    if (!c.active || c.rate > 0) continue;
    const auto& capacities = graph_.demands()[c.demand.index()].capacities;
    const auto down = std::find_if(capacities.begin(), capacities.end(), ends_at_zero);
    if (down != capacities.end()) return *down;
    if (!capacities.empty()) return capacities.front();
  }
  return std::nullopt;
}

}  // namespace rehearse::engine
