// The contents of a recording's folder: the processes that loaded the library, and their
// recordings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
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

/// The selected steps of a capture.
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

/// Counts of records, for one process or for all.
struct Counts {
  std::uint64_t ranges = 0;
  std::uint64_t marks = 0;
  std::uint64_t kernels = 0;
  std::uint64_t copies = 0;  ///< copies and sets
  std::uint64_t calls = 0;   ///< of the CUDA runtime and driver
  std::uint64_t graphs = 0;  ///< launches of CUDA graphs that are recorded as a whole
  std::uint64_t collectives = 0;
  std::uint64_t lost = 0;

  Counts& operator+=(const Counts& other);
};

/// A process that loaded the capture library.
struct LaunchedProcess {
  std::string name;       ///< HOST-PID
  std::string command;    ///< its arguments, separated by spaces
  bool recorded = false;  ///< its capture holds ranges or records of a device
  bool ended = false;     ///< it ended in order, and its last data is complete
  bool device = false;    ///< it initialized the CUDA driver
  Counts counts = {};
  std::uint64_t bytes = 0;  ///< of the capture
  /// Facts of the process, by key: "driver.cuda" → "13.0". The key "trouble" has data that could
  /// not be recorded, with the reason.
  std::vector<std::pair<std::string, std::string>> facts = {};
  ChosenSteps steps = {};
};

/// The processes that created a .hello file in the folder, by name.
std::vector<LaunchedProcess> processes_in(const std::filesystem::path& folder);

}  // namespace rehearse::capture
