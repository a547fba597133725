// Division of a recorded step by tensor parallelism, by the rule of Megatron-LM (Shoeybi et al.,
// arXiv 1909.08053): of two consecutive linears, the first by its outputs, the second by its
// inputs; the ops between them, including attention, are divided with them. So are two consecutive
// products of experts.
#pragma once

#include <vector>

#include "models/workload/lift_ops.h"

namespace rehearse::workload::lifting {

enum class Share {
  kWhole,    ///< every rank computes all of it
  kColumn,   ///< a linear divided by its outputs
  kRow,      ///< a linear divided by its inputs, or a table by its rows
  kBetween,  ///< between the two linears
};

struct Shares {
  std::vector<Share> of_unit;    ///< by forward unit
  std::vector<char> of_experts;  ///< by forward unit: whether it belongs to divided experts
  double heads = 0;              ///< heads of the divided attention; 0 without
  double columns = 0;            ///< fewest outputs of a divided linear; 0 where none is
};

Shares find_shares(const StepUnits& step, const OpMaker& maker);

/// Every rank computes whole experts.
void leave_experts_whole(Shares& shares);

/// Sets `tensor` of an op of a unit of any phase, and `expert` of those between products of experts.
void tag(Op& op, const Unit& unit, const StepUnits& step, const Shares& shares,
         const OpMaker& maker);

}  // namespace rehearse::workload::lifting
