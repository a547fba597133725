// What machines draw: their devices between idle and the power limit, their hosts, their ports of
// the network. What was measured of a recorded job is profiler/replay/energy.h; this is for jobs
// that have not run.
//
// Devices: idle + busy × (limit − idle), linear in the share of time in which they compute, which
// is how the Cloud Carbon Footprint coefficients are meant to be used (methodology, 2024).
// Hosts: processors at half load (the default there), from those of the provider whose figures are
// known, as a mean; memory by its size. Network: adapter and switch port by the rate of the
// instance's NICs, always on. Fans and losses of power supplies are outside; cooling is the PUE's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cost/catalog.h"
#include "sim/base/estimate.h"

namespace rehearse::cost {

/// Of one device that computes in the share `busy` of the time. The low end takes busy ones at
/// three quarters of the limit, the high end at the limit all the time. Nothing where the catalog
/// has no power limit. REQUIRES: busy from 0 to 1.
std::optional<Estimate<Watts>> device_power(const cluster::Gpu& gpu, double busy);

/// Of one instance, without its devices. Nothing where the catalog has neither its processors nor
/// its memory. The span of the processors is over their makes, idle to full load: which of them an
/// instance has is not in the catalog.
std::optional<Estimate<Watts>> host_power(const cluster::Instance& instance);

/// Of one instance's share of the network; nothing where the catalog has no rate of it.
std::optional<Estimate<Watts>> network_power(const cluster::Instance& instance);

/// Energy of what leaves the region, per byte (0.001 kWh/GB: CCF). Not of traffic within a data
/// centre, which is network_power's.
Joules transfer_energy(Bytes bytes);

/// Of the region, else the provider's own; nothing where it is not known.
std::optional<double> pue_of(std::string_view provider, std::string_view region);

}  // namespace rehearse::cost
