// Latencies of inference servers, compared with published runs.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "cli/validation/judged.h"
#include "sim/base/result.h"

namespace rehearse::cli {

struct ServingAccuracy {
  Judgement judgement;
  /// By case: the median error of taking each row from the measured one of the same server, model,
  /// plan and lengths whose number of requests in flight is nearest.
  std::map<std::string, double> neighbour;
};

/// Without cases if the folder has no such runs.
Result<ServingAccuracy> measure_serving_accuracy(const std::filesystem::path& data);

/// As Markdown.
std::string serving_section(const ServingAccuracy& found);

}  // namespace rehearse::cli
