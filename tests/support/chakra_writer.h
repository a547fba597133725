// Writes made-up Chakra execution traces for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "sim/program/program.h"

namespace rehearse::test {

/// One op of a trace under construction, in the terms of the schema.
struct ChakraOp {
  std::uint64_t id;
  std::string name;
  int type;  ///< NodeType of the schema
  std::uint64_t duration_us = 0;
  std::vector<std::uint64_t> after = {};
  std::vector<std::pair<std::string, std::int64_t>> numbers = {};  ///< attributes
  std::string group = {};                                          ///< pg_name
  std::vector<bool> involved = {};                                 ///< involved_dim; empty: none
};

/// NodeType of the schema.
inline constexpr int kLoad = 2, kStore = 3, kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7;

std::string chakra_file(const std::vector<ChakraOp>& ops);

/// The program as a file: durations rounded to whole microseconds, groups and peers as given.
std::string chakra_file(const program::RankProgram& program, const NamePool& names,
                        const std::vector<std::string>& groups,
                        const std::vector<std::uint32_t>& peers = {});

/// Writes a file PREFIX.<rank>.et per element, in a new empty folder. Returns the prefix.
std::filesystem::path write_chakra(const std::vector<std::string>& files);

}  // namespace rehearse::test
