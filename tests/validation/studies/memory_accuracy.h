// How well the memory model predicts measured and published memory of training jobs: states,
// activations and peaks by part, and whether jobs that ran are said to fit.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/memory/memory.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cli {

struct MemoryRow {
  std::string name;
  Estimate<Bytes> predicted;
  Bytes measured;

  double error() const { return predicted.value / measured - 1; }
  bool covered() const { return measured >= predicted.low && measured <= predicted.high; }
};

struct MemoryCase {
  std::string name;
  std::string about;       ///< what was predicted, and what the constants come from
  bool blind = true;       ///< none of its rows gave a constant
  bool intervals = false;  ///< the predictions have some
  std::vector<MemoryRow> rows = {};
};

/// Jobs that ran: each has to fit.
struct FitCheck {
  std::string name;
  std::size_t rows = 0, fits = 0, borderline = 0;
  std::vector<std::string> wrong = {};  ///< "does not fit", with its peak
  double largest_share = 0;             ///< of what is usable
  double median_share = 0;
};

struct MemoryAccuracy {
  std::vector<MemoryCase> cases = {};
  std::vector<FitCheck> fits = {};
  std::vector<std::string> refused = {};  ///< what was not predicted, and why
};

/// Tables that are not below `data` are passed over. Fails on those that cannot be read.
Result<MemoryAccuracy> measure_memory_accuracy(const std::filesystem::path& data);

}  // namespace rehearse::cli
