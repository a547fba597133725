// JobOutline: the step time, number of GPUs and memory per GPU of a job file, for lists of jobs.
#pragma once

#include <filesystem>

#include "sim/base/result.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

struct JobOutline {
  Seconds step;
  Seconds exposed;  ///< communication of it that nothing hides
  Seconds hidden;   ///< and that its computing hides
  Bytes memory;     ///< peak of the fullest GPU
  std::uint32_t ranks;
};

/// Messages as `rehearse simulate` has them by default. Fails as load_job and step::predict do.
Result<JobOutline> outline_of(const std::filesystem::path& path);

/// Communication of a step that its computing hides: what its collectives take, from when the last
/// member comes, on the rank that is longest in them, less what shows.
Seconds hidden_communication(const step::Step& step);

}  // namespace rehearse::cli
