// Published tables of whole jobs' steps by batch and devices, as rows. They are data
// next to the source tree, not part of it (their PROVENANCE.md says what was measured).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cli {

struct PlacedStep {
  std::vector<std::uint32_t> devices;  ///< on each node, the most first
  double batch;                        ///< of a device
  Seconds step;

  std::uint32_t ranks() const;
  bool operator==(const PlacedStep&) const = default;
};

/// Profiles of Pollux and Sia: local_bsz, step_time (s), and either placement (the devices of each
/// node, a digit a node) or num_nodes and num_replicas, which are spread evenly.
Result<std::vector<PlacedStep>> read_placed_steps(const std::filesystem::path& path);

struct IsolatedJob {
  std::string table, gpu, job;
  bool one_server;
  double batch;  ///< of a worker
  std::uint32_t workers;
  Seconds step;  ///< of a worker
};

struct IsolatedJobs {
  std::vector<IsolatedJob> rows = {};
  std::vector<std::string> left_out = {};  ///< rows that say nothing, and why
};

/// Gavel's isolated.csv: file, gpu, gpus_on_one_server (yes, no), job, batch_size_per_gpu,
/// num_gpus, steps_per_s. Its steps per second are the sum over workers. Rows without a batch, and
/// those that did not fit (0), are left out.
Result<IsolatedJobs> read_isolated_jobs(const std::filesystem::path& path);

struct SystemThroughput {
  std::string system;
  std::uint32_t gpus;
  std::string job;
  double per_gpu;  ///< samples, images or tokens a second
};

/// Lambda's benchmark: system, num_gpu (or "8xH100" within the name), and a column per model; 0 is
/// not measured. Columns of price, power and batch are passed over.
Result<std::vector<SystemThroughput>> read_system_throughputs(const std::filesystem::path& path);

}  // namespace rehearse::cli
