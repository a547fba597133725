// RankBuilder: writes the program of a rank, or rewrites it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "sim/program/program.h"

namespace rehearse::program {

/// Appends an op that waits for `after`, in any order, where ops may be repeated. Returns its
/// number.
OpIndex append(RankProgram& program, const ProgramOp& op, std::span<const OpIndex> after);

/// Removes the dependencies of an op on one before it for which `gone` holds.
void erase_dependencies(RankProgram& program,
                        const std::function<bool(OpIndex op, OpIndex before)>& gone);

class RankBuilder {
 public:
  RankBuilder() = default;
  /// Starts from a program, whose ops and streams keep their numbers.
  explicit RankBuilder(RankProgram program) : program_(std::move(program)) {}

  void reserve(std::size_t ops) { program_.ops.reserve(ops); }
  /// Returns the number of the added item.
  std::uint32_t add(Stream stream);
  std::uint32_t add(Pool pool);
  std::uint32_t add(const ProgramOp& op);
  OpIndex add(const ProgramOp& op, std::span<const OpIndex> after) {
    return append(program_, op, after);
  }
  OpIndex add(const ProgramOp& op, std::initializer_list<OpIndex> after) {
    return append(program_, op, {after.begin(), after.size()});
  }
  /// REQUIRES: all ops have a record.
  std::uint32_t add(const ProgramOp& op, Recorded recorded);
  /// `op` starts when `before` has ended.
  void depend(std::uint32_t op, std::uint32_t before) { added_.emplace_back(op, before); }

  void set_work(OpIndex op, double work);

  ProgramOp& op(std::uint32_t number) { return program_.ops[number]; }
  const RankProgram& so_far() const { return program_; }  ///< with the dependencies started from

  RankProgram build() &&;

 private:
  RankProgram program_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> added_;
};

}  // namespace rehearse::program
