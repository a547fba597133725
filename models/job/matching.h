// Matching: which ops of different ranks belong together.
//
// Collectives are matched by process group and order of issue, sends and receives by both ranks,
// tag and order.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "models/job/lower.h"
#include "sim/graph/graph.h"
#include "sim/program/program.h"

namespace rehearse::job {

class Matching {
 public:
  /// REQUIRES: `job` outlives this object.
  explicit Matching(const program::Program& job) : job_(job), instances_(job.groups.size()) {}

  /// The `index`-th collective of a group, seen by one rank. Fails where others saw another one.
  Status add_collective(std::uint32_t group, std::uint32_t index, const program::ProgramOp& op,
                        RankId rank, OpId id);
  void add_send(RankId rank, const program::ProgramOp& op, OpId id);
  void add_receive(RankId rank, const program::ProgramOp& op, OpId id);

  std::vector<Collective>& collectives() { return collectives_; }

  /// Checks that all members reach each collective, and puts them in the order of the group;
  /// `first_op` as in LoweredJob.
  Status check_members(std::span<const std::uint32_t> first_op);
  /// The edges from each send to its receive. Call once.
  Result<std::vector<graph::Edge>> messages();

 private:
  using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  /// One end of a message, by sender, receiver and tag.
  struct End {
    Channel channel;
    OpId op;
    Bytes bytes;
  };

  tl::unexpected<Error> missing(std::uint32_t group, std::uint32_t index,
                                std::span<const std::uint32_t> first_op) const;
  tl::unexpected<Error> uneven(const Channel& channel) const;

  const program::Program& job_;
  std::vector<Collective> collectives_;
  std::vector<RankId> first_ranks_;                    // by collective: the rank that came first
  std::vector<std::vector<std::uint32_t>> instances_;  // by group: in collectives_
  std::vector<End> sends_, receives_;
};

}  // namespace rehearse::job
