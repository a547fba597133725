#include <algorithm>
#include <cstdint>

#include "models/job/lower_parts.h"

namespace rehearse::job {

using program::ProgramOp, program::RankProgram, program::Task;

namespace {

/// Calls `visit(op, dependency)` for each dependency that an op always waits for, on an earlier op.
template <class Visit>
void for_each_dependency(const RankProgram& program, std::uint32_t op, const Visit& visit) {
  if (program.ops[op].need > 0) return;
  for (std::uint32_t d = program.first_dependency[op]; d < program.first_dependency[op + 1]; ++d)
    if (program.dependencies[d] < op) visit(program.dependencies[d]);
}

}  // namespace

std::vector<char> may_overlap(const RankProgram& program) {
  const auto size = static_cast<std::uint32_t>(program.ops.size());
  const auto computes = [&](std::uint32_t op) { return program.ops[op].task == Task::kCompute; };
  // Compute ops are numbered as they follow each other in the program.
  std::vector<std::uint32_t> number(size + 1, 0);
  for (std::uint32_t op = 0; op < size; ++op) number[op + 1] = number[op] + (computes(op) ? 1 : 0);
  const std::uint32_t all = number[size];

  // All compute ops below `before[op]` end before it, and all from `after[op]` on start after it.
  std::vector<std::uint32_t> before(size, 0), after(size, all);
  for (std::uint32_t op = 0; op < size; ++op)
    for_each_dependency(program, op, [&](std::uint32_t on) {
      const bool next = computes(on) && number[on] <= before[on];
      before[op] = std::max(before[op], next ? number[on] + 1 : before[on]);
    });
  for (std::uint32_t op = size; op-- > 0;)
    for_each_dependency(program, op, [&](std::uint32_t on) {
      const bool previous = computes(op) && number[op] + 1 >= after[op];
      after[on] = std::min(after[on], previous ? number[op] : after[op]);
    });

  std::vector<char> result(size, 0);
  std::vector<std::int32_t> change(all + 1, 0);  // of the number of collectives at a compute op
  for (std::uint32_t op = 0; op < size; ++op) {
    if (program.ops[op].task != Task::kCollective || before[op] >= after[op]) continue;
    result[op] = 1;
    ++change[before[op]];
    --change[after[op]];
  }
  std::int32_t collectives = 0;
  for (std::uint32_t op = 0; op < size; ++op)
    if (computes(op)) result[op] = (collectives += change[number[op]]) > 0 ? 1 : 0;
  return result;
}

}  // namespace rehearse::job
