// Replays a recording fed by an input pipeline.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/json.h"
#include "models/input/pipeline.h"
#include "profiler/replay/lower.h"

namespace rehearse::cli {

/// What was put in front of what, for people and programs.
struct FedBy {
  double batch;                   ///< samples that a rank takes at a time
  std::size_t loading_ranges;     ///< takes at a loading range of the recording
  std::size_t step_requests;      ///< takes at begins of steps, of ranks without such ranges
  Seconds replaced;               ///< mean work of those ranges, in whose place the pipeline is
  std::size_t hosts, most_ranks;  ///< of a host
  std::string bound;              ///< what bounds the pipeline, "" where nothing takes time
  double allowed;                 ///< samples per second that it lets through, of each host
  bool scarce_cores;
};

struct FedGraph {
  replay::ReplayGraph graph;
  FedBy by;
};

/// The graph of a program, as recorded or edited, with such a pipeline on every host of the recording: ranks
/// take `batch` samples at a time (absent: a unit of the last stage), in the order in which they
/// would without waiting, and wait for them. Before the recording begins the pipeline has settled,
/// on takes that come as often. Ranks that do not say on which host they ran share one. Fails on a
/// pipeline that forms no batches where `batch` is absent, where the recording takes too few of the
/// pipeline's units to show more than a part of one, and where too many ops would be due.
Result<FedGraph> feed_recording(const std::vector<replay::Recording>& recordings,
                                const replay::RecordedProgram& program,
                                const input::Pipeline& pipeline,
                                std::optional<std::uint32_t> batch);

/// "input pipeline: a rank takes 256 samples at each loading range, …"
std::string fed_text(const FedBy& by);
Json fed_json(const FedBy& by);

}  // namespace rehearse::cli
