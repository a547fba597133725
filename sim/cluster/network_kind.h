// Kinds of networks between nodes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rehearse::cluster {

enum class NetworkKind : std::uint8_t { kInfiniband, kRoce, kEfa, kOmniPath, kTcp };
inline constexpr std::array<std::string_view, 5> kNetworkNames = {"infiniband", "roce", "efa",
                                                                  "omni_path", "tcp"};
constexpr std::string_view to_string(NetworkKind k) {
  return kNetworkNames[static_cast<std::size_t>(k)];
}

}  // namespace rehearse::cluster
