// The makespan of a lowered job on the engine.
#pragma once

#include <catch2/catch.hpp>

#include "models/job/lower.h"
#include "sim/engine/engine.h"

namespace rehearse::test {

inline Picoseconds makespan(const job::LoweredJob& lowered) {
  const auto timeline = engine::run(lowered.graph);
  INFO((timeline ? "" : to_string(timeline.error())));
  REQUIRE(timeline);
  return timeline->makespan();
}

}  // namespace rehearse::test
