// The components of flows (flows.h): which classes belong together, and when they are divided.
#include <algorithm>
#include <cmath>

#include "sim/engine/flows.h"

namespace rehearse::engine {

using graph::Capacity, graph::Demand, graph::RateChange;

std::uint32_t Flows::new_component() {
  std::uint32_t index = static_cast<std::uint32_t>(components_.size());
  if (free_components_.empty()) {
    components_.emplace_back();
  } else {
    index = free_components_.back();
    free_components_.pop_back();
  }
  std::unique_ptr<Component>& component = components_[index];
  if (!component && !spare_.empty()) {
    component = std::move(spare_.back());
    spare_.pop_back();
  }
  if (!component) component = std::make_unique<Component>();
  component->live = true;
  component->in_queue = false;
  component->changed = false;
  return index;
}

void Flows::dissolve(std::uint32_t index) {
  std::unique_ptr<Component>& component = components_[index];
  if (!component || !component->live) return;
  component->live = false;
  if (component->changed) return;
  if (component->in_queue)
    spare_.push_back(std::move(component));  // its event needs only the number
  else
    free_components_.push_back(index);
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
  return std::ranges::any_of(demand.capacities, [&](CapacityId capacity) {
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
  std::ranges::sort(gathered_, is_before());
}

/// Whether the component stays connected without the classes that have left. False if a search from
/// one of their capacities, about as long as gathering the component, does not reach the others
/// that are in use.
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
  for (std::size_t budget = 64 + component.classes.size(); !reached_.empty();) {
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
    components_[component]->classes = gathered_;
    components_[component]->capacities = gathered_capacities_;
    divide_component(component, now);
  };
  const bool only_left =
      std::ranges::all_of(changed_, [](const Change& change) { return change.component != kNone; });
  for (const Change& change : changed_) {
    if (change.component == kNone) {
      divide_around(change.class_index);
      continue;
    }
    Component& component = *components_[change.component];
    const bool in_use = std::ranges::any_of(component.classes, [&](std::uint32_t c) {
      return classes_[c].component == change.component;
    });
    // Most components stay connected when flows leave them.
    const bool whole = only_left && component.live && in_use && still_connected(component);
    if (whole && component.filling.repeatable && !component.next_change &&
        !component.left.empty()) {
      component.changed = false;
      divide_rest(change.component, now);
      continue;
    }
    std::erase_if(component.classes,
                  [&](std::uint32_t c) { return classes_[c].component != change.component; });
    if (whole) {
      component.changed = false;
      divide_component(change.component, now);
      continue;
    }
    const std::vector<std::uint32_t> classes = std::move(component.classes);
    for (const std::uint32_t c : classes) divide_around(c);
    // Its number is free for others only from here on.
    component.live = component.changed = false;
    free_components_.push_back(change.component);
  }
  changed_.clear();
}

/// Divides a component from the start.
void Flows::divide_component(std::uint32_t index, Picoseconds now) {
  Component& component = *components_[index];
  offer(component.capacities, now);
  component.next_change = next_change_;
  component.most_service = 0;
  sharing_.clear();
  for (const std::uint32_t each : component.classes) {
    Class& c = classes_[each];
    Share& share = shares_[each];
    c.component = index;
    share.advance(now);
    if (!failing_.empty() && on_failure_ != OnFailure::kStall)
      for (const CapacityId capacity : capacities_of(c.demand)) {
        if (std::ranges::find(failing_, capacity) == failing_.end()) continue;
        if (on_failure_ == OnFailure::kRetry) begin_anew(each);
        if (on_failure_ == OnFailure::kFail && !failed_) failed_ = capacity;
      }
    share.rate = 0;
    if (!turns_.empty() && stands_still(*share.demand)) continue;
    share.flows = static_cast<double>(c.flows.size());
    if (std::isfinite(share.leaves_at))
      component.most_service = std::max(component.most_service, std::abs(share.leaves_at));
    if (!group_users_.empty() && share.demand->group)
      share.due =
          (*group_began_[share.demand->group->index()] + share.demand->due - now).seconds().s();
    sharing_.push_back(each);
  }
  divider_.divide(shares_, sharing_, division_, now, component.filling);
  schedule(index, now);
}

/// Divides a component whose only change is that flows have left it: from the first step of the
/// filling that fixed one of them.
void Flows::divide_rest(std::uint32_t index, Picoseconds now) {
  Component& component = *components_[index];
  Filling& filling = component.filling;
  divider_.reopen(filling, component.first_left);
  for (const std::uint32_t each : component.left) {
    Share& share = shares_[each];
    divider_.reduce(share, each, static_cast<double>(classes_[each].flows.size()), filling);
    if (std::isfinite(share.leaves_at))
      component.most_service = std::max(component.most_service, std::abs(share.leaves_at));
  }
  divider_.fill(shares_, now, filling);
  schedule(index, now);
}

/// Finds the next event of a component that has been divided.
void Flows::schedule(std::uint32_t index, Picoseconds now) {
  Component& component = *components_[index];
  Picoseconds next = component.next_change.value_or(kNever);
  for (Filling::Step& step : component.filling.steps) {
    if (step.fixed_at == now && step.wait < kForever)
      step.first_end = now + Picoseconds::from(Seconds::s(step.wait));
    next = std::min(next, step.first_end);
  }
  if (next == kNever) return;
  component.in_queue = true;
  events_.push(next, EventKind::kFlowEnds, index);
}

void Flows::leave(std::uint32_t index, Picoseconds now, std::vector<FlowTag>& done) {
  if (!components_[index]) return free_components_.push_back(index);
  Component& component = *components_[index];
  component.in_queue = false;
  component.left_behind.clear();
  component.left.clear();
  for (std::size_t k = 0; k < component.filling.steps.size(); ++k) {
    // No flow of other steps is within the slack of is_done().
    const Filling::Step& step = component.filling.steps[k];
    const double slack = 1e-12 + component.most_service / step.slowest * 1e-15;
    if (step.wait - (now - step.fixed_at).seconds().s() > slack) continue;
    for (const std::uint32_t each : component.filling.classes_of(k)) {
      shares_[each].advance(now);
      if (!is_done(each)) continue;
      if (component.left.empty()) component.first_left = k;
      component.left.push_back(each);
    }
  }
  std::ranges::sort(component.left, is_before());
  for (const std::uint32_t each : component.left) {
    if (leave_class(each, done)) continue;
    const auto capacities = capacities_of(classes_[each].demand);
    component.left_behind.insert(component.left_behind.end(), capacities.begin(), capacities.end());
  }
  component.changed = true;
  changed_.push_back({.component = index});
}

/// Whether the flow of this class that leaves first is within half a picosecond of its end, the
/// rounding of instants, or within the rounding of the service itself.
bool Flows::is_done(std::uint32_t index) const {
  const Share& share = shares_[index];
  const double slack = std::max(share.rate * 0.51e-12, std::abs(share.leaves_at) * 1e-15);
  return std::isfinite(share.leaves_at) && share.leaves_at - share.service <= slack;
}

/// Removes the flows of a class that have moved their work. False if none is left.
bool Flows::leave_class(std::uint32_t index, std::vector<FlowTag>& done) {
  Class& c = classes_[index];
  while (!c.flows.empty()) {
    if (!is_done(index)) return true;
    done.push_back(c.flows.front().tag);
    std::pop_heap(c.flows.begin(), c.flows.end());
    c.flows.pop_back();
    first_changed(index);
    --flowing_;
  }
  c.component = kNone;
  deactivate(index);
  return false;
}

}  // namespace rehearse::engine
