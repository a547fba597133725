// The algorithm and protocol that NCCL selects for a collective, by the rule of its tuning model.
//
// NCCL prices every (algorithm, protocol) by latency + bytes / bandwidth from built-in constants
// and takes the cheapest. Those prices are 10 to 50 % away from measured times, but the choice that
// follows from them is the one that measured curves show: so this file chooses, and calibration.h
// prices. Constants: NCCL 2.30, src/graph/tuning.cc, restated in nccl_tuning.h.
//
// Valid for NCCL 2.27 to 2.30 on one operation per call, without a tuner plug-in. Graph bandwidth
// is that of NCCL's own search (graph_rate), not of the datasheet.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/algorithm.h"
#include "sim/base/collective.h"
#include "sim/base/units.h"

namespace rehearse::comm {

enum class Protocol : std::uint8_t { kLl, kLl128, kSimple };
inline constexpr std::array<std::string_view, 3> kProtocolNames = {"ll", "ll128", "simple"};
constexpr std::string_view to_string(Protocol p) {
  return kProtocolNames[static_cast<std::size_t>(p)];
}

/// Rows of NCCL's tables; older devices take the row of Volta.
enum class Generation : std::uint8_t { kVolta, kAmpere, kHopper, kBlackwell };
inline constexpr std::array<std::string_view, 4> kGenerationNames = {"volta", "ampere", "hopper",
                                                                     "blackwell"};
constexpr std::string_view to_string(Generation g) {
  return kGenerationNames[static_cast<std::size_t>(g)];
}

/// NCCL's knowledge of the machine when it chooses.
struct NcclSetup {
  Generation generation;
  bool nvlink = true;     ///< else PCIe between the devices of a node
  double graph_rate = 0;  ///< B/s of all channels of the ring that NCCL found
  double channels = 1;    ///< of that ring
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;     ///< on which the ranks are, evenly
  double network_rate = 0;     ///< B/s of a node; with several nodes
  double network_latency = 0;  ///< s of the NIC; with several nodes
  /// B/s on the wire that no tree over nodes exceeds. NCCL's own limits grow with its channels, and
  /// would choose trees that take twice as long as rings by the prices of this program.
  std::optional<double> tree_rate = {};
  /// The size in bytes from which NVLS is considered; absent: the fabric has none, or it is unused.
  std::optional<double> nvls_from = {};
};

/// As NCCL_ALGO and NCCL_PROTO: only these are considered.
struct NcclOverrides {
  std::optional<Algorithm> algorithm = {};
  std::optional<Protocol> protocol = {};
};

struct NcclChoice {
  Algorithm algorithm;
  Protocol protocol;
  std::uint32_t channels;
  double nominal_time;  ///< s, of NCCL's own model: good for choosing only
};

/// NCCL's prices of one kind of collective on one set-up, resolved once.
class NcclTuning {
 public:
  /// REQUIRES: ranks >= 1, nodes divides ranks, graph_rate > 0.
  NcclTuning(const NcclSetup& setup, CollectiveKind kind, const NcclOverrides& overrides = {});

  /// The cheapest choice for a size in bytes: the buffer of a rank for all_reduce, broadcast and
  /// reduce, of all ranks together for all_gather and reduce_scatter. Nothing if no algorithm is
  /// available (an override that does not apply), or if NCCL has no choice: all_to_all
  /// and send_recv are pairs of messages.
  std::optional<NcclChoice> choose(double bytes) const;

 private:
  struct Entry {
    Algorithm algorithm;
    Protocol protocol;
    double latency;  // s
    double rate;     // B/s of algorithm bandwidth
    double from;     // bytes
  };
  void add(Algorithm a, Protocol p, double latency, double rate, double from = 0);

  std::array<Entry, 16> entries_;
  std::uint32_t count_ = 0;
  std::uint32_t channels_;
};

/// The result of NCCL's search on one node: the fastest of its speeds per channel whose channels
/// fill the links. `links` NVLinks of `link_rate` B/s each, as NCCL counts them.
struct RingGraph {
  double rate;  ///< B/s of all channels
  double channels;
};
RingGraph search_ring(Generation generation, std::uint32_t links, double link_rate);

/// B/s that NCCL counts for one NVLink of a generation.
double nvlink_rate(Generation generation);

}  // namespace rehearse::comm
