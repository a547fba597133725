// A job whose ranks record into rings, simulated in virtual time with the actual ring, step keeper
// and trigger of the capture library. The same input gives the same output on any machine.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/capture/step_keeper.h"

namespace rehearse::test {

struct AlwaysOn {
  std::uint32_t ranks = 1;
  std::uint64_t steps = 100;
  double step_s = 0.1;         ///< typical step; each is up to 5 % shorter or longer
  double slow_share = 0;       ///< of the steps are slow, on all ranks, which wait for each other
  double slow_factor = 3;      ///< duration of slow steps relative to others: this to twice this
  double rate = 5e6;           ///< bytes that a rank encodes per second
  std::uint32_t block = 4096;  ///< bytes of a typical block with headers; 0.5 to 1.5 times that
  std::uint64_t ring = 64 << 20;  ///< bytes
  double flush_s = 0.5;           ///< between two passes of the flusher; the phase differs per rank
  double announce_s = 0;          ///< delay until the other ranks see an announcement
  /// The share of the trigger's steps that appear slow on only one rank, chosen at random for each:
  /// its own marks show it, and the others keep the step because it is announced.
  double on_one_rank = 0;
  capture::Trigger trigger = {};
  std::uint64_t seed = 1;
};

/// A step that a rank was requested to keep.
struct KeptInSimulation {
  std::uint32_t rank;
  std::uint64_t step;
  bool announced;  ///< by another rank
  bool slow;
  double seconds;  ///< duration: T
  double known_s;  ///< from its end until the rank knew: D; negative for a neighbour of a kept step
  std::uint64_t added;
  std::uint64_t kept;
};

struct AlwaysOnResult {
  std::vector<KeptInSimulation> kept;
  double horizon_s;              ///< H: the ring size divided by the bytes added per second
  std::uint32_t longest_block;   ///< in the ring, with what the ring adds
  std::uint64_t slow_steps = 0;  ///< summed over ranks
  std::uint64_t slow_whole = 0;  ///< of these that are in the files whole, for whatever reason
  std::uint64_t bytes = 0;       ///< encoded by all ranks
  std::uint64_t bytes_written = 0;
};

AlwaysOnResult simulate(const AlwaysOn& job);

}  // namespace rehearse::test
