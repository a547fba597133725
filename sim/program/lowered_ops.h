// LoweredOps: the data of a program's run that attribution needs.
#pragma once

#include <vector>

#include "sim/graph/timeline.h"
#include "sim/program/attribution.h"
#include "sim/program/lowered.h"

namespace rehearse::program {

class LoweredOps : public RunOps {
 public:
  /// The intervals are those of the run, for computing, and for communication and copies whose
  /// origin has none of its own. REQUIRES: the first three outlive this object.
  LoweredOps(const Program& program, const Lowered& lowered, const graph::Timeline& timeline,
             Interval computing = {}, Interval links = {});

  std::uint32_t ranks() const override;
  std::vector<OpId> of_rank(std::uint32_t rank) const override;
  std::optional<std::uint32_t> rank(OpId op) const override;
  bool on_device(OpId op) const override;
  bool unexplained(OpId op) const override;
  std::optional<OpId> cause(OpId op) const override { return timeline_[op].cause; }
  Purpose purpose(OpId op) const override;

  std::vector<PathShare> shares(OpId op) const override;
  std::uint64_t alike(OpId op) const override;
  std::optional<Picoseconds> alone(OpId op) const override;
  PathShare slowed(OpId op) const override;

 protected:
  struct Made {
    std::uint32_t run, program, index;
    const ProgramOp* op;
  };
  /// The provenance of a share of an op: the worse of both.
  virtual Provenance provenance_of(const Made& made, Provenance share) const;
  /// Whether the rank has no device, so that the work of its host counts as compute.
  virtual bool without_device(std::uint32_t /*run*/) const { return false; }

 private:
  /// Nothing for messages and their receipt, and for ops that several ranks wait for.
  std::optional<Made> made(OpId op) const;
  PathShare plain(OpId op, const std::optional<Made>& made) const;

  const Program& program_;
  const Lowered& lowered_;
  const graph::Timeline& timeline_;
  const Interval computing_, links_;
  std::vector<Purpose> purposes_;  // by origin
};

}  // namespace rehearse::program
