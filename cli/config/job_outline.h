// JobOutline: the step time, number of GPUs and memory per GPU of a job file, for lists of jobs.
#pragma once

#include <filesystem>

#include "sim/base/result.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

struct JobOutline {
  Seconds step;
  Seconds exposed;  ///< communication that is not overlapped
  Seconds hidden;   ///< communication that is overlapped by computation
  Bytes memory;     ///< peak of the fullest GPU
  std::uint32_t ranks;
};

/// Uses message fidelity, as `rehearse simulate` does by default. Fails as load_job and
/// step::predict do.
Result<JobOutline> outline_of(const std::filesystem::path& path);

/// The communication of a step that is hidden by computation: the time of its collectives (from the
/// arrival of the last member, on the rank that spends longest in them), less the exposed time.
Seconds hidden_communication(const step::Step& step);

}  // namespace rehearse::cli
