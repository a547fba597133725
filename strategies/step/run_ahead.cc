#include "strategies/step/run_ahead.h"

#include "models/compute/device_facts.h"
#include "models/host/host.h"
#include "strategies/step/regimes.h"

namespace rehearse::step {
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

}  // namespace

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
