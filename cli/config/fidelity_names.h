// The words of --fidelity, where a command has these three.
#pragma once

#include <string_view>

namespace rehearse::cli {

/// Of step::Fidelity, in its order.
inline constexpr std::string_view kFidelityNames[] = {"closed", "message", "simgrid"};

}  // namespace rehearse::cli
