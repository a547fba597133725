// A job whose ranks record into rings, simulated in virtual time around the very ring, step keeper
// and trigger of the capture library. The same input gives the same output on any machine.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/capture/step_keeper.h"

namespace rehearse::test {

struct AlwaysOn {
  std::uint32_t ranks = 1;
  std::uint64_t steps = 100;
  double step_s = 0.1;         ///< a usual step; each is up to 5 % shorter or longer
  double slow_share = 0;       ///< of the steps are slow: on all ranks, which wait for each other
  double slow_factor = 3;      ///< they take that to twice that
  double rate = 5e6;           ///< bytes that a rank encodes in a second
  std::uint32_t block = 4096;  ///< bytes of a usual block, headers included; half to one and a half
  std::uint64_t ring = 64 << 20;  ///< bytes
  double flush_s = 0.5;           ///< between two looks of the flusher; ranks' differ in phase
  double announce_s = 0;          ///< until what a rank announces is seen by the others
  /// The share of the trigger's steps that only one rank, drawn for each, takes for slow: its own
  /// marks say so, and the others keep the step since it is announced.
  double on_one_rank = 0;
  capture::Trigger trigger = {};
  std::uint64_t seed = 1;
};

/// A step that a rank was asked to keep.
struct KeptInSimulation {
  std::uint32_t rank;
  std::uint64_t step;
  bool announced;  ///< by another rank
  bool slow;
  double seconds;  ///< how long it took: T
  double known_s;  ///< from its end until the rank knew: D; below 0 beside a step that was kept
  std::uint64_t added;
  std::uint64_t kept;
};

struct AlwaysOnResult {
  std::vector<KeptInSimulation> kept;
  double horizon_s;              ///< H: the ring over what a second fills of it
  std::uint32_t longest_block;   ///< in the ring, with what the ring adds
  std::uint64_t slow_steps = 0;  ///< times ranks
  std::uint64_t slow_whole = 0;  ///< of these that are in the files whole, for whatever reason
  std::uint64_t bytes = 0;       ///< encoded by all ranks
  std::uint64_t bytes_written = 0;
};

AlwaysOnResult simulate(const AlwaysOn& job);

}  // namespace rehearse::test
