// Offload: state in the memory of the host (Rajbhandari et al., ZeRO-Infinity, SC21).
#pragma once

#include "strategies/layout_transform.h"

namespace rehearse::strategies {

/// Optimizer: summed gradients are copied to the host, which updates (Op::host) and returns weights
/// (Ren et al., ZeRO-Offload, ATC 2021). Gradients: those too are on the host, which adds up those
/// of each microbatch as backward makes them. Weights: likewise, but weights stay on the host and are
/// copied for every pass of a layer, while the previous layer runs. Activations: copied to the host
/// after forward and back before backward, or before its recomputation.
///
/// Offloaded data is no longer part of the device's states or saved activations; Stage::gathered
/// holds the two largest layers that are present at once, or their gradients.
Result<workload::Layout> offload(workload::Layout layout, const JobSetting& setting);

/// The bytes that a rank copies between device and host for a layer.
struct HostCopies {
  /// For each microbatch: in forward, before backward (or its recomputation), and after backward.
  double forward = 0, again = 0, backward = 0;
  double gradients = 0, weights = 0;  ///< in a step: before and after the update
  double present = 0;                 ///< the part that is on the device at a time
};
/// `saved`: the activations that one microbatch saves.
HostCopies host_copies(const Training& training, const Plan& plan, const Parameters& parameters,
                       double saved, const workload::Degrees& degrees, std::uint32_t microbatches);

}  // namespace rehearse::strategies
