// RankBuilder: writes the program of a rank, or rewrites it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/program/program.h"

namespace rehearse::program {

class RankBuilder {
 public:
  RankBuilder() = default;
  /// Starts from a program, whose ops and streams keep their numbers.
  explicit RankBuilder(RankProgram program) : program_(std::move(program)) {}

  /// Returns the number of the added item.
  std::uint32_t add(Stream stream);
  std::uint32_t add(const ProgramOp& op);
  /// REQUIRES: all ops have a record.
  std::uint32_t add(const ProgramOp& op, Recorded recorded);
  /// `op` starts when `before` has ended.
  void depend(std::uint32_t op, std::uint32_t before) { added_.emplace_back(op, before); }

  ProgramOp& op(std::uint32_t number) { return program_.ops[number]; }
  const RankProgram& so_far() const { return program_; }  ///< with the dependencies started from

  RankProgram build() &&;

 private:
  RankProgram program_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> added_;
};

}  // namespace rehearse::program
