// The names of --fidelity: closed, message and simgrid.
#pragma once

#include <string_view>

namespace rehearse::cli {

/// The names of step::Fidelity, in its order.
inline constexpr std::string_view kFidelityNames[] = {"closed", "message", "simgrid"};

}  // namespace rehearse::cli
