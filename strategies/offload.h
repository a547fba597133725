// Offload: state in the memory of the host or on its NVMe drives (Rajbhandari et al.,
// ZeRO-Infinity, SC21).
#pragma once

#include "strategies/layout_transform.h"

namespace rehearse::strategies {

/// Moves state to its tier (StateTiers). Of the optimizer: summed gradients are copied to the host,
/// which updates (Op::host) and returns weights (Ren et al., ZeRO-Offload, ATC 2021). Of gradients:
/// those too are on the host, which adds up those of each microbatch as backward makes them. Of
/// weights: they are copied for every pass of a layer, while the previous layer runs. Of
/// activations: copied to the host after forward and back before backward, or before its
/// recomputation. State on NVMe moves between the drives and the host at the same time (Op::nvme).
///
/// What has moved is no longer part of the device's states or saved activations, but of
/// Stage::on_host and Stage::on_nvme; Stage::gathered holds the two largest layers that are present
/// at once, or their gradients.
Result<workload::Layout> offload(workload::Layout layout, const JobSetting& setting);

/// Bytes that a rank copies between device and host, and those of them that the drives move too.
struct Moved {
  double bytes = 0, nvme = 0;
  void add(double more, Tier tier) {
    bytes += more;
    if (tier == Tier::kNvme) nvme += more;
  }
};

/// What a rank copies for a layer.
struct HostCopies {
  /// For each microbatch: in forward, before backward (or its recomputation), and after backward.
  Moved forward, again, backward;
  Moved gradients, weights;  ///< in a step: before and after the update
  double updated = 0;        ///< the share of the parameters that the host updates
  double update_nvme = 0;    ///< bytes that the drives move for the update
  double present = 0;        ///< the part that is on the device at a time
};
/// `saved`: the activations that one microbatch saves.
HostCopies host_copies(const Training& training, const Plan& plan, const Parameters& parameters,
                       double saved, const workload::Degrees& degrees, std::uint32_t microbatches);

}  // namespace rehearse::strategies
