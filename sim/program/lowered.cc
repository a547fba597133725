#include "sim/program/lowered.h"

#include <algorithm>

namespace rehearse::program {

std::optional<Lowered::Place> Lowered::place_of(OpId op) const {
  const std::uint32_t at = op.index();
  if (first_op.empty() || at >= first_op.back()) return std::nullopt;
  const auto next = std::upper_bound(first_op.begin(), first_op.end(), at);
  const auto run = static_cast<std::uint32_t>(next - first_op.begin()) - 1;
  return Place{run, at - first_op[run]};
}

}  // namespace rehearse::program
