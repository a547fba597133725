// Servers that share one device: a step of one is slowed while steps of others run.
//
// Together (MPS): if the kernels of all steps that are under way ask for more than the device, all
// steps run at the same fraction of their speed, 1 ÷ Σ use. In turns (time slices): one server has
// the device for a quantum; a switch takes time in which none has it. A server that has no step
// gives its turn away as soon as another has one. A server whose neighbours have no step is as fast
// as alone, to the picosecond. Both are the laws of models/sharing/tenants.h, with all kernels of a
// step taken as one.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/serving/run.h"

namespace rehearse::serving {

struct Turns {
  Seconds quantum = Seconds::ms(2), change = Seconds::us(100);  ///< above 0; from 0
};

/// A server with its load. REQUIRES: `pricer` and `requests` outlive the run.
struct Tenant {
  Rules rules;
  const StepPricer& pricer;
  std::span<const Request> requests;
  RunOptions options = {};
};

/// Runs the loads of all tenants, which begin together, to their ends. Without turns they run
/// together. Fails as run_replicas() does.
Result<std::vector<Run>> run_tenants(std::span<const Tenant> tenants,
                                     const std::optional<Turns>& turns);

}  // namespace rehearse::serving
