// `workload: {recording: PATH}` of a job file: the recording lifted, as the workload of one sample.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/comm/slower_links.h"
#include "models/workload/workload.h"
#include "profiler/trace/trace.h"
#include "sim/base/collective.h"
#include "sim/base/units.h"
#include "sim/base/yaml.h"
#include "strategies/plan.h"
#include "strategies/step/conditions.h"

namespace rehearse::cli {

// --- What recorded collectives say of the links of a cluster.

/// The collectives of one kind, size and group.
struct RecordedCollective {
  CollectiveKind kind;
  Bytes bytes;
  std::vector<std::uint32_t> ranks;  ///< of the job, ascending
  bool one_host;                     ///< as recorded
  Seconds time;  ///< median, each from the arrival of the last rank on its shortest rank
  std::size_t count;
};

/// Collectives whose ranks were all recorded. How long a rank of the others waits is unknown.
/// REQUIRES: trace::align was called on the trace.
std::vector<RecordedCollective> recorded_collectives(const trace::Trace& trace);

/// How many times as long collectives took as they are priced on the cluster, with rank r on device
/// r: their times together ÷ their prices together, within nodes and between them. One where none
/// was recorded on devices of this model and on as many nodes, and where the ratio is out of 0.1 to
/// 10. Adds a note for each.
comm::LinkScales scales_of(std::span<const RecordedCollective> collectives,
                           const std::string& device, const cluster::Cluster& cluster,
                           std::vector<std::string>& notes);

// --- The workload.

struct RecordedWorkload {
  workload::Workload workload;  ///< represents `batch` samples
  /// The samples of one recorded pass; absent if neither shapes nor the job determine them.
  std::optional<double> batch;
  bool shapes;
  std::string source;  ///< the file
  std::string device;  ///< in the catalog; empty where unknown
  /// The precision of most matrix work; its values are in the order of the operations.
  std::optional<workload::Dtype> dtype;
  Seconds idle_per_kernel;               ///< all idle time outside the layers, per layer kernel
  std::vector<trace::OpTiming> timings;  ///< from the same store
  std::vector<RecordedCollective> collectives;
  std::vector<std::string> notes;  ///< for people
};

/// The GPU of a recording in the catalog; empty where unknown.
std::string device_of(const trace::Rank& rank);

/// Reads the keys `recording` (a file or folder, relative to `folder`), `samples`, and the edits
/// `sequence`, `recompute_layers` and `keep_layers` of the section. Fails if the recording cannot be
/// lifted, has no backward pass, or does not tell what an edit needs.
Result<RecordedWorkload> read_recording(const YamlMap& map, const std::filesystem::path& folder);

/// Settings that the recording implies, for those that the section `training` omits.
strategies::Training recorded_training(const RecordedWorkload& recorded);

/// Fails if the recording lacks shapes and the plan divides the recorded work or uses other batch
/// sizes.
Status check_shapes(const RecordedWorkload& recorded, const strategies::Training& training,
                    const strategies::Plan& plan);

/// The workload of one sample, on devices of these names. Fails if one of them is not the recorded
/// device and shapes are missing, because step::Spec::measured_on then cannot transfer times.
/// Replaces `conditions` by those of the recording.
Result<workload::Workload> place_recording(RecordedWorkload recorded,
                                           std::span<const std::string> devices,
                                           const strategies::Training& training,
                                           std::span<step::Conditions> conditions,
                                           std::vector<std::string>& notes);

}  // namespace rehearse::cli
