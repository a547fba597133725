#include "cli/report/roofline.h"

#include <algorithm>
#include <map>

#include "strategies/step/devices.h"

namespace rehearse::cli {
namespace {

using workload::Layer;
using workload::Op;

/// Ops of one name, kind and phase, of all ranks on a kind of device.
struct Sum {
  double time = 0, flops = 0, bytes = 0, calls = 0;
  Provenance provenance = Provenance::kRecorded;
};
using Key = std::tuple<std::string_view, workload::OpKind, std::string_view>;  // name, kind, phase
using Sums = std::map<Key, Sum>;

void add_phase(Sums& sums, const std::vector<Op>& ops, std::string_view phase, double times,
               const step::OpPrice& price) {
  for (const Op& op : ops) {
    if (op.communicates() || op.host) continue;
    const Estimate<Seconds> time = price.estimate(op);
    Sum& sum = sums[{op.name, op.kind, phase}];
    sum.time += time.value.s() * times;
    // The device computes half of the operations that published utilisations count for causal
    // attention. With all of them, an op that runs at 0.55 of the peak would be above the roof.
    sum.flops += flops_of(op).flop() * (op.causal ? 0.5 : 1) * times;
    sum.bytes += bytes_of(op).b() * times;
    sum.calls += times;
    sum.provenance = std::max(sum.provenance, time.provenance);
  }
}

void add_stage(Sums& sums, const workload::Stage& stage, double ranks, const step::OpPrice& price) {
  std::vector<double> passes(stage.chunks.size(), 0);
  for (const workload::Slot& slot : stage.order)
    if (slot.pass == workload::Pass::kForward) passes[slot.chunk] += 1;
  for (std::size_t c = 0; c < stage.chunks.size(); ++c)
    for (const Layer& layer : stage.chunks[c].layers) {
      const double times = layer.count * ranks;
      add_phase(sums, layer.forward, "forward", passes[c] * times, price);
      add_phase(sums, layer.backward, "backward", passes[c] * times, price);
      add_phase(sums, layer.recompute, "recompute", passes[c] * times, price);
      add_phase(sums, layer.step, "optimizer", times, price);
    }
}

Json ops_json(const Sums& sums, double ranks) {
  std::vector<Sums::const_iterator> order;
  for (auto sum = sums.begin(); sum != sums.end(); ++sum) order.push_back(sum);
  std::stable_sort(order.begin(), order.end(),
                   [](auto a, auto b) { return a->second.time > b->second.time; });
  Json ops = Json::array();
  for (const auto& entry : order) {
    const auto& [name, kind, phase] = entry->first;
    const Sum& sum = entry->second;
    ops.push_back({{"name", name},
                   {"kind", to_string(kind)},
                   {"phase", phase},
                   {"time_s", sum.time / ranks},
                   {"flops", sum.flops / ranks},
                   {"bytes", sum.bytes / ranks},
                   {"calls", sum.calls / ranks},
                   {"provenance", to_string(sum.provenance)}});
  }
  return ops;
}

}  // namespace

Json roofline_of(const step::Spec& spec, const cluster::Cluster& cluster, const step::Step& step) {
  const Result<step::Devices> devices = step::Devices::of(step.layout, cluster, spec);
  if (!devices) return {};
  Json list = Json::array();
  for (std::uint32_t k = 0; k < devices->kinds().size(); ++k) {
    const step::DeviceKind& kind = devices->kinds()[k];
    if (kind.gpu == nullptr) continue;
    Sums sums;
    for (const workload::Stage& stage : step.layout.stages)
      for (const step::Devices::Share& share : devices->under(stage))
        if (share.kind == k) add_stage(sums, stage, share.ranks, kind.price);
    const compute::DeviceFacts facts = compute::facts_of(*kind.gpu);
    const compute::Arithmetic arithmetic = compute::arithmetic_of(facts, spec.training.dtype);
    list.push_back({{"name", kind.name},
                    {"ranks", kind.ranks},
                    {"arithmetic", to_string(arithmetic)},
                    {"peak", facts.peak(arithmetic).flop_per_s()},
                    {"memory_rate", facts.memory_rate.bytes_per_s()},
                    {"ops", ops_json(sums, kind.ranks)}});
  }
  return {{"devices", std::move(list)}};
}

}  // namespace rehearse::cli
