#include "models/job/roofline.h"

#include <algorithm>

namespace rehearse::job {
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

}  // namespace rehearse::job
