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

/// What an answer at a fidelity rests on, and which option would change it.
inline constexpr std::string_view kFidelityBases[] = {
    "collectives in closed form, without shared links (--fidelity message simulates them)",
    "messages that share links (--fidelity closed is faster)",
    "messages that share links by SimGrid's models (--fidelity message shares them max-min fair)"};

inline std::string_view basis_of(step::Fidelity fidelity) {
  return kFidelityBases[static_cast<std::size_t>(fidelity)];
}

}  // namespace rehearse::cli
