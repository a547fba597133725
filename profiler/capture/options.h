// Options: the launcher's settings of the injected library, as words of an environment variable.
#pragma once

#include <cstdint>

namespace rehearse::capture {

inline constexpr char kOptionsVariable[] = "REHEARSE_CAPTURE_OPTIONS";

/// The variable contains words separated by spaces: "graph=launch memory power=20".
struct Options {
  /// How CUDA graphs are recorded: "graph=node" (each kernel) or "graph=launch" (each launch as a
  /// whole, which costs the program far less).
  enum class Graph : std::uint8_t { kNode, kLaunch };

  bool device = true;  ///< "device=off": nothing of CUDA is recorded
  Graph graph = Graph::kNode;
  bool memory = false;           ///< "memory": device allocations and frees
  bool jit = false;              ///< "jit": compilations while the program runs
  bool channels = false;         ///< "channels": NCCL's kernels channel by channel
  double power = 10;             ///< "power=20": readings per second of the board's power; 0 none
  std::uint64_t first_step = 0;  ///< "steps=10:20": the steps that are recorded, from the
  std::uint64_t end_step = UINT64_MAX;  ///< first to the one before the last
  std::uint64_t ring = 0;  ///< "ring=67108864": bytes kept in memory; 0 all goes to the file
  char trigger[64] = "";  ///< "trigger=step_time>p99": which steps of it go to the file (trigger.h)
};

/// Parses the words. An unknown word is reported on stderr and has no effect.
Options parse_options(const char* words);

/// The options of this process, parsed once.
const Options& options();

}  // namespace rehearse::capture
