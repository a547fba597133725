// The names of --fidelity: closed, message and simgrid.
#pragma once

#include <cstddef>
#include <string_view>

#include "strategies/step/fidelity.h"

namespace rehearse::cli {

/// The names of step::Fidelity, in its order.
inline constexpr std::string_view kFidelityNames[] = {"closed", "message", "simgrid"};

inline std::string_view name_of(step::Fidelity fidelity) {
  return kFidelityNames[static_cast<std::size_t>(fidelity)];
}

}  // namespace rehearse::cli
