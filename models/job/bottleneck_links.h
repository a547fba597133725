// Bottleneck links: link loads by closed form, if all ranks of a stage do the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "models/job/group_network.h"
#include "models/job/link_paths.h"
#include "sim/base/result.h"
#include "sim/program/program.h"

namespace rehearse::job {

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

}  // namespace rehearse::job
