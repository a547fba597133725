// Energy: the energy of boards during a recording, attributed to the ops that ran on them.
//
// The rules, with formulas and an example: docs/concepts/energy.md. In short: the power of a
// board is linear between readings; running ops share its energy in
// proportion to the multiprocessors they use; while none runs it is idle energy of no op.
//
// Invariants:
//  1. For each board, the energy of ops, idle and others is its whole energy (to rounding).
//  2. Time without readings has no energy: nothing is attributed by guess.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/replay/recording.h"
#include "sim/base/units.h"

namespace rehearse::replay {

/// A board that was read, over the time from its first to its last reading.
struct BoardEnergy {
  std::string host;
  std::string uuid;
  std::string name;
  Nanoseconds first, last;
  Joules total = Joules::j(0);
  Joules ops = Joules::j(0);
  Joules idle = Joules::j(0);   ///< while nothing recorded ran
  Joules other = Joules::j(0);  ///< of unrecorded MIG instances
  /// The increase of the board's energy counter between its first and last reading, and the energy
  /// from its power readings over the same time.
  std::optional<Joules> counted = {}, counted_by_power = {};
  /// Several processes or MIG instances use the board: their shares are an estimate.
  bool shared = false;
};

/// Energy attributed to this rank over a span of time; absent without readings.
struct StepEnergy {
  Joules ops;
  Joules idle;
  Joules total() const { return ops + idle; }
};

struct StepSpan {
  Nanoseconds start, end;
};

struct Energy {
  std::vector<BoardEnergy> boards;
  std::vector<std::vector<Joules>> ops;                       ///< by rank and GpuIndex
  std::vector<std::vector<std::optional<StepEnergy>>> steps;  ///< by rank, in the given order
};

/// Nothing if no board was read. A board that several processes read counts once. REQUIRES: clocks
/// of one host agree (trace::align); one entry of `steps` per recording.
std::optional<Energy> measure_energy(const std::vector<Recording>& recordings,
                                     const std::vector<std::vector<StepSpan>>& steps);

}  // namespace rehearse::replay
