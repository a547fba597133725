#include "models/input/ends.h"

#include "sim/base/check.h"

namespace rehearse::input {

program::ProgramOp instant(NameId name) {
  return {.name = name,
          .task = program::Task::kInput,
          .duration = Picoseconds(0),
          .stream = program::kNoStream};
}

void Ends::cover(std::size_t from, RankBuilder& builder, NameId name) {
  if (from <= covered_) return;
  std::vector<OpIndex> all(at(covered_), at(from));
  if (older_) all.push_back(*older_);
  older_ = builder.add(instant(name), all);
  covered_ = from;
}

void Ends::wait_for(std::size_t count, Reach reach, RankBuilder& builder, NameId name,
                    std::vector<OpIndex>& after) {
  REHEARSE_CHECK(reach.from < count && count <= reach.to && reach.to <= ends_.size());
  cover(count == reach.to ? count : reach.from, builder, name);
  if (older_) after.push_back(*older_);
  if (count <= covered_) return;
  program::ProgramOp enough = instant(name);
  enough.need = static_cast<std::uint32_t>(count - covered_);
  after.push_back(builder.add(enough, {at(covered_), at(reach.to)}));
}

void InHand::before_next(RankBuilder& builder, NameId name, std::vector<OpIndex>& after) {
  const std::size_t next = ends_.size();
  if (next < most_) return;
  if (most_ == 1) {
    after.push_back(ends_.last());
    return;
  }
  const std::size_t reach = std::size_t{kReach} * most_;
  const std::size_t from = next > reach ? next - reach : 0;
  ends_.wait_for(next - most_ + 1, {from, next}, builder, name, after);
}

}  // namespace rehearse::input
