// The collectives a job can run, by their standard names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rehearse {

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kReduce,
  kSendRecv,
  kBarrier,
};

inline constexpr std::array<std::string_view, 8> kCollectiveNames = {
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
    "broadcast",  "reduce",         "send_recv",  "barrier"};

constexpr std::string_view to_string(CollectiveKind kind) {
  return kCollectiveNames[static_cast<std::size_t>(kind)];
}

}  // namespace rehearse
