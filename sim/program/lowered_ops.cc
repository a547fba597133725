#include "sim/program/lowered_ops.h"

#include <algorithm>

namespace rehearse::program {

std::optional<LoweredOps::Made> LoweredOps::made(OpId op) const {
  const auto place = lowered_.place_of(op);
  if (!place) return std::nullopt;
  const std::uint32_t program = program_.program_of[lowered_.ranks[place->run].index()];
  const ProgramOp& made = program_.programs[program].ops[place->op];
  if (made.task == Task::kReceive) return std::nullopt;
  return Made{place->run, program, place->op, &made};
}

std::uint32_t LoweredOps::ranks() const {
  return static_cast<std::uint32_t>(lowered_.ranks.size());
}

std::vector<OpId> LoweredOps::of_rank(std::uint32_t rank) const {
  const OpId begin(lowered_.first_op[rank]), end(lowered_.first_op[rank + 1]);
  std::vector<OpId> ops;
  ops.reserve(end.index() - begin.index());
  auto arrival = std::lower_bound(lowered_.arrivals.begin(), lowered_.arrivals.end(), begin);
  for (std::uint32_t i = begin.index(); i < end.index(); ++i) {
    const OpId op(i);
    if (arrival != lowered_.arrivals.end() && *arrival == op) {
      const auto number = static_cast<std::uint32_t>(arrival++ - lowered_.arrivals.begin());
      ops.emplace_back(lowered_.first_op.back() + number);
    }
    ops.push_back(op);
  }
  return ops;
}

std::optional<std::uint32_t> LoweredOps::rank(OpId op) const {
  const std::optional<Made> made = this->made(op);
  return made ? std::optional(made->run) : std::nullopt;
}

bool LoweredOps::on_device(OpId op) const {
  const std::optional<Made> made = this->made(op);
  if (!made) return false;
  switch (made->op->task) {
    case Task::kCompute:
    case Task::kMemory:
    case Task::kCollective:
    case Task::kSend:
      break;
    default:
      return false;
  }
  const std::uint32_t stream = made->op->stream;
  return stream >= kNoStream ||
         program_.programs[made->program].streams[stream].kind == Stream::Kind::kDevice;
}

bool LoweredOps::unexplained(OpId op) const {
  const std::optional<Made> made = this->made(op);
  if (!made) return false;
  const std::vector<Recorded>& recorded = program_.programs[made->program].recorded;
  return !recorded.empty() && recorded[made->index].kind == Recorded::Kind::kUnexplained;
}

}  // namespace rehearse::program
