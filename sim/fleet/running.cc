#include "sim/fleet/running.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"

namespace rehearse::fleet {

namespace {

std::uint32_t at(const std::unordered_map<std::uint32_t, std::uint32_t>& map, std::uint32_t key) {
  const auto found = map.find(key);
  return found == map.end() ? 0 : found->second;
}

Nanoseconds time_of(Nanoseconds work, double rate) {
  if (rate == 1) return work;
  const double time = std::ceil(static_cast<double>(work.count()) / rate);
  REHEARSE_CHECK(std::isfinite(time) && time < 3e18, "a rate of {} is no rate", rate);
  return Nanoseconds(static_cast<std::int64_t>(time));
}

Nanoseconds work_of(Nanoseconds time, double rate) {
  if (rate == 1) return time;
  return Nanoseconds(static_cast<std::int64_t>(static_cast<double>(time.count()) * rate));
}

}  // namespace

Running::Running(const Fleet& fleet, const std::vector<std::uint32_t>& order,
                 const Options& options, const Places& places)
    : fleet_(fleet), order_(order), options_(options), places_(places), states_(order.size()) {}

std::uint32_t Running::nodes_of(const Spot& spot) const {
  // GPUs of a node are consecutive.
  std::uint32_t nodes = 0;
  for (std::size_t i = 0; i < spot.gpus.size(); ++i)
    nodes += i == 0 || places_.node_of(spot.gpus[i]) != places_.node_of(spot.gpus[i - 1]);
  return nodes;
}

double Running::rate_on(Rank rank, const Spot& spot) const {
  if (!spot.slice) return 1;
  if (!options_.rate) return fleet_.slices[*spot.slice].rate;
  const double rate = options_.rate(order_[rank], *spot.slice);
  REHEARSE_CHECK(std::isfinite(rate) && rate > 0, "a rate of {} is no rate", rate);
  return rate;
}

Nanoseconds Running::time_on(Rank rank, const Spot& spot, Nanoseconds work,
                             Nanoseconds overhead) const {
  return overhead + time_of(work, rate_on(rank, spot));
}

Nanoseconds Running::work_left(Rank rank, Nanoseconds now) const {
  const State& s = states_[rank];
  const Nanoseconds working = std::max(Nanoseconds(0), now - s.since - s.overhead);
  return std::max(Nanoseconds(0), s.work - work_of(working, s.rate));
}

void Running::start(Rank rank, Spot spot, Nanoseconds work, Nanoseconds overhead, Nanoseconds now) {
  State& s = states_[rank];
  s = State{.work = work, .overhead = overhead, .since = now, .spot = std::move(spot)};
  s.rate = rate_on(rank, s.spot);
  s.end = now + overhead + time_of(work, s.rate);
  ends_.emplace(s.end, rank);
}

Running::Left Running::stop(Rank rank, Nanoseconds now) {
  State& s = states_[rank];
  ends_.erase({s.end, rank});
  const Nanoseconds held = now - s.since, restarting = std::min(s.overhead, held);
  const Nanoseconds work = now >= s.end ? Nanoseconds(0) : work_left(rank, now);
  return {work, s.overhead - restarting, held, restarting, std::move(s.spot)};
}

void Ahead::give_back(const Spot& spot) {
  for (const std::uint32_t gpu : spot.gpus) {
    std::uint32_t& taken = taken_.try_emplace(gpu, places_.taken(gpu)).first->second;
    taken &= ~spot.positions;
    touched_.insert(gpu);
    if (taken != 0) continue;
    if (spot.slice) shared_.insert(gpu);
    const std::uint32_t node = gpu / gpus_per_node_;
    ++freed_;
    ++of_node_[node];
    ++of_pod_[places_.pod_of_node(node)];
  }
}

std::uint32_t Ahead::free_in_pod(std::uint32_t pod) const {
  return places_.free_in_pod(pod) + at(of_pod_, pod);
}

std::uint32_t Ahead::free_in_node(std::uint32_t node) const {
  return places_.free_in_node(node) + at(of_node_, node);
}

std::optional<Keep> Ahead::fits() {
  const std::set<std::uint32_t> touched = std::move(touched_);
  touched_.clear();
  const auto keep = [&](Keep::Domain domain, std::uint32_t index, std::uint32_t free) {
    return Keep{domain, index, free - need_.gpus, shared_};
  };
  if (need_.kinds != 0) {
    for (const std::uint32_t gpu : touched)
      for (std::uint32_t kinds = need_.kinds; kinds != 0; kinds &= kinds - 1)
        if (places_.start_of(static_cast<std::uint32_t>(std::countr_zero(kinds)), taken_.at(gpu)) !=
            0)
          return Keep{Keep::Domain::kGpu, gpu, 0, {}};
    return std::nullopt;
  }
  if (placement_ != Placement::kRail) {
    const std::uint32_t free = places_.free_gpus() + freed_;
    if (free < need_.gpus) return std::nullopt;
    return keep(Keep::Domain::kFleet, 0, free);
  }
  for (const std::uint32_t gpu : touched) {
    const std::uint32_t node = gpu / gpus_per_node_, pod = places_.pod_of_node(node);
    if (need_.gpus <= gpus_per_node_) {
      if (free_in_node(node) >= need_.gpus)
        return keep(Keep::Domain::kNode, node, free_in_node(node));
    } else if (free_in_pod(pod) >= need_.gpus) {
      return keep(Keep::Domain::kPod, pod, free_in_pod(pod));
    }
  }
  return std::nullopt;
}

}  // namespace rehearse::fleet
