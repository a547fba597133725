// Offload: what is kept in the memory of the host (Rajbhandari et al., ZeRO-Infinity, SC21).
#pragma once

#include "strategies/layout_transform.h"

namespace rehearse::strategies {

/// Optimizer: summed gradients go to the host, which updates (Op::host) and sends weights back
/// (Ren et al., ZeRO-Offload, ATC 2021). Weights: so too, but weights stay there and are fetched
/// for every pass of a layer, while the layer before runs. Activations: go there behind forward and
/// come back before backward, or before what backward recomputes.
///
/// What has left the device is no longer among its states or kept activations; Stage::gathered
/// holds the two largest layers of it that are there at once.
Result<workload::Layout> offload(workload::Layout layout, const JobSetting& setting);

}  // namespace rehearse::strategies
