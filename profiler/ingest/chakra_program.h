// Reader of one Chakra execution trace (.et) as a program: the ops of a rank in issue order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/ingest/byte_source.h"
#include "sim/base/progress.h"
#include "sim/program/program.h"

namespace rehearse::ingest {

/// The ops of one file. Groups are numbered by their names in the file, and peers by first use.
/// Bytes are as in the file.
struct ChakraProgram {
  program::RankProgram program;
  std::vector<std::string> groups;  ///< names, by the number that the program uses
  /// By the same number: the dimensions of the network that a group without a name spans
  /// (involved_dim), fastest first. Empty: all of them.
  std::vector<std::vector<bool>> involved;
  std::vector<std::uint32_t> peers;  ///< ranks, by the number that the program uses
  std::vector<std::uint64_t> ids;    ///< of the ops, as in the file
  std::uint64_t without_length = 0;  ///< compute ops with neither duration nor work
};

/// Reads one file; `name` is its name in messages. Ops are in issue order: an op follows all its
/// dependencies, and the lowest id among the ready ops comes first. Fails on damaged, unknown or
/// contradictory contents, because the simulation would be of another job. If collectives are
/// `timed`, they keep their durations, and it fails on those without one and on sends.
Result<ChakraProgram> read_chakra_program(ByteSource& source, const std::string& name, bool timed,
                                          NamePool& names, const Progress& progress = {});

}  // namespace rehearse::ingest
