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

/// A step that was requested from the ring.
struct KeptStep {
  std::uint64_t number;
  std::string reason;  ///< for people
  Seconds time;
  double share;    ///< of its bytes, in the file
  bool neighbour;  ///< kept as a neighbour of another step
};

struct ChosenSteps {
  std::optional<StepCounts> counts = {};  ///< absent if all steps were recorded
  std::vector<KeptStep> kept = {};        ///< kept steps of a ring
};

/// Collects it from the blocks of a file as they are read.
class ChosenStepsReader {
 public:
  void read(const Block& block);
  const ChosenSteps& steps() const { return steps_; }

 private:
  ChosenSteps steps_;
  RecordsBlock records_;
  std::unordered_map<std::uint64_t, std::string> texts_;
};

/// Adds the counts of one process to the total.
void add_counts(std::optional<StepCounts>& all, const std::optional<StepCounts>& one);

}  // namespace rehearse::capture
