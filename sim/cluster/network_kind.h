// Kinds of networks between nodes, and the time of their messages.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/units.h"

namespace rehearse::cluster {

enum class NetworkKind : std::uint8_t { kInfiniband, kRoce, kEfa, kOmniPath, kTcp };
inline constexpr std::array<std::string_view, 5> kNetworkNames = {"infiniband", "roce", "efa",
                                                                  "omni_path", "tcp"};
constexpr std::string_view to_string(NetworkKind k) {
  return kNetworkNames[static_cast<std::size_t>(k)];
}

/// A network with a lower latency from device to device bypasses the kernel.
inline constexpr Seconds kKernelBypass = Seconds::us(10);

/// What a message takes on a NIC in addition to the latency and to its bytes at the NIC's rate.
/// `start_up` and the time of `half_rate_size` bytes overlap with those of other messages. During
/// `cost` the NIC sends nothing else.
struct MessageTimes {
  Seconds start_up = Seconds::s(0);
  Seconds cost = Seconds::s(0);
  Bytes half_rate_size = Bytes::b(0);

  friend bool operator==(const MessageTimes&, const MessageTimes&) = default;
};
inline constexpr Seconds kMostMessageTime = Seconds::ms(10);
/// No link is slower: a time that divides by its rate is one of a run that ends.
inline constexpr ByteRate kLeastLinkRate = ByteRate::bytes_per_s(1000);
inline constexpr std::string_view kLinkRates = "at least 1 kB/s";
inline constexpr Bytes kMostHalfRateSize = Bytes::gib(1);

}  // namespace rehearse::cluster
