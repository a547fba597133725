// The critical path of a job of Chakra traces, cut into what it is for.
#pragma once

#include "cli/commands/simulate_result.h"
#include "sim/program/path_parts.h"

namespace rehearse::cli {

program::PathParts path_parts(const Simulation& simulation);

}  // namespace rehearse::cli
