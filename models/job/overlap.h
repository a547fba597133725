// Which ops of a rank may run while it communicates.
#pragma once

#include <vector>

#include "sim/program/program.h"

namespace rehearse::job {

/// By op of the program: whether a compute op and a collective may run at the same time. The other
/// ops are always before or after all those that they could affect, whatever the durations. The
/// dependencies within the program decide: a sequence that only follows from other ranks or from
/// resources is not seen, and such ops are said to overlap.
std::vector<char> may_overlap(const program::RankProgram& program);

}  // namespace rehearse::job
