// Boundaries: what passes between chunks on different stages, and between which ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.h"
#include "strategies/job_of_layout.h"

namespace rehearse::strategies {

/// From a chunk to the next one of the chain.
struct Crossing {
  ChunkPlace from, to;
  Bytes message;  ///< that a pair of ranks exchanges per microbatch, forward as well as back
  /// Of the all-gather behind it in the tensor group of the receivers; 0: none.
  Bytes gathered_forward, gathered_back;
};

/// Of all neighbours in the chain that stand on different stages. Fails where their degrees do not
/// divide each other.
Result<std::vector<Crossing>> crossings_of(const workload::Layout& layout, Boundary boundary);

/// The ranks of the other stage that a rank (by its number in its own) exchanges with, in order.
std::vector<std::uint32_t> partners(const workload::Degrees& own, std::uint32_t rank,
                                    const workload::Degrees& other);

}  // namespace rehearse::strategies
