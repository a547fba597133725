// Measures of inference servers in studies: of jobs with a section `serve` (docs/formats/study.md).
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "cli/commands/served_load.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

struct ServerRun {
  std::unique_ptr<ServeFile> file;  ///< that `load` refers to
  ServedLoad load;
};

/// Runs the load of a job. Paths are relative to `folder`. Fails with the mistakes of the job, and as serve() does.
Result<ServerRun> run_server(const YamlMap& job, const std::filesystem::path& folder);

/// A measure: `ttft`, `tpot`, `itl` or `end_to_end` with `_mean`, `_p50`, `_p90` or `_p99`, in seconds; `output_rate`, `goodput`
/// and `held_rate` per second, of all GPUs; `gpus`; `hit_share` of prompt tokens. Fails with one line where the job does not
/// define it, such as a goodput without an SLO. REQUIRES: one of these names.
Result<Estimate<double>> server_value(const ServerRun& run, std::string_view name);

}  // namespace rehearse::cli
