#include "sim/engine/simgrid/carrier.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace rehearse::engine::simgrid_back_end {

using graph::Capacity, graph::Demand, graph::Graph, graph::RateChange;

namespace {

constexpr std::uint32_t kMostPieces = 16;
constexpr double kMostUnits = 50;    // as a power of two: a double holds 2^53 whole numbers
constexpr double kUntilItRises = 1;  // rate of a link that starts at zero: nothing uses it then

constexpr const char* kOtherWay = "use --fidelity message";

double most_work(const Graph& graph) {
  double most = 0;
  for (std::size_t i = 0; i < graph.size() && !graph.without_work(); ++i)
    most = std::max(most, graph.work(OpId(i)));
  for (const graph::Transfer& t : graph.transfers())
    for (const graph::MessageFlow& flow : t.flows->flows())
      most = std::max(most, flow.share * t.size);
  return most;
}

}  // namespace

Result<Layout> Layout::of(std::span<const Graph> graphs) {
  Layout layout;
  double most = 0;
  for (const Graph& graph : graphs) most = std::max(most, most_work(graph));
  if (most > 0) layout.scale_ = std::exp2(std::floor(kMostUnits - std::log2(most)));

  const Graph& graph = graphs.front();
  Platform& platform = layout.platform_;
  for (const Capacity& c : graph.capacities())
    platform.links.push_back({(c.rate > 0 ? c.rate : kUntilItRises) * layout.scale_, false});
  std::optional<std::int32_t> priority;
  for (const Demand& demand : graph.demands()) {
    layout.route_of_demand_.push_back(static_cast<std::uint32_t>(platform.routes.size()));
    if (demand.hold)
      return fail("an op that uses part of a device", "an op of fixed duration for SimGrid",
                  kOtherWay);
    if (demand.capacities.empty()) continue;
    if (!demand.units_per_work.empty() || std::ranges::any_of(demand.capacities, [&](CapacityId c) {
          return graph.capacities()[c.index()].turns.has_value();
        }))
      return fail("a device shared by jobs", "only messages over links for SimGrid", kOtherWay);
    if (demand.priority != priority.value_or(demand.priority))
      return fail(fmt::format("flows of priorities {} and {}", *priority, demand.priority),
                  "one priority for SimGrid", kOtherWay);
    priority = demand.priority;
    if (demand.weight > kMostPieces || demand.weight != std::floor(demand.weight))
      return fail(fmt::format("a flow of weight {}", demand.weight),
                  fmt::format("for SimGrid a whole number up to {}", kMostPieces), kOtherWay);
    std::vector<std::uint32_t> route;
    for (const CapacityId c : demand.capacities) route.push_back(c.index());
    if (std::isfinite(demand.rate_cap)) {
      route.push_back(static_cast<std::uint32_t>(platform.links.size()));
      platform.links.push_back({demand.rate_cap / demand.weight * layout.scale_, true});
    }
    platform.routes.push_back(std::move(route));
  }
  return layout;
}

SimGridCarrier::SimGridCarrier(const Graph& graph, const Layout& layout, Network& network)
    : graph_(graph), layout_(layout), network_(network) {
  for (std::size_t i = 0; i < graph.capacities().size(); ++i) {
    const Capacity& c = graph.capacities()[i];
    rate_.push_back(c.rate);
    for (const RateChange& change : c.changes)
      changes_.push_back({change.at, CapacityId(i), change.rate});
  }
  std::ranges::stable_sort(changes_, {}, &Change::at);
  std::ranges::reverse(changes_);
}

Picoseconds SimGridCarrier::now() const {
  const double seconds = network_.now();
  if (!(seconds < kForever))
    throw TooMuch{"the run lasts longer than 104 days of simulated time", {}, {}};
  return Picoseconds::from(Seconds::s(seconds));
}

/// A flow of weight w gets as much as w flows on the same route, so it is carried as that many
/// pieces.
std::uint32_t SimGridCarrier::pieces_of(DemandId demand) const {
  return static_cast<std::uint32_t>(graph_.demands()[demand.index()].weight);
}

void SimGridCarrier::begin(FlowTag tag, DemandId demand, double work) {
  std::uint32_t index = static_cast<std::uint32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  flows_[index] = {tag, demand};
  ++flowing_;
  launch(index, work / pieces_of(demand) * layout_.scale_);
}

void SimGridCarrier::launch(std::uint32_t index, double piece) {
  Flow& flow = flows_[index];
  piece = std::max(1.0, piece);
  for (const CapacityId c : graph_.demands()[flow.demand.index()].capacities)
    if (rate_[c.index()] <= 0) {
      flow.parked = piece;
      return;
    }
  flow.parked = 0;
  flow.pieces = pieces_of(flow.demand);
  live_ += flow.pieces;
  if (live_ > kMostFlows)
    throw TooMuch{fmt::format("more than {} concurrent flows", kMostFlows),
                  "fewer: SimGrid's run time grows faster than their square", kOtherWay};
  const std::uint32_t route = layout_.route_of_demand_[flow.demand.index()];
  for (std::uint32_t i = 0; i < flow.pieces; ++i)
    network_.begin(index * kMostPieces + i, route, piece);
}

void SimGridCarrier::arrived(std::uint32_t piece) {
  const std::uint32_t index = piece / kMostPieces;
  --live_;
  if (--flows_[index].pieces > 0) return;
  --flowing_;
  const FlowTag tag = flows_[index].tag;
  free_.push_back(index);
  loop_->arrived(tag, now());
  arm();
}

bool SimGridCarrier::passes(const Flow& flow, CapacityId capacity) const {
  const auto& path = graph_.demands()[flow.demand.index()].capacities;
  return std::ranges::find(path, capacity) != path.end();
}

void SimGridCarrier::apply(const Change& change) {
  rate_[change.capacity.index()] = change.rate;
  if (change.rate > 0) network_.set_rate(change.capacity.index(), change.rate * layout_.scale_);
  // A SimGrid flow never gets more than the least rate that its links had when it began, and none
  // flows at rate zero. So the flows through this link begin anew with their remaining work.
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    Flow& flow = flows_[index];
    if (!passes(flow, change.capacity)) continue;
    if (flow.parked > 0) {
      launch(index, flow.parked);
      continue;
    }
    // Pieces begin together and get equal rates. So each has the same work left, and if some have
    // arrived, the others arrive at this instant.
    if (flow.pieces < pieces_of(flow.demand)) continue;
    double left = 0;
    for (std::uint32_t i = 0; i < flow.pieces; ++i)
      left = network_.take_away(index * kMostPieces + i);
    live_ -= std::exchange(flow.pieces, 0);
    launch(index, left);
  }
}

void SimGridCarrier::woken() {
  armed_.reset();
  const Picoseconds at = now();
  while (!changes_.empty() && changes_.back().at <= at) {
    apply(changes_.back());
    changes_.pop_back();
  }
  loop_->run_until(at);
  arm();
}

void SimGridCarrier::arm() {
  std::optional<Picoseconds> next = loop_->next();
  if (flowing_ > 0 && !changes_.empty() && (!next || changes_.back().at < *next))
    next = changes_.back().at;
  if (!next || next == armed_) return;
  armed_ = next;
  network_.wake_at(next->seconds().s());
}

void SimGridCarrier::run(Driven& loop) {
  loop_ = &loop;
  woken();
  network_.run(*this);
}

std::optional<CapacityId> SimGridCarrier::stalled() const {
  for (const Flow& flow : flows_)
    if (flow.parked > 0)
      for (const CapacityId c : graph_.demands()[flow.demand.index()].capacities)
        if (rate_[c.index()] <= 0) return c;
  return std::nullopt;
}

}  // namespace rehearse::engine::simgrid_back_end
