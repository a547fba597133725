// Power of machines: devices between idle and the power limit, hosts, and network ports.
// profiler/replay/energy.h has the measured energy of recorded jobs; this is for jobs
// that have not run.
//
// Devices: idle + busy × (limit − idle), linear in the share of time in which they compute, the
// intended use of the Cloud Carbon Footprint coefficients (methodology, 2024).
// Hosts: processors at half load (the default there), as a mean over those of the provider with
// known values; memory by its size. Network: adapter and switch port by the rate of the
// instance's NICs, always on. Fans and power supply losses are excluded; cooling is in the PUE.
#pragma once

#include <optional>
#include <string_view>

#include "cost/catalog.h"
#include "sim/base/estimate.h"

namespace rehearse::cost {

/// The power of one device that computes for the share `busy` of the time. The low end assumes
/// three quarters of the limit while busy, the high end the limit all the time. Nothing if the
/// catalog has no power limit. REQUIRES: busy from 0 to 1.
std::optional<Estimate<Watts>> device_power(const cluster::Gpu& gpu, double busy);

/// The power of one instance without its devices. Nothing if the catalog has neither its processors
/// nor its memory. The interval covers all processor models from idle to full load, because the
/// catalog does not state the model of an instance.
std::optional<Estimate<Watts>> host_power(const cluster::Instance& instance);

/// The power of one instance's share of the network; nothing if the catalog has no network rate for
/// it.
std::optional<Estimate<Watts>> network_power(const cluster::Instance& instance);

/// Energy of data that leaves the region, per byte (0.001 kWh/GB: CCF). Not for traffic within a
/// data centre, which is in network_power.
Joules transfer_energy(Bytes bytes);

/// The PUE of the region, else of the provider; nothing if it is unknown.
std::optional<double> pue_of(std::string_view provider, std::string_view region);

}  // namespace rehearse::cost
