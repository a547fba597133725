// Makeup: which ops of which layers the computing ops of a program consist of. A program joins what
// it computes between two communications to one op; what that op's time is for stands here.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
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

class MakeupWriter {
 public:
  /// To the op that computing is joined to.
  void add(std::uint32_t chunk, std::uint32_t layer, const PieceOps& ops);
  /// What was added is this op of the program; what comes next another's.
  void end(std::uint32_t op);
  /// Of a program of so many ops.
  Makeup take(std::size_t ops);

 private:
  std::vector<ComputedPiece> open_;
  std::map<std::vector<ComputedPiece>, std::uint32_t> known_;  ///< to their place in the makeup
  Makeup makeup_;
};

}  // namespace rehearse::strategies
