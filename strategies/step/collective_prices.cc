#include "strategies/step/collective_prices.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "models/job/roofline.h"
#include "strategies/boundaries.h"

namespace rehearse::step {

using job::GroupSchedule;
using workload::Op;
using workload::Stage;

namespace {

/// The number of devices of each node, if all nodes can be exchanged and are numbered in turn; else
/// 0.
std::uint32_t devices_of_any_node(const cluster::Cluster& cluster) {
  const std::span<const std::uint32_t> kinds = cluster.node_kinds();
  if (kinds.empty()) return 0;
  const auto devices = static_cast<std::uint32_t>(cluster.nodes().front().devices.size());
  for (std::size_t n = 0; n < kinds.size(); ++n) {
    const std::vector<DeviceId>& own = cluster.nodes()[n].devices;
    if (kinds[n] != kinds.front() || own.size() != devices) return 0;
    for (std::size_t d = 0; d < own.size(); ++d)
      if (own[d].index() != n * devices + d) return 0;
  }
  return devices;
}

}  // namespace

CollectivePrices::CollectivePrices(const cluster::Cluster& cluster, const job::Rules& rules)
    : cluster_(cluster),
      rules_(rules),
      exchanged_(devices_of_any_node(cluster)),
      schedules_(cluster, rules),
      paths_(std::in_place, cluster, rules.message_overhead) {}

Status CollectivePrices::has_devices(std::size_t ranks) const {
  if (ranks > cluster_.devices().size())
    return fail(
        fmt::format("{} ranks on a cluster of {} devices", ranks, cluster_.devices().size()),
        "at least one device per rank");
  return {};
}

Result<Estimate<Seconds>> CollectivePrices::of(const Op& op, const Stage& stage) {
  if (workload::group_size(op, stage.degrees) < 2)
    return Estimate<Seconds>{Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kRecorded};
  const std::uint32_t which = TRY(likeness(op, stage));
  Distinct& distinct = distinct_[which];
  auto price = distinct.prices.find(op.bytes.b());
  if (price == distinct.prices.end())
    price = distinct.prices.emplace(op.bytes.b(), distinct.schedule.price(op.bytes)).first;
  return price->second;
}

CollectivePrices::Key CollectivePrices::key_of(const Op& op, const Stage& stage,
                                               std::uint32_t place) {
  const workload::Degrees& d = stage.degrees;
  const auto kind = static_cast<std::uint32_t>(strategies::group_kind(op));
  return {static_cast<std::uint32_t>(op.collective) * 8 + kind,
          place,
          d.tensor,
          d.context,
          d.data,
          d.expert,
          d.whole_experts,
          stage.together,
          0};
}

Result<std::uint32_t> CollectivePrices::likeness(const Op& op, const Stage& stage) {
  const strategies::GroupKind kind = strategies::group_kind(op);
  TRY(has_devices(stage));
  const Key key = key_of(op, stage, place_of(stage.first_rank));
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  std::vector<DeviceId> devices;
  for (const RankId rank : strategies::group_from(stage, kind, 0))
    devices.push_back(DeviceId(rank.index()));
  GroupSchedule schedule = TRY(schedules_.of(op.collective, devices));
  if (schedule.shares_links()) {
    const auto all = TRY(concurrent_set(op.collective, kind, stage, Bytes::b(1)));
    schedule.bottleneck_link = paths_->bottleneck(all);
  }
  job::Pricing pricing{op.collective, schedule.flows->members(), schedule.calibrated != nullptr,
                       schedule.calibrated ? schedule.calibrated->source : schedule.why_not};
  if (std::find(pricings_.begin(), pricings_.end(), pricing) == pricings_.end())
    pricings_.push_back(std::move(pricing));
  const auto like = std::find_if(distinct_.begin(), distinct_.end(), [&](const Distinct& other) {
    return other.kind == op.collective && other.schedule.costs_as(schedule);
  });
  const auto which = static_cast<std::uint32_t>(like - distinct_.begin());
  if (like == distinct_.end()) distinct_.push_back({op.collective, std::move(schedule), {}});
  known_.emplace(key, which);
  return which;
}

Result<std::vector<job::ConcurrentGroup>> CollectivePrices::concurrent_set(
    CollectiveKind collective, strategies::GroupKind kind, const Stage& stage, Bytes bytes) {
  std::vector<job::ConcurrentGroup> set;
  for (std::uint32_t first = 0; first < stage.degrees.ranks(); ++first) {
    std::vector<DeviceId> devices;
    for (const RankId rank : strategies::group_from(stage, kind, first))
      devices.push_back(DeviceId(rank.index()));
    if (devices.size() < 2) continue;
    comm::Messages messages = TRY(schedules_.messages(collective, devices, bytes));
    routes_ += messages.flows->flows().size();
    set.push_back({std::move(messages), std::move(devices), Bytes::b(1)});
  }
  return set;
}

Result<std::uint32_t> CollectivePrices::load(const Op& op, const Stage& stage) {
  const std::uint32_t which = TRY(likeness(op, stage));
  const GroupSchedule& schedule = distinct_[which].schedule;
  Key key = key_of(op, stage, stage.first_rank);
  if (schedule.calibrated)  // which chooses by size
    key.back() = 1 + static_cast<std::uint32_t>(schedule.links_for(op.bytes).algorithm);
  const auto known = load_of_.find(key);
  if (known != load_of_.end()) return known->second;
  const auto all = TRY(concurrent_set(op.collective, strategies::group_kind(op), stage, op.bytes));
  loads_.push_back(paths_->shares(all));
  routes_ += loads_.back().size();
  return load_of_.emplace(key, static_cast<std::uint32_t>(loads_.size() - 1)).first->second;
}

Result<const job::SharedLinks::Shared*> CollectivePrices::shared_links(
    std::span<const StageCollective> collectives) {
  std::vector<std::uint32_t> loads;
  for (const StageCollective& c : collectives) loads.push_back(TRY(load(*c.op, *c.stage)));
  auto known = shared_.find(loads);
  if (known == shared_.end()) {
    job::SharedLinks links;
    for (std::size_t c = 0; c < collectives.size(); ++c)
      links.add(loads_[loads[c]], collectives[c].stage->first_rank, comm::kUnlimited);
    known = shared_.emplace(std::move(loads), links.shared()).first;
  }
  return &known->second;
}

Result<Estimate<Seconds>> CollectivePrices::message(const Stage& from, const Stage& to,
                                                    Bytes bytes) {
  const workload::Degrees &a = from.degrees, &b = to.degrees;
  for (const Stage* stage : {&from, &to}) TRY(has_devices(*stage));
  // Both as many nodes earlier.
  const std::uint32_t first = std::min(from.first_rank, to.first_rank),
                      earlier = first - place_of(first);
  const std::array<std::uint32_t, 10> key = {
      from.first_rank - earlier, a.data, a.tensor, a.context, from.together,
      to.first_rank - earlier,   b.data, b.tensor, b.context, to.together};
  auto known = between_.find(key);
  if (known == between_.end()) {
    std::vector<job::ConcurrentGroup> concurrent_set;
    for (std::uint32_t rank = 0; rank < a.ranks(); ++rank)
      for (const std::uint32_t there : strategies::partners(a, rank, b))
        concurrent_set.push_back({{job::one_message()},
                                  {DeviceId(from.rank(rank)), DeviceId(to.rank(there))},
                                  Bytes::b(1)});
    const std::vector<DeviceId>& ends = concurrent_set.front().devices;
    const Seconds latency = paths_->path(ends[0], ends[1]).latency.seconds();
    routes_ += concurrent_set.size();
    known = between_.emplace(key, Between{latency, paths_->bottleneck(concurrent_set)}).first;
  }
  return job::on_datasheet_links(known->second.latency + known->second.bottleneck_link.of(bytes));
}

Result<Estimate<Seconds>> CollectivePrices::to_servers(const Stage& from,
                                                       const workload::Servers& servers,
                                                       Bytes bytes) {
  const workload::Degrees& d = from.degrees;
  const std::array<std::uint32_t, 7> key = {from.first_rank, d.data,        d.tensor,
                                            d.context,       from.together, servers.first_rank,
                                            servers.count};
  auto known = to_servers_.find(key);
  if (known == to_servers_.end()) {
    TRY(has_devices(from));
    TRY(has_devices(servers.first_rank + std::size_t{servers.count}));
    std::vector<job::ConcurrentGroup> concurrent_set;
    Picoseconds latency(0);
    for (std::uint32_t rank = 0; rank < d.ranks(); ++rank)
      for (std::uint32_t server = 0; server < servers.count; ++server) {
        const DeviceId worker(from.rank(rank)), there(servers.first_rank + server);
        latency = std::max(latency, paths_->path(worker, there).latency);
        concurrent_set.push_back(
            {{job::one_message()}, {worker, there}, Bytes::b(1) / servers.count});
      }
    known = to_servers_.emplace(key, Between{latency.seconds(), paths_->bottleneck(concurrent_set)})
                .first;
  }
  return job::on_datasheet_links(known->second.latency + known->second.bottleneck_link.of(bytes));
}

void CollectivePrices::forget_many() {
  constexpr std::size_t kMany = 1'000'000;  // some 100 bytes each
  if (routes_ < kMany) return;
  routes_ = 0;
  paths_.emplace(cluster_, rules_.message_overhead);
  load_of_.clear();
  loads_.clear();
  shared_.clear();
}

StepPrices CollectivePrices::step_prices(strategies::Prices ops) {
  const auto value = [](const Result<Estimate<Seconds>>& time) -> Result<Seconds> {
    if (!time) return forward(time);
    return time->value;
  };
  return {
      .op = std::move(ops),
      .collective = [this, value](const Op& op,
                                  const Stage& stage) { return value(of(op, stage)); },
      .message = [this, value](const Stage& from, const Stage& to,
                               Bytes bytes) { return value(message(from, to, bytes)); },
      .to_servers = [this, value](const Stage& from, const workload::Servers& servers,
                                  Bytes bytes) { return value(to_servers(from, servers, bytes)); },
      .shared_links =
          [this](std::span<const StageCollective> collectives) {
            return shared_links(collectives);
          }};
}

}  // namespace rehearse::step
