// Reader of ASTRA-sim's network file (YAML of its analytical back end), as a cluster.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

struct AstraNetwork {
  Cluster cluster;
  /// NPUs along each dimension, that of consecutive numbers first.
  std::vector<std::uint32_t> dimensions;
};

/// The device of a network file, which does not name one.
inline constexpr std::string_view kNpu = "npu";

/// `topology`, `npus_count`, `bandwidth` (GB/s of 2^30 bytes, as ASTRA-sim counts) and `latency`
/// (ns), each a list by dimension. NPU (i0, i1, …) has number i0 + n0 (i1 + n1 …), and in each
/// dimension links of that rate and latency:
///  - Ring: to the next and the previous NPU, in both directions at once;
///  - FullyConnected: to each other NPU;
///  - Switch: to the switch of the NPUs that differ in this dimension alone, so that a message
///    takes two links.
/// Fails with every mistake of the file, one line each.
Result<AstraNetwork> load_astra_network(const std::filesystem::path& path);
Result<AstraNetwork> parse_astra_network(const std::string& text, std::string name);

}  // namespace rehearse::cluster
