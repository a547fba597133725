// What recorded collectives say of the links of a cluster.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/comm/slower_links.h"
#include "profiler/trace/trace.h"
#include "sim/base/collective.h"
#include "sim/base/units.h"

namespace rehearse::cli {

/// The collectives of one kind, size and group.
struct RecordedCollective {
  CollectiveKind kind;
  Bytes bytes;
  std::vector<std::uint32_t> ranks;  ///< of the job, ascending
  bool one_host;                     ///< as recorded
  Seconds time;  ///< median, each from the arrival of the last rank on its shortest rank
  std::size_t count;
};

/// Collectives whose ranks were all recorded. How long a rank of the others waits is unknown.
/// REQUIRES: trace::align was called on the trace.
std::vector<RecordedCollective> recorded_collectives(const trace::Trace& trace);

/// How many times as long collectives took as they are priced on the cluster, with rank r on device
/// r: their times together ÷ their prices together, within nodes and between them. One where none
/// was recorded on devices of this model and on as many nodes, and where the ratio is out of 0.1 to
/// 10. Adds a note for each.
comm::LinkScales scales_of(std::span<const RecordedCollective> collectives,
                           const std::string& device, const cluster::Cluster& cluster,
                           std::vector<std::string>& notes);

}  // namespace rehearse::cli
