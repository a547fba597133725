// Makeup: which ops of which layers the computing ops of a program consist of. A program joins what
// it computes between two communications to one op; what that op's time is for stands here.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "strategies/layer_run.h"

namespace rehearse::strategies {

/// A piece of computing of a layer, so many times.
struct ComputedPiece {
  std::uint32_t chunk, layer;  ///< of the stage
  PieceOps ops;
  std::uint32_t times;
  friend auto operator<=>(const ComputedPiece&, const ComputedPiece&) = default;
};
inline constexpr std::uint32_t kComputesNothing = UINT32_MAX;

/// Of a program's ops.
struct Makeup {
  std::vector<std::vector<ComputedPiece>> mixtures;  ///< each once
  std::vector<std::uint32_t> mixture_of;  ///< by op, into `mixtures`; or kComputesNothing
};

}  // namespace rehearse::strategies
