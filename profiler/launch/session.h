// The contents of a recording's folder: the reached processes, and the recording of each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "profiler/launch/chosen_steps.h"

namespace rehearse::capture {

/// Counts of records, of a process or of all.
struct Counts {
  std::uint64_t ranges = 0;
  std::uint64_t marks = 0;
  std::uint64_t kernels = 0;
  std::uint64_t copies = 0;  ///< and sets
  std::uint64_t calls = 0;   ///< of the CUDA runtime and driver
  std::uint64_t graphs = 0;  ///< launches of CUDA graphs that are recorded as a whole
  std::uint64_t collectives = 0;
  std::uint64_t lost = 0;

  Counts& operator+=(const Counts& other);
};

/// A process that loaded the capture library.
struct LaunchedProcess {
  std::string name;       ///< HOST-PID
  std::string command;    ///< its arguments, with spaces between
  bool recorded = false;  ///< its capture holds ranges or records of a device
  bool ended = false;     ///< it ended in order, and nothing of its last moments is missing
  bool device = false;    ///< it started the CUDA driver
  Counts counts = {};
  std::uint64_t bytes = 0;  ///< of the capture
  /// Facts of the process, by key: "driver.cuda" → "13.0". Data that could not be
  /// recorded, with the reason, has the key "trouble".
  std::vector<std::pair<std::string, std::string>> facts = {};
  ChosenSteps steps = {};
};

/// The processes that left a greeting in the folder, by name.
std::vector<LaunchedProcess> processes_in(const std::filesystem::path& folder);

}  // namespace rehearse::capture
