// Reader of one Chakra execution trace (.et) as a program: the ops of a rank in issue order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/ingest/byte_source.h"
#include "sim/base/progress.h"
#include "sim/program/program.h"

namespace rehearse::ingest {

/// The ops of one file. Groups go by the names in the file, peers by their first use, and bytes are
/// as the file has them.
struct ChakraProgram {
  program::RankProgram program;
  std::vector<std::string> groups;  ///< names, by the number that the program uses
  /// Likewise: the dimensions of the network that a group without a name spans (involved_dim), the
  /// fastest first. Empty: all of them.
  std::vector<std::vector<bool>> involved;
  std::vector<std::uint32_t> peers;  ///< ranks, by the number that the program uses
  std::vector<std::uint64_t> ids;    ///< of the ops, as in the file
  std::uint64_t without_length = 0;  ///< compute ops with neither duration nor work
};

/// Reads one file; `name` is its name in messages. Ops are in issue order: an op follows all its
/// dependencies, and the lowest id among the ready ops comes first. Fails on what is damaged,
/// unknown or contradictory: the simulation would be of another job.
Result<ChakraProgram> read_chakra_program(ByteSource& source, const std::string& name,
                                          NamePool& names, const Progress& progress = {});

}  // namespace rehearse::ingest
