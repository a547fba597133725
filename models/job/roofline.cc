#include "models/job/roofline.h"

#include <algorithm>

namespace rehearse::job {
namespace {

using graph::Task;

bool lacks_duration(const graph::ProgramOp& op) {
  return !op.duration && (op.task == Task::kCompute || op.task == Task::kMemory);
}

}  // namespace

double set_durations(graph::Job& job, const Device& device) {
  double set = 0, all = 0;  // seconds
  for (graph::Program& program : job.programs)
    for (graph::ProgramOp& op : program.ops) {
      if (op.task != Task::kCompute && op.task != Task::kMemory) continue;
      if (lacks_duration(op)) {
        constexpr Seconds kLongest = Seconds::s(86400);  // beyond a day the numbers are damage
        op.duration = Picoseconds::from(
            std::min(kLongest, std::max(op.flops / device.peak, op.bytes / device.memory)));
        set += op.duration->seconds().s();
      }
      all += op.duration->seconds().s();
    }
  return all > 0 ? set / all : 0;
}

bool lacks_durations(const graph::Job& job) {
  return std::any_of(job.programs.begin(), job.programs.end(), [](const graph::Program& program) {
    return std::any_of(program.ops.begin(), program.ops.end(), lacks_duration);
  });
}

}  // namespace rehearse::job
