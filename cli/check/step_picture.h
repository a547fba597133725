// The timeline of one recorded step, stored without its recording, and two of them side by side.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "profiler/compare/run.h"
#include "sim/base/result.h"
#include "sim/graph/category.h"

namespace rehearse::cli {

struct StepPicture {
  struct Span {
    std::string name;
    graph::Category category;
    std::size_t lane;
    Seconds start, duration;  ///< since the step began
  };
  struct Rank {
    std::uint32_t number;
    std::vector<std::string> lanes = {};  ///< host threads, then streams
    std::vector<Span> spans = {};
  };
  std::vector<Rank> ranks = {};
  std::size_t step = 0;  ///< its number among the whole steps, from 1
  std::size_t of = 0;    ///< number of whole steps
  Seconds length = Seconds::s(0);
};

/// The step whose time is nearest to the run's level, with the host's work and the device work that
/// it requested. REQUIRES: `run` was measured from these recordings.
StepPicture typical_step(const std::vector<replay::Recording>& recordings, const compare::Run& run);

/// Writes a Chrome trace for Perfetto with a process per rank of the baseline, then of the
/// candidate. Both start at time zero.
Status write_steps(const std::filesystem::path& path, const StepPicture& baseline,
                   const StepPicture& candidate);

}  // namespace rehearse::cli
