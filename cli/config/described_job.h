// A job that options describe instead of a file: --model llama3_70b --gpus 64 --plan tp8,pp4.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/config/job_file.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Empty where an option is not given.
struct DescribedJob {
  std::string model;   ///< a name of the zoo, or the path of a Hugging Face configuration (.json)
  std::string device;  ///< a GPU or an instance of the catalog
  std::optional<std::uint32_t> gpus;
  std::string plan;  ///< "tp8,pp4,schedule=zero_bubble"
  std::optional<double> batch;
  std::optional<std::uint64_t> sequence;
  std::filesystem::path save;
};

/// The data-parallel degree with which a plan uses all GPUs if its other degrees multiply to `ranks`.
/// Fails with the key if there is none.
Result<std::uint64_t> data_degree(std::string key, std::uint64_t gpus, std::uint64_t ranks);

/// The text of a job file of this job. For one plan, the data-parallel degree is what the other
/// degrees leave of the GPUs, unless it is given. Fails on unknown names, and if the GPUs are not a
/// multiple of the degrees or of a node.
/// REQUIRES: model and batch are given, and except for kRent device and GPUs.
Result<std::string> job_text(const DescribedJob& job, JobUse use);

}  // namespace rehearse::cli
