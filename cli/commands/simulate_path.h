// The critical path of a job of Chakra traces, cut into what it is for.
#pragma once

#include "cli/commands/simulate_result.h"
#include "sim/graph/path_parts.h"

namespace rehearse::cli {

graph::PathParts path_parts(const Simulation& simulation);

}  // namespace rehearse::cli
