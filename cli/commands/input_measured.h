// `rehearse input --measure`: measures the loading of a folder's files, and writes it as an input
// pipeline.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/output/document.h"
#include "models/input/pipeline.h"
#include "profiler/loading/measure.h"

namespace rehearse::cli {

/// The measured pipeline as a file: one stage that reads and decodes a file, with a worker per
/// core. It includes cold reads (not served from memory) if they could be measured.
std::string pipeline_text(const loading::Measured& measured, const std::filesystem::path& folder);

/// The stage with this number of workers, its files in memory or not.
input::Pipeline with_workers(const input::Pipeline& pipeline, std::uint32_t workers,
                             bool in_memory);

struct PredictedRate {
  std::uint32_t workers;
  Estimate<double> in_memory;                 ///< files per second
  std::optional<Estimate<double>> cold = {};  ///< absent if cold reads were not measured
};
/// Predicts the rates with 1, 2, 4 … workers, up to the number of hardware threads here, which is
/// included.
Result<std::vector<PredictedRate>> predicted_rates(const input::Pipeline& pipeline,
                                                   const loading::Cores& cores);

/// Adds `measured` and `predictions` (the predicted rate per number of workers).
void add_measured(const loading::Measured& measured, const std::vector<PredictedRate>& rates,
                  Document& document);

}  // namespace rehearse::cli
