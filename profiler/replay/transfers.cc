#include "profiler/replay/transfers.h"

namespace rehearse::replay {
namespace {

/// The bytes that determine the cost of a collective: see docs/concepts/collectives.md.
std::optional<std::uint64_t> bytes_of(const trace::Collective& c, std::uint32_t ranks) {
  switch (c.kind) {
    case CollectiveKind::kAllGather:
      if (c.bytes_out) return c.bytes_out;
      if (c.bytes_in) return *c.bytes_in * ranks;
      return std::nullopt;
    case CollectiveKind::kReduceScatter:
      if (c.bytes_in) return c.bytes_in;
      if (c.bytes_out) return *c.bytes_out * ranks;
      return std::nullopt;
    case CollectiveKind::kBarrier: return 0;
    default: return c.bytes_in ? c.bytes_in : c.bytes_out;
  }
}

}  // namespace

std::optional<std::uint32_t> ranks_of(const Recording& recording, const CommunicationOp& op) {
  return op.what && op.what->group_size ? op.what->group_size : recording.rank().info.world_size;
}

std::optional<SizedCollective> size_of(const Recording& recording, const CommunicationOp& op,
                                       std::optional<std::uint32_t> found) {
  std::optional<std::uint32_t> ranks = ranks_of(recording, op);
  if (!ranks) ranks = found;
  const auto bytes = op.what && ranks ? bytes_of(*op.what, *ranks) : std::nullopt;
  if (!bytes) return std::nullopt;
  return SizedCollective{Bytes::b(static_cast<double>(*bytes)), *ranks};
}

}  // namespace rehearse::replay
