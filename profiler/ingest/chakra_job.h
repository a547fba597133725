// Reader of a job: the Chakra execution traces (.et) of all its ranks, as programs to be run on a
// cluster. chakra.h reads the same files as recordings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "profiler/ingest/astra_system.h"
#include "profiler/ingest/comm_groups.h"
#include "sim/base/progress.h"
#include "sim/program/program.h"

namespace rehearse::ingest {

struct ChakraFiles {
  std::filesystem::path prefix;
  std::optional<std::uint32_t> ranks = {};  ///< absent: as many as there are files
  CommGroups groups = {};
  /// Sizes of the dimensions that involved_dim refers to. The first is the one along which ranks
  /// are consecutive: rank = i0 + size0 × (i1 + size1 × …). Empty: unknown.
  std::vector<std::uint32_t> dimensions = {};
  /// ASTRA-sim's rules for collectives, if its system file is given.
  std::optional<AstraCollectives> astra = {};
  /// Collectives keep their durations, counted from the arrival of their last member.
  bool timed = false;
};

struct ChakraJob {
  program::Program job;
  std::vector<std::string> files;    ///< one, or one per rank
  std::uint64_t without_length = 0;  ///< over all files
};

/// PREFIX.<rank>.et of every rank, or PREFIX.et for all of them, or the file PREFIX itself; each
/// may be gzip, with or without .gz at the end of its name.
///
/// A collective's bytes are what one rank puts in, so that an all_gather of n ranks is n times as
/// large (ASTRA-sim's reading; docs/concepts/collectives.md counts the whole). A collective without
/// a group, or of group "0" where no group goes by that name, is of all ranks. One with an
/// `involved_dim` is of the ranks that differ from each other along these dimensions alone.
Result<ChakraJob> read_chakra_job(const ChakraFiles& files, const Progress& progress = {});

}  // namespace rehearse::ingest
