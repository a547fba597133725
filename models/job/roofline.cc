#include "models/job/roofline.h"

#include <algorithm>

#include "sim/program/occupancy.h"

namespace rehearse::job {

using program::Program;
using program::ProgramOp;

namespace {

using program::Task;

bool lacks_duration(const program::ProgramOp& op) {
  return !op.duration && (op.task == Task::kCompute || op.task == Task::kMemory);
}

}  // namespace

double set_durations(program::Program& job, const Device& device) {
  double set = 0, all = 0;  // seconds
  for (program::RankProgram& program : job.programs)
    for (program::ProgramOp& op : program.ops) {
      if (op.task != Task::kCompute && op.task != Task::kMemory) continue;
      if (lacks_duration(op)) {
        constexpr Seconds kLongest = Seconds::s(86400);  // beyond a day the numbers are damage
        op.duration = Picoseconds::from(
            std::min(kLongest, std::max(op.flops / device.peak, op.bytes / device.memory)));
        op.provenance = Provenance::kDatasheet;
        set += op.duration->seconds().s();
      }
      all += op.duration->seconds().s();
    }
  return all > 0 ? set / all : 0;
}

bool lacks_durations(const program::Program& job) {
  return std::ranges::any_of(job.programs, [](const program::RankProgram& program) {
    return std::ranges::any_of(program.ops, lacks_duration);
  });
}

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

Estimate<Seconds> on_datasheet_links(Seconds time) {
  return {time, time * kFastestNetwork, time * kSlowestNetwork, Provenance::kDatasheet};
}

Estimate<Seconds> with_slow_kernels(Estimate<Seconds> step, const program::Occupancy& last,
                                    double by_roofline) {
  step.high = step.high + (last.compute + last.memory) * (by_roofline * (1 / kLeastOfPeak - 1));
  if (by_roofline > 0) step.provenance = Provenance::kDatasheet;
  return step;
}

}  // namespace rehearse::job
