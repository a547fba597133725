// `workload: {recording: PATH}` of a job file: the recording lifted, as the workload of one sample.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/workload/workload.h"
#include "profiler/trace/op_timing.h"
#include "sim/base/yaml.h"
#include "strategies/plan.h"
#include "strategies/step/conditions.h"

namespace rehearse::cli {

struct RecordedWorkload {
  workload::Workload workload;  ///< represents `batch` samples
  /// The samples of one recorded pass; absent if neither shapes nor the job determine them.
  std::optional<double> batch;
  bool shapes;
  std::string source;  ///< the file
  std::string device;  ///< in the catalog; empty where unknown
  /// In the order of its operations: what most matrix work was computed in.
  std::optional<workload::Dtype> dtype;
  Seconds idle_per_kernel;               ///< of the layers' kernels: all that is not in the layers
  std::vector<trace::OpTiming> timings;  ///< from the same store
  std::vector<std::string> notes;        ///< for people
};

/// Reads the keys `recording` (a file or folder, from `folder`) and `samples` of the section. Fails
/// on recordings that cannot be lifted, and on those without a backward pass.
Result<RecordedWorkload> read_recording(const YamlMap& map, const std::filesystem::path& folder);

/// What the recording says where the section `training` does not.
strategies::Training recorded_training(const RecordedWorkload& recorded);

/// Fails where the plan divides, or computes in other batches, what was recorded without shapes.
Status check_shapes(const RecordedWorkload& recorded, const strategies::Training& training,
                    const strategies::Plan& plan);

/// For one sample, on devices of these names. Fails where one is another than the recorded one and
/// shapes are missing, so that step::Spec::measured_on cannot carry times over. `conditions` become
/// those of the recording.
Result<workload::Workload> place_recording(RecordedWorkload recorded,
                                           std::span<const std::string> devices,
                                           const strategies::Training& training,
                                           std::span<step::Conditions> conditions,
                                           std::vector<std::string>& notes);

}  // namespace rehearse::cli
