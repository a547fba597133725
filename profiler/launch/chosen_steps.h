// The selected steps of a capture, for the launcher.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/capture/blocks.h"
#include "sim/base/units.h"

namespace rehearse::capture {

/// A step that the ring was asked for.
struct KeptStep {
  std::uint64_t number;
  std::string reason;  ///< for people
  Seconds time;
  double share;  ///< share of its bytes in the file
  bool beside;   ///< kept as a neighbour of another step
};

struct ChosenSteps {
  std::optional<StepCounts> counts = {};  ///< absent where all steps were recorded
  std::vector<KeptStep> kept = {};        ///< kept steps of a ring
};

/// Takes it from the blocks of a file, as they come by.
class ChosenStepsReader {
 public:
  void read(const Block& block);
  const ChosenSteps& steps() const { return steps_; }

 private:
  ChosenSteps steps_;
  RecordsBlock records_;
  std::unordered_map<std::uint64_t, std::string> texts_;
};

/// Adds the counts of one process to those of all.
void add_counts(std::optional<StepCounts>& all, const std::optional<StepCounts>& one);

}  // namespace rehearse::capture
