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

  /// The number in the program of `rank` of a group with these members, which are recorded. Its
  /// name and its number of ranks are those of `op`, a collective of it on one of them.
  std::uint32_t add(std::size_t rank, std::vector<RankId> members, const Recording& recording,
                    const CommunicationOp& op);

 private:
  program::Program& program_;
  /// By name, members and number of ranks.
  std::map<std::tuple<std::string, std::vector<RankId>, std::uint32_t>, std::uint32_t> known_;
};

}  // namespace rehearse::replay
