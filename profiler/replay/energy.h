// Energy: what boards drew while a recording was made, shared out to the ops that ran on them.
//
// The rules, with formulas and an example: docs/concepts/energy.md. In short: the power that a
// board tells is taken as linear between readings; while ops run on it they share what it draws in
// proportion to the multiprocessors they use; while none runs it is idle energy, which no op pays.
//
// Invariants:
//  1. Of each board, the energy of ops, idle and others is its whole energy (to rounding).
//  2. What no reading covers has no energy: no op is charged by guess.
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
  Joules other = Joules::j(0);  ///< of MIG instances that were not recorded
  /// What its energy counter gained between its first and last reading, and what the readings of
  /// its power give over the same time.
  std::optional<Joules> counted = {}, counted_by_power = {};
  /// Several processes or MIG instances share it: their shares are an estimate.
  bool shared = false;
};

/// What the boards of a rank drew for it over a span of time; absent where a reading lacks.
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
  std::vector<std::vector<std::optional<StepEnergy>>> steps;  ///< by rank, as they were given
};

/// Nothing where no board was read. Boards that several processes read are one. REQUIRES: clocks of
/// one host agree (trace::align); one entry of `steps` per recording.
std::optional<Energy> measure_energy(const std::vector<Recording>& recordings,
                                     const std::vector<std::vector<StepSpan>>& steps);

}  // namespace rehearse::replay
