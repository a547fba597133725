// The parts of lowering a job that lower.cc puts together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "models/job/group_network.h"
#include "models/job/link_paths.h"
#include "models/job/lower.h"
#include "sim/base/result.h"
#include "sim/graph/graph.h"
#include "sim/program/program.h"

namespace rehearse::job {

// --- Matching: which ops of different ranks belong together.
//
// Collectives are matched by process group and order of issue, sends and receives by both ranks,
// tag and order.

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

// --- Bottleneck links: link loads by closed form, if all ranks of a stage do the same.

class BottleneckLinks {
 public:
  /// REQUIRES: all outlive this object; rank r runs on device r.
  BottleneckLinks(const program::Program& job, Schedules& schedules, LinkPaths& paths);

  /// The time that the bottleneck link needs for a collective of this group, together with those of
  /// all groups that the stage of its first member has under the same number.
  Result<BottleneckTime> of_collective(std::uint32_t group, CollectiveKind kind);

  /// By op of a program, for sends: the time that the bottleneck link needs for the sends that all
  /// ranks of the stage issue at the same time.
  std::vector<BottleneckTime> of_sends(std::uint32_t program);

 private:
  /// The ranks of a program's stage. Computed on first use: the message fidelity never needs them.
  const std::vector<RankId>& ranks_of_stage(std::uint32_t program);

  const program::Program& job_;
  Schedules& schedules_;
  LinkPaths& paths_;
  std::optional<std::vector<std::vector<RankId>>> ranks_;  ///< by program, of its stage
  std::map<std::tuple<std::uint32_t, std::uint32_t, CollectiveKind>, BottleneckTime> known_;
};

// --- Which ops of a rank may run while it communicates.

/// By op of the program: whether a compute op and a collective may run at the same time. The other
/// ops are always before or after all those that they could affect, whatever the durations. The
/// dependencies within the program decide: a sequence that only follows from other ranks or from
/// resources is not seen, and such ops are said to overlap.
std::vector<char> may_overlap(const program::RankProgram& program);

}  // namespace rehearse::job
