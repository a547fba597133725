#include "strategies/step/work.h"

#include <algorithm>

namespace rehearse::step {
namespace {

using workload::Layer;
using workload::Op;

/// Sums over the ops of a phase.
struct Phase {
  Seconds time = Seconds::s(0), low = Seconds::s(0), high = Seconds::s(0);
  Seconds idle = Seconds::s(0);
  Seconds device = Seconds::s(0);  ///< kernel part of `time`
  double kernels = 0;
  Flops flops = Flops::flop(0);
  std::array<Seconds, 4> by_provenance = {Seconds::s(0), Seconds::s(0), Seconds::s(0),
                                          Seconds::s(0)};
};

Phase phase_of(const std::vector<Op>& ops, const OpPrice& price) {
  Phase phase;
  for (const Op& op : ops) {
    if (op.communicates()) continue;
    const Estimate<Seconds> time = price.estimate(op);
    phase.time += time.value;
    phase.low += time.low;
    phase.high += time.high;
    phase.idle += price.idle(op);
    if (!op.host) {
      phase.device += time.value;
      phase.kernels += op.kernels;
    }
    phase.flops += flops_of(op);
    phase.by_provenance[static_cast<std::size_t>(time.provenance)] += time.value;
  }
  return phase;
}

}  // namespace

Work work_of(const workload::Layout& layout, const Devices& devices,
             const strategies::JobOptions& options) {
  Work work;
  work.busy.assign(devices.kinds().size(), Seconds::s(0));
  Seconds total = Seconds::s(0), low = Seconds::s(0), high = Seconds::s(0);
  std::array<Seconds, 4> by_provenance = {Seconds::s(0), Seconds::s(0), Seconds::s(0),
                                          Seconds::s(0)};
  const double ranks = layout.ranks();
  double workers = 0;
  for (const workload::Stage& stage : layout.stages) workers += stage.degrees.ranks();
  double blocks = 0;  // microbatches through a block
  for (const workload::Stage& stage : layout.stages) {
    std::vector<double> passes(stage.chunks.size(), 0);
    for (const workload::Slot& slot : stage.order)
      if (slot.pass == workload::Pass::kForward) passes[slot.chunk] += 1;
    const strategies::HostTimes host_times =
        strategies::host_times(options, stage.degrees, layout.stages.size());
    work.fixed += strategies::fixed_of(options, stage) * (stage.degrees.ranks() / workers);
    for (const Devices::Share& on : devices.under(stage)) {
      const DeviceKind& kind = devices.kinds()[on.kind];
      const double share = on.ranks / ranks;
      for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
        for (const Layer& layer : stage.chunks[c].layers) {
          // Returns the time on the device, including the waits for launches of single kernels.
          const auto add = [&](const std::vector<Op>& ops, double times, Seconds& part,
                               Flops& flops) {
            const Phase phase = phase_of(ops, kind.price);
            times *= layer.count * share;
            part += phase.time * times;
            flops += phase.flops * times;
            total += phase.time * times;
            low += phase.low * times;
            high += phase.high * times;
            work.busy[on.kind] += phase.time * (times * ranks);
            for (std::size_t p = 0; p < by_provenance.size(); ++p)
              by_provenance[p] += phase.by_provenance[p] * times;
            const Seconds host = kind.conditions.host_per_kernel * phase.kernels;
            const Seconds gaps = std::max(phase.idle, host - phase.device);
            work.launch += gaps * times;
            return phase.time + gaps;
          };
          Flops none = Flops::flop(0);
          const Seconds forward = add(layer.forward, passes[c], work.compute, work.model);
          const Seconds backward = add(layer.backward, passes[c], work.compute, work.model) +
                                   add(layer.recompute, passes[c], work.recompute, work.recomputed);
          add(layer.step, 1, work.optimizer, none);
          if (layer.host_work == 0) continue;
          const strategies::LaunchTimes host = strategies::launch_times(layer, host_times.block);
          const Seconds again = host.backward + host.recompute;
          const double times = passes[c] * layer.count * share;
          work.launch += host_times.blocking ? (host.forward + again) * times
                                             : (std::max(Seconds::s(0), host.forward - forward) +
                                                std::max(Seconds::s(0), again - backward)) *
                                                   times;
          work.block.launches += (host.forward + again) * times;
          work.block.kernels += (forward + backward) * times;
          blocks += times;
        }
      }
    }
  }
  if (blocks > 0) work.block = {work.block.launches / blocks, work.block.kernels / blocks};
  if (total > Seconds::s(0)) {
    work.fastest = low / total;
    work.slowest = high / total;
    for (std::size_t p = 0; p < by_provenance.size(); ++p) {
      work.share_by_provenance[p] = by_provenance[p] / total;
      // The provenance of 1 % of the time does not determine that of the whole.
      if (work.share_by_provenance[p] > 0.01) work.provenance = static_cast<Provenance>(p);
    }
  }
  return work;
}

}  // namespace rehearse::step
