// Other times for the collectives of a program, such as on another network.
#pragma once

#include "models/comm/closed_form.h"
#include "sim/program/program.h"

namespace rehearse::job {

/// Sets the duration of every collective of known size; returns their number. Fails if a time is
/// not available.
Result<std::size_t> price(program::Program& program, const comm::CollectiveTime& time_of);

}  // namespace rehearse::job
