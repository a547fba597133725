// Recordings without a device: work of host threads as work of a device of one core per thread.
#pragma once

#include <optional>
#include <string_view>

#include "profiler/trace/trace.h"

namespace rehearse::workload {

/// The catalog's device for work of host threads.
inline constexpr std::string_view kCore = "cpu_core";

/// The recording with a device `kCore` for each timed rank that recorded neither device ops nor
/// calls to a device; nothing if there is no such rank. The rank's operators and collectives run on
/// that device, each as one op on a stream of its thread. An operator inside another one is part of
/// it, unless the outer one only wraps operators (a node of the backward pass, an operator of unknown
/// role). Where no operators were recorded, innermost ranges inside ranges "forward", "backward" and
/// "optimizer" count instead. Work of data loaders is left out. Collectives that state no ranks get the
/// given ranks that run them together.
std::optional<trace::Trace> with_host_work_on_cores(const trace::Trace& trace);

}  // namespace rehearse::workload
