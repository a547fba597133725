#include "sim/program/order.h"

#include <algorithm>
#include <optional>

namespace rehearse::program {

Order order_of(const RankProgram& program, bool one_stream) {
  Order order;
  order.first.reserve(program.ops.size() + 1);
  std::vector<std::optional<std::uint32_t>> last;  // by group
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const std::size_t begin = order.before.size();
    for (std::uint32_t d = program.first_dependency[i]; d < program.first_dependency[i + 1]; ++d)
      order.before.push_back(program.dependencies[d]);
    const ProgramOp& op = program.ops[i];
    if (op.task == Task::kCollective && op.stream == kStreamOfTask && !one_stream) {
      if (op.group >= last.size()) last.resize(op.group + 1);
      if (last[op.group] && std::find(order.before.begin() + static_cast<std::ptrdiff_t>(begin),
                                      order.before.end(), *last[op.group]) == order.before.end())
        order.before.push_back(*last[op.group]);
      last[op.group] = i;
    }
    order.first.push_back(static_cast<std::uint32_t>(order.before.size()));
  }
  return order;
}

}  // namespace rehearse::program
