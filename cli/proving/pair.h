// Pair: two programs and the edit that leads from one to the other, as docs/formats/pair.md
// specifies.
#pragma once

#include <filesystem>
#include <regex>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cli {

/// Texts are shell commands, empty if there is none.
struct Pair {
  std::filesystem::path file;
  std::string name;  ///< of its folder
  std::string about;
  std::string needs;    ///< the pair is skipped where this fails
  std::string prepare;  ///< once, before everything else
  std::string baseline, candidate;
  std::string record;   ///< runs the baseline, and writes `recording`
  std::string predict;  ///< arguments of this program
  std::regex step;      ///< its group is a time with a unit
  Seconds limit;        ///< of one command
};

Result<Pair> read_pair(const std::filesystem::path& file);

/// The names of the shipped pairs, sorted.
std::vector<std::string> shipped_pairs();

/// The files of pairs: those given, those in and one level below the folders given, and those of
/// shipped pairs given by name; all that are shipped if none is given. Fails on a path without a
/// pair.
Result<std::vector<std::filesystem::path>> find_pairs(std::span<const std::string> given);

/// The time that an output states: that of the last match of the pair's pattern.
Result<Seconds> stated_step(const Pair& pair, const std::string& output);

}  // namespace rehearse::cli
