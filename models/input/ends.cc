#include "models/input/ends.h"

#include "sim/base/check.h"

namespace rehearse::input {
namespace {

OpId add_instant(graph::GraphBuilder& builder, NameId name) {
  return builder.add(
      graph::Op{.name = name, .category = graph::Category::kInput, .duration = Picoseconds(0)});
}

}  // namespace

void Ends::cover(std::size_t from, graph::GraphBuilder& builder, NameId name) {
  if (from <= covered_) return;
  const OpId all = add_instant(builder, name);
  for (std::size_t i = covered_; i < from; ++i) builder.add_edge(ends_[i], all);
  if (older_) builder.add_edge(*older_, all);
  older_ = all;
  covered_ = from;
}

void Ends::wait_for(std::size_t count, Reach reach, graph::GraphBuilder& builder, NameId name,
                    std::vector<OpId>& after) {
  REHEARSE_CHECK(reach.from < count && count <= reach.to && reach.to <= ends_.size());
  cover(count == reach.to ? count : reach.from, builder, name);
  if (older_) after.push_back(*older_);
  if (count <= covered_) return;
  const OpId enough = add_instant(builder, name);
  for (std::size_t i = covered_; i < reach.to; ++i) builder.add_edge(ends_[i], enough);
  builder.wait_for_first(enough, static_cast<std::uint32_t>(count - covered_));
  after.push_back(enough);
}

void InHand::before_next(graph::GraphBuilder& builder, NameId name, std::vector<OpId>& after) {
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
