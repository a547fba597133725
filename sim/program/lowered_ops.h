// LoweredOps: the data of a program's run that attribution needs.
#pragma once

#include <vector>

#include "sim/graph/timeline.h"
#include "sim/program/attribution.h"
#include "sim/program/lowered.h"

namespace rehearse::program {

class LoweredOps : public RunOps {
 public:
  /// REQUIRES: the arguments outlive this object.
  LoweredOps(const Program& program, const Lowered& lowered, const graph::Timeline& timeline)
      : program_(program), lowered_(lowered), timeline_(timeline) {}

  std::uint32_t ranks() const override;
  std::vector<OpId> of_rank(std::uint32_t rank) const override;
  std::optional<std::uint32_t> rank(OpId op) const override;
  bool on_device(OpId op) const override;
  bool unexplained(OpId op) const override;
  std::optional<OpId> cause(OpId op) const override { return timeline_[op].cause; }

 protected:
  struct Made {
    std::uint32_t run, program, index;
    const ProgramOp* op;
  };
  /// Nothing for messages and their receipt, and for ops that several ranks wait for.
  std::optional<Made> made(OpId op) const;
  const Program& of() const { return program_; }
  const Lowered& lowered() const { return lowered_; }

 private:
  const Program& program_;
  const Lowered& lowered_;
  const graph::Timeline& timeline_;
};

}  // namespace rehearse::program
