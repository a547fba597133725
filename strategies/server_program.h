// The program of a parameter server: receives from workers, updates, and sends back.
#pragma once

#include <cstdint>

#include "models/workload/layout.h"
#include "sim/program/program.h"
#include "strategies/layer_run.h"

namespace rehearse::strategies {

/// Whether an op of a layer's step goes to the servers (kReduce) or comes from them (kBroadcast).
bool is_with_servers(const workload::Layout& layout, const workload::Op& op);

/// The tag of the `exchange`-th such op of a rank in a step.
inline std::uint32_t server_tag(std::uint32_t step, std::uint32_t exchange) {
  constexpr std::uint32_t kMost = 1U << 16;  // exchanges of a rank in a step
  return step * kMost + exchange;
}

/// Peers are the workers, by rank. Per layer and step a server gets the gradients of all workers,
/// updates, and returns the parameters:
///  - staleness 0: one update when all gradients have arrived except those of `backup_workers` data
///    ranks;
///  - otherwise one update per gradient, with an answer that waits for all gradients of the layer
///    that are `staleness` steps older.
/// Names and origins of the ops go to `whole`. An update takes the layer's share of
/// Servers::update. REQUIRES: Layout::servers; workers push and fetch in turn.
program::RankProgram server_program(const workload::Layout& layout, const Price& price,
                                    std::uint32_t steps, program::Program& whole);

}  // namespace rehearse::strategies
