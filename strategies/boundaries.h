// Boundaries: data between chunks on different stages, and the ranks that exchange it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/result.h"
#include "strategies/layer_run.h"

namespace rehearse::strategies {

/// From a chunk to the next one of the chain.
struct Crossing {
  ChunkPlace from, to;
  Bytes message;  ///< data per pair of ranks and microbatch, the same forward and back
};

/// All adjacent chunks on different stages. Fails if their degrees do not
/// divide each other.
Result<std::vector<Crossing>> crossings_of(const workload::Layout& layout);

/// The stage that holds the same matrix as this one (Layout::tied_gradient), and the data that a
/// pair of their ranks exchanges each way: the ranks of the other side together get all of it.
std::optional<std::uint32_t> tied_with(const workload::Layout& layout, std::uint32_t stage);
Bytes tied_message(const workload::Layout& layout, std::uint32_t stage, std::uint32_t other);

/// The ranks of the other stage that a rank (by its number in its own) exchanges with, in order.
std::vector<std::uint32_t> partners(const workload::Degrees& own, std::uint32_t rank,
                                    const workload::Degrees& other);

}  // namespace rehearse::strategies
