// `rehearse input --measure`: measures the loading of a folder's files, and writes it as an input
// pipeline.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/output/document.h"
#include "models/input/pipeline.h"
#include "models/input/simulate.h"
#include "profiler/loading/measure.h"

namespace rehearse::cli {

/// The pipeline as a file: one stage with a worker for each core, which reads a file and decodes
/// it. Reads that memory does not serve are in it where they could be measured.
std::string pipeline_text(const loading::Measured& measured, const std::filesystem::path& folder);

/// The stage with so many workers, its files in memory or not.
input::Pipeline with_workers(const input::Pipeline& pipeline, std::uint32_t workers,
                             bool in_memory);

struct PredictedRate {
  std::uint32_t workers;
  Estimate<double> in_memory;                 ///< files a second
  std::optional<Estimate<double>> cold = {};  ///< where cold reads were measured
};
/// For 1, 2, 4 … workers, to the threads of the cores here and these themselves.
Result<std::vector<PredictedRate>> predicted_rates(const input::Pipeline& pipeline,
                                                   const loading::Cores& cores);

/// `measured` and `predictions`: what was measured, and what follows for numbers of workers.
void add_measured(const loading::Measured& measured, const std::vector<PredictedRate>& rates,
                  Document& document);

}  // namespace rehearse::cli
