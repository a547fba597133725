#include "sim/engine/sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rehearse::engine {

using graph::Capacity;
using graph::RateChange;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Sharing::Sharing(const graph::Graph& graph)
    : graph_(graph),
      class_of_demand_(graph.demands().size()),
      left_(graph.capacities().size()),
      weight_(graph.capacities().size()) {}

void Sharing::join(OpId op, DemandId demand, double work, Picoseconds now) {
  advance(now);
  std::optional<std::uint32_t>& known = class_of_demand_[demand.index()];
  if (!known) {
    known = static_cast<std::uint32_t>(classes_.size());
    classes_.push_back({.demand = &graph_.demands()[demand.index()], .flows = {}});
  }
  Class& c = classes_[*known];
  if (c.flows.empty()) {
    c.service = 0;
    const auto later = [&](std::uint32_t a) {
      return classes_[a].demand->priority < c.demand->priority;
    };
    active_.insert(std::find_if(active_.begin(), active_.end(), later), *known);
  }
  c.flows.push_back({c.service + work, ++sequence_, op});
  std::push_heap(c.flows.begin(), c.flows.end());
  ++flowing_;
}

void Sharing::advance(Picoseconds now) {
  const double elapsed = (now - at_).seconds().s();
  for (const std::uint32_t a : active_) classes_[a].service += classes_[a].rate * elapsed;
  at_ = now;
}

double Sharing::rate_of(CapacityId capacity) const {
  const Capacity& c = graph_.capacities()[capacity.index()];
  double rate = c.rate;
  for (const RateChange& change : c.changes)
    if (change.at <= at_) rate = change.rate;
  return rate;
}

void Sharing::fill_priority(std::span<const std::uint32_t> classes) {
  const auto each_capacity = [&](std::uint32_t a, const auto& visit) {
    for (const CapacityId capacity : classes_[a].demand->capacities) visit(capacity.index());
  };
  const auto weight_of = [&](std::uint32_t a) {
    return classes_[a].demand->weight * static_cast<double>(classes_[a].flows.size());
  };
  for (const std::uint32_t a : classes)
    each_capacity(a, [&](std::uint32_t capacity) { weight_[capacity] = 0; });
  for (const std::uint32_t a : classes)
    each_capacity(a, [&](std::uint32_t capacity) { weight_[capacity] += weight_of(a); });

  std::vector<std::uint32_t> open(classes.begin(), classes.end());
  while (!open.empty()) {
    // The level (rate per unit of weight) at which each open class meets its tightest limit.
    const auto level_of = [&](std::uint32_t a) {
      double level = classes_[a].demand->rate_cap / classes_[a].demand->weight;
      each_capacity(a, [&](std::uint32_t capacity) {
        level = std::min(level, std::max(0.0, left_[capacity]) / weight_[capacity]);
      });
      return level;
    };
    double level = kInfinity;
    for (const std::uint32_t a : open) level = std::min(level, level_of(a));
    // Rounding must not leave a class of the same bottleneck for another turn.
    const double limit = level * (1 + 1e-12);
    const auto first_fixed = std::stable_partition(
        open.begin(), open.end(), [&](std::uint32_t a) { return level_of(a) > limit; });
    for (auto fixed = first_fixed; fixed != open.end(); ++fixed) {
      Class& c = classes_[*fixed];
      c.rate = level * c.demand->weight;
      each_capacity(*fixed, [&](std::uint32_t capacity) {
        left_[capacity] -= level * weight_of(*fixed);
        weight_[capacity] -= weight_of(*fixed);
      });
    }
    open.erase(first_fixed, open.end());
  }
}

std::optional<Picoseconds> Sharing::divide(Picoseconds now) {
  advance(now);
  for (const std::uint32_t a : active_)
    for (const CapacityId capacity : classes_[a].demand->capacities)
      left_[capacity.index()] = rate_of(capacity);
  for (std::size_t first = 0; first < active_.size();) {
    const std::int32_t priority = classes_[active_[first]].demand->priority;
    std::size_t stop = first;
    while (stop < active_.size() && classes_[active_[stop]].demand->priority == priority) ++stop;
    fill_priority(std::span(active_).subspan(first, stop - first));
    first = stop;
  }

  std::optional<Picoseconds> next;
  const auto consider = [&](Picoseconds at) {
    if (!next || at < *next) next = at;
  };
  constexpr double kForever = 9e6;  // seconds; beyond it a time does not fit (time.h)
  for (const std::uint32_t a : active_) {
    const Class& c = classes_[a];
    if (c.rate <= 0) continue;
    const double wait = std::max(0.0, (c.flows.front().leaves_at - c.service) / c.rate);
    if (wait < kForever) consider(at_ + Picoseconds::from(Seconds::s(wait)));
  }
  for (const std::uint32_t a : active_)
    for (const CapacityId capacity : classes_[a].demand->capacities)
      for (const RateChange& change : graph_.capacities()[capacity.index()].changes)
        if (change.at > at_) consider(change.at);
  return next;
}

void Sharing::leave(Picoseconds now, std::vector<OpId>& done) {
  advance(now);
  for (const std::uint32_t a : active_) {
    Class& c = classes_[a];
    while (!c.flows.empty()) {
      // Within half a picosecond of its end, which is how far instants are rounded, or within the
      // rounding of the service itself.
      const double leaves_at = c.flows.front().leaves_at;
      const double slack = std::max(c.rate * 0.51e-12, std::abs(leaves_at) * 1e-15);
      if (leaves_at - c.service > slack) break;
      done.push_back(c.flows.front().op);
      std::pop_heap(c.flows.begin(), c.flows.end());
      c.flows.pop_back();
      --flowing_;
    }
  }
  std::erase_if(active_, [&](std::uint32_t a) { return classes_[a].flows.empty(); });
}

CapacityId Sharing::stalled() const {
  for (const std::uint32_t a : active_)
    for (const CapacityId capacity : classes_[a].demand->capacities)
      if (classes_[a].rate <= 0) return capacity;
  return classes_[active_.front()].demand->capacities.front();
}

}  // namespace rehearse::engine
