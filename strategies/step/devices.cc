#include "strategies/step/devices.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/compute/device_facts.h"
#include "models/host/host.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "strategies/step/regimes.h"

namespace rehearse::step {

using workload::Op;

namespace {

/// The sustained share of the peak in a block of nanotron's sweep on one rank, eager: 8.9 ms for
/// 3.1 TFLOP on an H100.
constexpr double kSustained = 0.35;

/// The steps of whose host a pipeline over nodes was measured.
constexpr std::string_view kMeasuredHost = "nanotron";

host::Sends sends_of(const workload::Layout& layout, const Situation& situation) {
  if (layout.stages.size() == 1) return host::Sends::kNone;
  return situation.pipeline_over_nodes && situation.network == comm::NetworkKind::kEfa
             ? host::Sends::kEfa
             : host::Sends::kLinks;
}

/// The rate of pinned copies between device and host: 0.8 of the lanes' rate, as in links.csv for
/// PCIe.
std::optional<ByteRate> host_rate_of(const cluster::Gpu* gpu) {
  if (gpu == nullptr || !gpu->pcie) return std::nullopt;
  constexpr double kLaneGbPerS = 0.985;  // of generation 3; each next one doubles it
  return ByteRate::gb_per_s(0.8 * kLaneGbPerS *
                            std::exp2(static_cast<double>(gpu->pcie->generation) - 3) *
                            gpu->pcie->lanes);
}

Status has_devices(const cluster::Cluster& cluster, std::uint32_t ranks) {
  if (ranks <= cluster.devices().size()) return {};
  return fail(fmt::format("the plan needs {} ranks, but the cluster has {} devices", ranks,
                          cluster.devices().size()),
              "data × tensor × pipeline × context of at most the devices");
}

bool has_measured_op(const workload::Layout& layout) {
  return any_op(layout, [](const workload::Op& op, const workload::Stage&) {
    return op.measured.has_value();
  });
}

Status has_drives(const workload::Layout& layout, std::span<const DeviceKind> kinds) {
  const bool known = std::all_of(kinds.begin(), kinds.end(), [](const DeviceKind& kind) {
    return kind.gpu == nullptr || kind.nvme_rate;
  });
  const auto moves = [](const workload::Op& op, const workload::Stage&) {
    return op.nvme > Bytes::b(0);
  };
  if (known || !any_op(layout, moves)) return {};
  return fail("the plan keeps state on NVMe drives, whose rate is not known",
              "cluster: {host: {nvme_rate: 25 GB/s}}, that of all drives of a node");
}

tl::unexpected<Error> on_a_host(const workload::Stage& stage) {
  return fail(fmt::format("{} is on a '{}'", stage.name, cluster::kCpu),
              "a GPU; only parameter servers may run on hosts");
}

/// The least share that a device has in the drives of its node.
std::optional<ByteRate> nvme_rate_of(const cluster::Cluster& cluster, const std::string& model) {
  std::optional<ByteRate> least;
  for (const cluster::Node& node : cluster.nodes()) {
    if (node.devices.empty() || cluster.devices()[node.devices.front().index()].model != model)
      continue;
    if (!node.store.nvme_rate) return std::nullopt;
    const ByteRate share = *node.store.nvme_rate / static_cast<double>(node.devices.size());
    least = least ? std::min(*least, share) : share;
  }
  return least;
}

Result<DeviceKind> kind_named(const std::string& name, const cluster::Cluster& cluster,
                              const Spec& spec,
                              std::span<const compute::Calibration> calibrations) {
  const auto own = spec.conditions_on.find(name);
  Conditions conditions = own == spec.conditions_on.end() ? spec.conditions : own->second;
  conditions.host_per_kernel = spec.conditions.host_per_kernel;
  if (name == cluster::kCpu)
    return DeviceKind{
        name, nullptr, conditions, OpPrice(std::nullopt, conditions, {}, {}, spec.op_factors), {}};
  compute::OpCost cost = TRY(compute::OpCost::on(name, conditions.sustained, calibrations));
  if (const auto alone = spec.measured_ops.find(name); alone != spec.measured_ops.end())
    cost = cost.with(alone->second);
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(name));
  std::optional<CarriedOver> measured;
  if (!spec.measured_on.empty() && spec.measured_on != name) {
    compute::OpCost from = TRY(compute::OpCost::on(spec.measured_on, {}, calibrations)),
                    to = TRY(compute::OpCost::on(name, {}, calibrations));
    measured = CarriedOver{std::move(from), std::move(to)};
  }
  const std::optional<ByteRate> nvme = nvme_rate_of(cluster, name);
  return DeviceKind{
      name, &gpu, conditions,
      OpPrice(std::move(cost), conditions, std::move(measured), nvme, spec.op_factors), nvme};
}

}  // namespace

Estimate<Seconds> OpPrice::estimate(const Op& op) const {
  double factor = 1;
  for (const OpFactor& each : factors_)
    if (matches_wildcard(each.pattern, op.name)) factor *= each.factor;
  return unchanged(op) * factor;
}

Estimate<Seconds> OpPrice::unchanged(const Op& op) const {
  if (op.host && op.measured) return *op.measured;
  if (op.host || !cost_) {
    // The memory rate of updates on the host. Hosts differ by a factor of two in both directions.
    constexpr ByteRate kHostMemory = ByteRate::gb_per_s(50);
    const Seconds time = bytes_of(op) / kHostMemory;
    Estimate<Seconds> update = {time, time * 0.5, time * 2, Provenance::kDatasheet};
    // The drives read what comes next, and write what is done, while the host updates.
    if (nvme_rate_)
      update = mapped(update, [&](Seconds s) { return std::max(s, op.nvme / *nvme_rate_); });
    return update;
  }
  // Training in FP8 pays for scaling and casting, and keeps attention in half precision: a share of
  // the half-precision time, not the time of the bare product.
  const bool fp8 = op.dtype == workload::Dtype::kFp8;
  double scale = conditions_.scale;
  Estimate<Seconds> time{Seconds::s(0), Seconds::s(0), Seconds::s(0), Provenance::kRecorded};
  if (fp8 && !op.measured) {
    Op half = op;
    half.dtype = workload::Dtype::kBf16;
    time = cost_->time(half);
    if (op.kind == workload::OpKind::kGemm) scale *= conditions_.fp8;
  } else {
    // A measurement on this device is better than a recording on another.
    const std::optional<Estimate<Seconds>> alone =
        op.measured && measured_ ? cost_->measured(op) : std::nullopt;
    time = alone ? *alone
           : op.measured && measured_
               ? measured_->to.carried(measured_->from.time(op), op, measured_->from)
               : cost_->time(op);
  }
  time = time * scale;
  if (op.measured)
    return {time.value, time.low * conditions_.recorded.low, time.high * conditions_.recorded.high,
            time.provenance};
  Estimate<Seconds> job = {time.value, time.value * conditions_.fastest,
                           time.value * conditions_.slowest, time.provenance};
  // Conditions are fitted to matrix products; the laws are less certain about convolutions.
  if (op.kind == workload::OpKind::kConvolution) {
    job.low = std::min(job.low, time.low);
    job.high = std::max(job.high, time.high);
  }
  return job;
}

Seconds OpPrice::idle(const Op& op) const {
  return op.host || !cost_ ? Seconds::s(0) : conditions_.idle_per_kernel * op.kernels;
}

Result<Devices> Devices::of(const workload::Layout& layout, const cluster::Cluster& cluster,
                            const Spec& spec, std::span<const compute::Calibration> calibrations) {
  const std::uint32_t ranks = layout.ranks();
  TRY(has_devices(cluster, ranks));
  Devices devices;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::string& name = cluster.devices()[rank].model;
    auto kind = std::find_if(devices.kinds_.begin(), devices.kinds_.end(),
                             [&](const DeviceKind& k) { return k.name == name; });
    if (kind == devices.kinds_.end()) {
      DeviceKind found = TRY(kind_named(name, cluster, spec, calibrations));
      kind = devices.kinds_.insert(kind, std::move(found));
    }
    ++kind->ranks;
    devices.kind_of_.push_back(static_cast<std::uint32_t>(kind - devices.kinds_.begin()));
  }
  TRY(has_drives(layout, devices.kinds_));
  const DeviceKind* first = nullptr;
  for (const workload::Stage& stage : layout.stages)
    for (const Share& share : devices.under(stage)) {
      const DeviceKind& kind = devices.kinds_[share.kind];
      if (kind.gpu == nullptr) return on_a_host(stage);
      if (first == nullptr) first = &kind;
      if (&kind != first && spec.measured_on.empty() && has_measured_op(layout))
        return fail(
            fmt::format("operations were measured on one device, but ranks are on {} and {}",
                        first->name, kind.name),
            "one kind of device, or a model whose operations have extents");
    }
  return devices;
}

std::vector<Devices::Share> Devices::under(const workload::Stage& stage) const {
  std::vector<Share> shares;
  for (std::uint32_t r = 0; r < stage.degrees.ranks(); ++r) {
    const std::uint32_t kind = kind_of_[stage.rank(r)];
    const auto known = std::find_if(shares.begin(), shares.end(),
                                    [&](const Share& share) { return share.kind == kind; });
    if (known == shares.end())
      shares.push_back({kind, 1});
    else
      ++known->ranks;
  }
  return shares;
}

strategies::Prices Devices::prices() const {
  std::vector<strategies::KindPrice> prices;
  for (const DeviceKind& kind : kinds_) {
    const strategies::Price price([&kind](const workload::Op& op) { return kind.price.timed(op); });
    prices.push_back({[known = std::make_shared<KnownPrices>(price)](const workload::Op& op) {
                        return (*known)(op);
                      },
                      host_rate_of(kind.gpu), kind.nvme_rate, kind.conditions.provenance});
  }
  return {std::move(prices), kind_of_};
}

Result<std::vector<memory::StageMemory>> memory_on(const workload::Layout& layout,
                                                   const cluster::Cluster& cluster) {
  TRY(has_devices(cluster, layout.ranks()));
  std::vector<memory::StageMemory> memory;
  for (const workload::Stage& stage : layout.stages) {
    std::vector<std::string_view> names;
    std::vector<memory::StageMemory> of_kind;
    for (std::uint32_t r = 0; r < stage.degrees.ranks(); ++r) {
      const std::string& name = cluster.devices()[stage.rank(r)].model;
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      names.push_back(name);
      if (name == cluster::kCpu) return on_a_host(stage);
      const cluster::Gpu& gpu = *TRY(cluster::find_gpu(name));
      memory::Assumptions assumptions;
      if (memory::may_hold(stage)) assumptions.ahead = run_ahead(layout, stage, cluster, gpu);
      of_kind.push_back(memory::memory_of(layout, stage, memory::device_of(gpu), assumptions));
    }
    memory.push_back(memory::fullest(of_kind));
  }
  return memory;
}

memory::RunAhead run_ahead(const workload::Layout& layout, const workload::Stage& stage,
                           const cluster::Cluster& cluster, const cluster::Gpu& gpu) {
  const double microbatch =
      layout.samples_per_step / layout.microbatches / layout.stages.front().degrees.data;
  const bool zero = stage.states.update.has_value() || stage.gathering.weights > 0;
  const Situation situation = situation_of(layout, cluster, microbatch, zero);
  if (regime_of(situation).mostly_stalls()) return memory::RunAhead::kNone;
  if (layout.stages.size() == 1) return memory::RunAhead::kAll;

  const host::BlockTimes block = host::block_times(
      host::implementation_named(kMeasuredHost), stage.degrees.tensor, sends_of(layout, situation));
  double launches = 0, flops = 0;
  for (const workload::Chunk& chunk : stage.chunks)
    for (const workload::Layer& layer : chunk.layers) {
      launches += layer.count * layer.host_work;
      for (const workload::Op& op : layer.forward)
        flops += layer.count * workload::flops_of(op).flop();
    }
  const compute::DeviceFacts facts = compute::facts_of(gpu);
  const FlopRate peak = peak_of(facts, workload::Dtype::kBf16);
  const Seconds kernels = Flops::flop(flops) / (peak * kSustained);
  return kernels > block.forward * launches ? memory::RunAhead::kAll : memory::RunAhead::kWarmUp;
}

}  // namespace rehearse::step
