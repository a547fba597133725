// The process groups of a recording's program.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "profiler/replay/collectives.h"
#include "sim/program/program.h"

namespace rehearse::replay {

class RecordedGroups {
 public:
  /// REQUIRES: `program` outlives this object.
  explicit RecordedGroups(program::Program& program) : program_(program) {}

  /// The number that the program of `rank` uses for a group with these recorded members; adds the
  /// group if needed. Its name and its number of ranks are those of `op`, one of its collectives on
  /// one of the members.
  std::uint32_t add(std::size_t rank, std::vector<RankId> members, const Recording& recording,
                    const CommunicationOp& op);

 private:
  program::Program& program_;
  /// By name, members and number of ranks.
  std::map<std::tuple<std::string, std::vector<RankId>, std::uint32_t>, std::uint32_t> known_;
};

}  // namespace rehearse::replay
