#include "sim/program/order.h"

#include <algorithm>
#include <optional>

namespace rehearse::program {

std::vector<Order> order_of_groups(const RankProgram& program) {
  std::vector<Order> order;
  std::vector<std::optional<std::uint32_t>> last;  // by group
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const ProgramOp& op = program.ops[i];
    if (op.task != Task::kCollective || op.stream != kStreamOfTask) continue;
    if (op.group >= last.size()) last.resize(op.group + 1);
    const auto begin = program.dependencies.begin();
    const auto end = begin + program.first_dependency[i + 1];
    if (last[op.group] &&
        std::find(begin + program.first_dependency[i], end, *last[op.group]) == end)
      order.emplace_back(i, *last[op.group]);
    last[op.group] = i;
  }
  return order;
}

}  // namespace rehearse::program
