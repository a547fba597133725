// Writer of MLCommons Chakra execution traces (.et): a program of any source as one file per rank.
#pragma once

#include <cstdint>
#include <filesystem>

#include "sim/base/result.h"
#include "sim/program/program.h"

namespace rehearse::ingest {

struct ChakraWritten {
  std::uint64_t ops = 0;
  std::uint64_t unsized = 0;  ///< collectives of unknown kind or size, and messages without sides
};

/// PREFIX.groups.json, the process groups of PREFIX.<rank>.et.
std::filesystem::path chakra_groups(const std::filesystem::path& prefix);

/// Writes PREFIX.<rank>.et of every rank, and chakra_groups(PREFIX) if there are groups. Their names
/// are numbers from 1 on, because ASTRA-sim takes no others.
///
/// Ops keep their streams (`stream`, `tid`) and durations (`duration_micros`, exact in `duration_ps`).
/// Ops without a resource, and the least distance between two ops of a stream, become metadata that
/// last. `unsized` collectives become barriers with their duration. Fails on services and on streams
/// that run several ops at once, for which traces have no form. If a file cannot be written, those
/// written before it are removed.
Result<ChakraWritten> write_chakra(const program::Program& program,
                                   const std::filesystem::path& prefix);

}  // namespace rehearse::ingest
