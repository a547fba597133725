// Finds the settings with which a pipeline is fastest: workers and threads of each stage, data to
// keep in memory, and the number of samples in flight. An integer program over the operational laws
// (limits.h) chooses them. Among equally fast settings, it takes the one with the fewest workers
// and threads; more are added if a run shows that they are needed.
#pragma once

#include <optional>
#include <vector>

#include "models/input/limits.h"
#include "models/input/pipeline.h"
#include "models/input/simulate.h"

namespace rehearse::input {

enum class Knob : std::uint8_t { kWorkers, kThreads, kQueue, kInFlight };
inline constexpr std::string_view kKnobNames[] = {"workers", "threads", "queue", "in_flight"};

struct Change {
  std::size_t stage;  ///< unused for kInFlight
  Knob knob;
  std::uint32_t from, to;
};

struct Tuned {
  Pipeline pipeline;   ///< with the settings; without the stages whose units are kept in memory
  double units_per_s;  ///< of the last stage, by the laws with these settings
  std::vector<Change> changes = {};
  std::optional<std::size_t>
      kept;  ///< the stage whose units are kept in memory after the first epoch
  Bytes kept_bytes = Bytes::b(0);
  Limit limit;        ///< the bottleneck with these settings
  Result<Flow> flow;  ///< with the settings; fails where running them takes too long
};

/// Stages keep to Stage::most_workers and most_threads. Together they keep to the host's memory,
/// and to 2 concurrent threads per core unless a run shows that these are too few. Fails if
/// limits_of is empty, or if workers do not fit in memory.
Result<Tuned> tune(const Pipeline& pipeline);

}  // namespace rehearse::input
