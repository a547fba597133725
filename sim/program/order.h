// The order of the collectives of one group.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/program/program.h"

namespace rehearse::program {

/// An op, and another op that must end before it.
using Order = std::pair<std::uint32_t, std::uint32_t>;

/// The order of issue beyond the dependencies: a collective that names no stream follows the
/// previous one in its group. In ascending order of ops.
std::vector<Order> order_of_groups(const RankProgram& program);

}  // namespace rehearse::program
