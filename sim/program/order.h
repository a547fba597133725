// The dependencies of a program's ops.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/program.h"

namespace rehearse::program {

/// The dependencies of a program, and the order of the collectives of one group that name no stream.
struct Order {
  std::vector<std::uint32_t> first = {0};
  std::vector<std::uint32_t> before;
};

/// Under `one_stream` collectives wait for their dependencies alone.
Order order_of(const RankProgram& program, bool one_stream);

}  // namespace rehearse::program
