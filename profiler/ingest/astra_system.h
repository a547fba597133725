// Reader of ASTRA-sim's system file (JSON): the splitting and order of collectives, and the
// duration of compute nodes that do not give one. docs/formats/astra-sim.md lists the supported
// keys.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::ingest {

/// How ASTRA-sim runs a collective over the dimensions of its network.
struct AstraCollectives {
  std::uint32_t splits = 1;  ///< parts of a collective, which follow each other through its phases
  /// If set, an all_reduce scatters along each dimension but the last and gathers on the way back,
  /// so that later dimensions carry less (localBWAware). Else it reduces along each dimension
  /// (baseline).
  bool scatters_first = false;
  /// One ring over all dimensions, without phases (oneRing).
  bool one_ring = false;
};

struct AstraSystem {
  AstraCollectives collectives = {};
  Seconds endpoint_delay = Seconds::s(0);  ///< added to every message
  /// The algorithm of each kind along a dimension, by Rehearse's name: "ring", "halving_doubling",
  /// "tree"; for all_to_all, "pairwise" or "linear".
  std::string reduction = "ring", exchange = "pairwise";
  bool last_first = false;  ///< scheduling-policy LIFO
  /// Both are set if roofline-enabled is 1.
  std::optional<FlopRate> peak = {};
  std::optional<ByteRate> memory = {};
};

/// Fails with every mistake in the file, one line each; unsupported settings are rejected by name.
Result<AstraSystem> load_astra_system(const std::filesystem::path& path);
Result<AstraSystem> parse_astra_system(const std::string& text, std::string name);

}  // namespace rehearse::ingest
