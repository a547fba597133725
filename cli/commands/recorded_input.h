// An edit of a recording: it is fed by an input pipeline.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/value.h"
#include "models/input/pipeline.h"
#include "profiler/replay/lower.h"

namespace rehearse::cli {

/// How an input pipeline was connected to a recording, for people and programs.
struct FedBy {
  double batch;                   ///< samples per request of a rank
  std::size_t loading_ranges;     ///< requests at loading ranges of the recording
  std::size_t step_requests;      ///< requests at the begin of a step, by ranks without such ranges
  Seconds replaced;               ///< mean work of those ranges, which the pipeline replaces
  std::size_t hosts, most_ranks;  ///< ranks of a host
  std::string bound = {};         ///< the pipeline's bottleneck; "" if nothing takes time
  double allowed;                 ///< samples per second that it can deliver, per host
  bool scarce_cores;
};

struct FedProgram {
  replay::RecordedProgram program = {};
  FedBy by;
};

/// The program with such a pipeline on every host of the recording, as services. Ranks request `batch` samples at a time (absent: a unit of the last stage), in the
/// order in which they would without waiting, and wait for them. The pipeline is in a steady state
/// when the recording begins, after requests at the same rate. Ranks whose host is unknown share
/// one. Fails if the pipeline forms no batches and `batch` is absent, if the recording requests too
/// few of the pipeline's units to be representative, or if the graph would have too many ops.
Result<FedProgram> feed_recording(const std::vector<replay::Recording>& recordings,
                                  const replay::RecordedProgram& program,
                                  const input::Pipeline& pipeline,
                                  std::optional<std::uint32_t> batch);

/// "input pipeline: a rank takes 256 samples at each loading range, …"
std::string fed_text(const FedBy& by);
Json fed_json(const FedBy& by);

}  // namespace rehearse::cli
