#include "sim/program/lowered.h"

#include <algorithm>

namespace rehearse::program {

std::optional<Lowered::Place> Lowered::place_of(OpId op) const {
  if (first_op.empty() || op.index() < first_op.front()) return std::nullopt;
  std::uint32_t at = op.index();
  if (at >= first_op.back()) {
    const std::size_t arrival = at - first_op.back();
    if (arrival >= arrivals.size()) return std::nullopt;
    at = arrivals[arrival].index();
  }
  const auto next = std::ranges::upper_bound(first_op, at);
  const auto run = static_cast<std::uint32_t>(next - first_op.begin()) - 1;
  return Place{run, at - first_op[run]};
}

OpId Lowered::start_of(OpId op) const {
  const auto arrival = std::ranges::lower_bound(arrivals, op);
  if (arrival == arrivals.end() || *arrival != op) return op;
  return OpId(first_op.back() + static_cast<std::uint32_t>(arrival - arrivals.begin()));
}

}  // namespace rehearse::program
