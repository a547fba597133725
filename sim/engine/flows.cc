#include "sim/engine/flows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rehearse::engine {

using graph::Capacity;
using graph::Demand;
using graph::RateChange;

namespace {

constexpr double kForever = 9e6;  // seconds; beyond it a time does not fit (time.h)

}  // namespace

Flows::Flows(const graph::Graph& graph, Division division, EventQueue& events)
    : graph_(graph),
      division_(division),
      events_(events),
      divider_(graph.capacities().size()),
      class_of_demand_(graph.demands().size(), kNone),
      users_(graph.capacities().size()),
      seen_capacity_(graph.capacities().size(), 0) {
  if (division != Division::kCoflow && division != Division::kEchelon) return;
  for (const Demand& demand : graph.demands())
    if (demand.group && demand.group->index() >= group_users_.size())
      group_users_.resize(demand.group->index() + 1);
  group_began_.resize(group_users_.size());
}

double Flows::rate_of(CapacityId capacity, Picoseconds now) const {
  const Capacity& c = graph_.capacities()[capacity.index()];
  double rate = c.rate;
  for (const RateChange& change : c.changes)
    if (change.at <= now) rate = change.rate;
  return rate;
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
  for (const CapacityId capacity : demand.capacities) users_[capacity.index()].push_back(index);
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
  for (const CapacityId capacity : demand.capacities) remove(users_[capacity.index()]);
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
  component.alone = false;
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
  if (!group_users_.empty()) return false;
  const Demand& d = graph_.demands()[demand.index()];
  double rate = d.rate_cap;
  for (const CapacityId id : d.capacities) {
    const Capacity& capacity = graph_.capacities()[id.index()];
    if (!users_[id.index()].empty() || !capacity.changes.empty()) return false;
    rate = std::min(rate, capacity.rate);
  }
  const double wait = work / rate;
  if (!(wait < kForever)) return false;
  const std::uint32_t index = class_for(demand);
  activate(index, begin);
  Class& c = classes_[index];
  c.rate = rate;
  c.flows.push_back({work, ++sequence_, {true, message}});
  c.component = new_component();
  Component& component = components_[c.component];
  component.alone = true;
  component.in_queue = true;
  component.classes.push_back(index);
  events_.push(begin + Picoseconds::from(Seconds::s(wait)), EventKind::kFlowEnds, c.component);
  ++flowing_;
  return true;
}

void Flows::hand_back_those_ahead(DemandId demand, Picoseconds now) {
  for (const CapacityId capacity : graph_.demands()[demand.index()].capacities) {
    auto& users = users_[capacity.index()];
    for (std::size_t i = 0; i < users.size();) {
      const std::uint32_t index = users[i];
      Class& c = classes_[index];
      if (c.at <= now) {
        ++i;
        continue;
      }
      events_.push(c.at, EventKind::kMessageBegins, c.flows.front().tag.index);
      c.flows.clear();
      --flowing_;
      dissolve(c.component);
      deactivate(index);
    }
  }
}

void Flows::join(FlowTag tag, DemandId demand, double work, Picoseconds now) {
  hand_back_those_ahead(demand, now);
  const std::uint32_t index = class_for(demand);
  if (!classes_[index].active) activate(index, now);
  Class& c = classes_[index];
  advance(c, now);
  c.flows.push_back({c.service + work, ++sequence_, tag});
  std::push_heap(c.flows.begin(), c.flows.end());
  ++flowing_;
  changed_.push_back(index);
}

void Flows::advance(Class& c, Picoseconds now) {
  c.service += c.rate * (now - c.at).seconds().s();
  c.at = now;
}

void Flows::gather(std::uint32_t seed, std::vector<std::uint32_t>& classes) {
  const auto see = [&](std::uint32_t index) {
    if (seen_class_[index] == gathering_) return;
    seen_class_[index] = gathering_;
    classes.push_back(index);
  };
  see(seed);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const Class& c = classes_[classes[i]];
    const Demand& demand = graph_.demands()[c.demand.index()];
    for (const CapacityId capacity : demand.capacities) {
      if (seen_capacity_[capacity.index()] == gathering_) continue;
      seen_capacity_[capacity.index()] = gathering_;
      for (const std::uint32_t user : users_[capacity.index()]) see(user);
    }
    if (!group_users_.empty() && demand.group)
      for (const std::uint32_t user : group_users_[demand.group->index()]) see(user);
    if (c.component != kNone) dissolve(c.component);
  }
  // By falling priority, then by age. The keys stand beside the indices: a sort that looks them up
  // costs more than the division of a large component.
  ranked_.clear();
  for (const std::uint32_t index : classes) {
    const Class& c = classes_[index];
    ranked_.push_back({-std::int64_t{graph_.demands()[c.demand.index()].priority}, c.since, index});
  }
  std::sort(ranked_.begin(), ranked_.end());
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = ranked_[i].index;
}

void Flows::divide(Picoseconds now) {
  ++gathering_;
  for (const std::uint32_t seed : changed_) {
    if (!classes_[seed].active || seen_class_[seed] == gathering_) continue;
    gathered_.clear();
    gather(seed, gathered_);
    divide_component(gathered_, now);
  }
  changed_.clear();
}

void Flows::divide_component(std::vector<std::uint32_t>& classes, Picoseconds now) {
  std::optional<Picoseconds> next;
  const auto consider = [&](Picoseconds at) {
    if (!next || at < *next) next = at;
  };
  shares_.clear();
  for (const std::uint32_t index : classes) {
    Class& c = classes_[index];
    advance(c, now);
    const Demand& demand = graph_.demands()[c.demand.index()];
    double due = 0;
    if (!group_users_.empty() && demand.group)
      due = (*group_began_[demand.group->index()] + demand.due - now).seconds().s();
    shares_.push_back({.demand = &demand,
                       .flows = static_cast<double>(c.flows.size()),
                       .remaining = std::max(0.0, c.flows.front().leaves_at - c.service),
                       .due = due});
    for (const CapacityId capacity : demand.capacities) {
      divider_.offer(capacity, rate_of(capacity, now));
      for (const RateChange& change : graph_.capacities()[capacity.index()].changes)
        if (change.at > now) {
          consider(change.at);
          break;
        }
    }
  }
  divider_.divide(shares_, division_);
  const std::uint32_t component = new_component();
  for (std::size_t i = 0; i < classes.size(); ++i) {
    Class& c = classes_[classes[i]];
    c.rate = shares_[i].rate;
    c.component = component;
    const double wait = c.rate > 0 ? shares_[i].remaining / c.rate : kForever;
    if (wait < kForever) consider(now + Picoseconds::from(Seconds::s(wait)));
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
  if (component.alone) {
    Class& c = classes_[component.classes.front()];
    done.push_back(c.flows.front().tag);
    c.flows.clear();
    --flowing_;
    deactivate(component.classes.front());
    return dissolve(index);
  }
  for (const std::uint32_t each : component.classes) {
    Class& c = classes_[each];
    advance(c, now);
    while (!c.flows.empty()) {
      // Within half a picosecond of its end, which is how far instants are rounded, or within the
      // rounding of the service itself.
      const double leaves_at = c.flows.front().leaves_at;
      const double slack = std::max(c.rate * 0.51e-12, std::abs(leaves_at) * 1e-15);
      if (leaves_at - c.service > slack) break;
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
  for (const Class& c : classes_)
    if (c.active && c.rate <= 0)
      for (const CapacityId capacity : graph_.demands()[c.demand.index()].capacities)
        return capacity;
  return std::nullopt;
}

}  // namespace rehearse::engine
