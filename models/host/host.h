// Host: how long a rank's host takes to launch the work of a transformer block. A pass of a block
// takes at least that: the device waits for its launches.
//
// Times belong to an implementation (implementations.yaml) and to a host: CPU, Python, build and
// load decide. An unknown host takes 0.65 to 1.6 times as long as the catalog says, and a loaded
// one up to seven times as long. docs/concepts/host.md has the law and its evidence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/units.h"

namespace rehearse::host {

/// Host times of one dense transformer block and microbatch: forward and backward together, without
/// recomputation.
struct Implementation {
  std::string name = {};
  Seconds layer = Seconds::s(0);           ///< on a rank without tensor parallelism
  Seconds layer_tensor = Seconds::s(0);    ///< with it: 8 to 10 additional calls of collectives
  Seconds layer_pipeline = Seconds::s(0);  ///< with it, on a stage of a pipeline
  double fastest = 1, slowest = 1;         ///< the 90 % interval on an unknown host, as factors
  std::string source = {};
  // The following have no effect unless they were measured (docs/decisions/0063).
  double computing = 1;  ///< time of computing relative to other implementations
  /// Additional time of a block for each rank of its tensor group, with a pipeline over nodes that
  /// EFA joins.
  Seconds rank_over_efa = Seconds::s(0);
  /// Once per step and block, if data ranks divide the update.
  Seconds divided_update = Seconds::s(0);
  /// Median length of a stalled exchange with a neighbouring stage over EFA.
  Seconds stall = Seconds::s(0);

  bool knows_efa() const { return rank_over_efa > Seconds::s(0) || stall > Seconds::s(0); }
};

/// The links over which a stage sends to other stages.
enum class Sends : std::uint8_t { kNone, kLinks, kEfa };

/// The catalog, in its order.
std::span<const Implementation> implementations();
/// REQUIRES: the catalog has it.
const Implementation& implementation_named(std::string_view name);

/// The same on a host that takes `factor` times as long.
Implementation scaled(Implementation implementation, double factor);

/// The host times of the passes of a dense block. Recomputing it takes as long as forward.
struct BlockTimes {
  Seconds forward = Seconds::s(0), backward = Seconds::s(0);
};
/// Backward takes 1.3 times as long as forward (measured on a CPU; 0.8 to 1.6 by judgement).
/// `tensor`: tensor degree.
BlockTimes block_times(const Implementation& implementation, std::uint32_t tensor, Sends sends);

}  // namespace rehearse::host
