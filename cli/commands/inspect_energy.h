// What `inspect` shows of a recording's energy.
#pragma once

#include <string>

#include "cli/output/json_value.h"
#include "profiler/replay/energy.h"

namespace rehearse::cli {

/// With as many digits as readings of power are worth, without the unit.
std::string joules(Joules energy);

/// The boards as a table, with a word on what not to trust.
std::string energy_text(const replay::Energy& energy);

Json json_energy(const replay::Energy& energy);

}  // namespace rehearse::cli
