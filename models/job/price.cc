#include "models/job/price.h"

namespace rehearse::job {

using program::Program;
using program::ProgramOp;

Result<std::size_t> price(Program& program, const comm::CollectiveTime& time_of) {
  std::size_t priced = 0;
  for (std::uint32_t r = 0; r < program.ranks(); ++r)
    for (ProgramOp& op : program.programs[program.program_of[r]].ops) {
      if (op.task != program::Task::kCollective || !op.sized) continue;
      const Program::Group& group = program.groups[program.groups_of[r][op.group]];
      const Seconds time = TRY(time_of(op.collective, group.ranks(), op.bytes));
      constexpr double kLongest = 86400;  // a collective of more than a day is wrong input
      if (!(time.s() < kLongest)) return fail("a collective would last " + to_string(time));
      op.duration = Picoseconds::from(time);
      ++priced;
    }
  return priced;
}

}  // namespace rehearse::job
