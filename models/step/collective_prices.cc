#include "models/step/collective_prices.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/job/interval.h"
#include "strategies/boundaries.h"

namespace rehearse::step {

using job::GroupSchedule;
using workload::Op;
using workload::Stage;

Status CollectivePrices::has_devices(const Stage& stage) const {
  const std::size_t needed = stage.rank(stage.degrees.ranks() - 1) + std::size_t{1};
  if (needed > cluster_.devices().size())
    return fail(
        fmt::format("{} ranks on a cluster of {} devices", needed, cluster_.devices().size()),
        "a device for each rank");
  return {};
}

Result<Estimate<Seconds>> CollectivePrices::of(const Op& op, const Stage& stage) {
  if (workload::group_size(op, stage.degrees) < 2)
    return Estimate<Seconds>{Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kRecorded};
  const Result<std::uint32_t> which = likeness(op, stage);
  if (!which) return forward(which);
  Distinct& distinct = distinct_[*which];
  auto price = distinct.prices.find(op.bytes.b());
  if (price == distinct.prices.end())
    price = distinct.prices.emplace(op.bytes.b(), distinct.schedule.price(op.bytes)).first;
  return price->second;
}

Result<std::uint32_t> CollectivePrices::likeness(const Op& op, const Stage& stage) {
  const workload::Degrees& d = stage.degrees;
  const strategies::GroupKind kind = strategies::group_kind(op);
  const Key key{{static_cast<std::uint32_t>(op.collective) * 8 + static_cast<std::uint32_t>(kind),
                 stage.first_rank, d.tensor, d.context, d.data, d.expert, d.whole_experts,
                 stage.together}};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (Status ok = has_devices(stage); !ok) return forward(ok);
  std::vector<DeviceId> devices;
  for (const RankId rank : strategies::group_from(stage, kind, 0))
    devices.push_back(DeviceId(rank.index()));
  Result<GroupSchedule> schedule = schedules_.of(op.collective, devices);
  if (!schedule) return forward(schedule);
  job::Pricing pricing{op.collective, schedule->lanes->members(), schedule->calibrated != nullptr,
                       schedule->calibrated ? schedule->calibrated->source : schedule->why_not};
  if (std::find(pricings_.begin(), pricings_.end(), pricing) == pricings_.end())
    pricings_.push_back(std::move(pricing));
  const auto like = std::find_if(distinct_.begin(), distinct_.end(), [&](const Distinct& other) {
    return other.kind == op.collective && other.schedule.costs_as(*schedule);
  });
  const auto which = static_cast<std::uint32_t>(like - distinct_.begin());
  if (like == distinct_.end()) distinct_.push_back({op.collective, std::move(*schedule), {}});
  known_.emplace(key, which);
  return which;
}

Result<Estimate<Seconds>> CollectivePrices::message(const Stage& from, const Stage& to,
                                                    Bytes bytes) {
  const std::uint32_t there = to.rank(strategies::partners(from.degrees, 0, to.degrees).front());
  const auto key = std::pair(from.first_rank, there);
  auto known = paths_.find(key);
  if (known == paths_.end()) {
    for (const Stage* stage : {&from, &to})
      if (Status ok = has_devices(*stage); !ok) return forward(ok);
    known =
        paths_.emplace(key, cluster_.route(DeviceId(from.first_rank), DeviceId(there)).path).first;
  }
  const cluster::PointToPoint& path = known->second;
  return job::on_datasheet_links(path.latency + rules_.message_overhead + bytes / path.rate);
}

}  // namespace rehearse::step
