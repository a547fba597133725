// The algorithms of collectives, by their standard names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/collective.h"

namespace rehearse {

enum class Algorithm : std::uint8_t {
  // NCCL's.
  kRing,
  kTree,           ///< double binary tree (Sanders, Speck and Träff, Parallel Computing 35, 2009)
  kCollnetDirect,  ///< within a node by rings, between nodes the switches add
  kCollnetChain,   ///< within a node along a chain, between nodes the switches add
  kNvls,           ///< the switch of the node adds and copies
  kNvlsTree,       ///< within a node as kNvls, between nodes as kTree
  kPat,            ///< distances 1, 2, 4, …: ⌈log2 n⌉ steps (all_gather, reduce_scatter)
  kPairwise,       ///< all_to_all in n-1 steps, in step k with the rank k further on
  // Others'.
  kHalvingDoubling,  ///< recursive halving, then doubling (Thakur, Rabenseifner and Gropp, 2005)
  kLinear,           ///< all_to_all with every message at once
  kTwoDimensional,   ///< all_to_all within nodes, then between ranks of equal place
  kHierarchical,     ///< all_reduce: scatter within nodes, reduce between them, gather within
  kParameterServer,  ///< all_reduce: push to the servers, then pull; reduce: push; broadcast: pull
};

inline constexpr std::array<std::string_view, 13> kAlgorithmNames = {"ring",
                                                                     "tree",
                                                                     "collnet_direct",
                                                                     "collnet_chain",
                                                                     "nvls",
                                                                     "nvls_tree",
                                                                     "pat",
                                                                     "pairwise",
                                                                     "halving_doubling",
                                                                     "linear",
                                                                     "two_dimensional",
                                                                     "hierarchical",
                                                                     "parameter_server"};

constexpr std::string_view to_string(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

/// The algorithm of each kind of collective; absent: as is usual.
class Algorithms {
 public:
  std::optional<Algorithm>& operator[](CollectiveKind kind) {
    return of_[static_cast<std::size_t>(kind)];
  }
  std::optional<Algorithm> operator[](CollectiveKind kind) const {
    return of_[static_cast<std::size_t>(kind)];
  }
  friend auto operator<=>(const Algorithms&, const Algorithms&) = default;

 private:
  std::array<std::optional<Algorithm>, kCollectiveNames.size()> of_ = {};
};

}  // namespace rehearse
