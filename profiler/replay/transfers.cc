#include "profiler/replay/transfers.h"

namespace rehearse::replay {
namespace {

/// What the cost of a collective depends on: see docs/concepts/collectives.md.
std::optional<std::uint64_t> size_of(const trace::Collective& c, std::uint32_t ranks) {
  switch (c.kind) {
    case CollectiveKind::kAllGather:
      if (c.bytes_out) return c.bytes_out;
      if (c.bytes_in) return *c.bytes_in * ranks;
      return std::nullopt;
    case CollectiveKind::kReduceScatter:
      if (c.bytes_in) return c.bytes_in;
      if (c.bytes_out) return *c.bytes_out * ranks;
      return std::nullopt;
    case CollectiveKind::kBarrier:
      return 0;
    default:
      return c.bytes_in ? c.bytes_in : c.bytes_out;
  }
}

}  // namespace

Transfers find_transfers(const std::vector<Recording>& recordings, const ReplayGraph& replay) {
  Transfers transfers;
  for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
    const RankGraph& graph = replay.ranks[rank];
    for (const CommunicationOp& op : graph.communication) {
      const std::optional<std::uint32_t> ranks = op.what && op.what->group_size
                                                     ? op.what->group_size
                                                     : recordings[rank].rank().info.world_size;
      const auto size = op.what && ranks ? size_of(*op.what, *ranks) : std::nullopt;
      if (size)
        transfers.known.push_back({graph.device_last[op.op], op.what->kind,
                                   Bytes::b(static_cast<double>(*size)), *ranks});
      else
        ++transfers.unknown;
    }
  }
  return transfers;
}

}  // namespace rehearse::replay
