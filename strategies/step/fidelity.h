// Fidelity: what carries collectives and sends.
#pragma once

#include <cstdint>

namespace rehearse::step {

enum class Fidelity : std::uint8_t {
  kClosed,   ///< nothing: they last as long as their closed forms say
  kMessage,  ///< our own engine, message by message
  kSimgrid,  ///< SimGrid, the same messages
};

}  // namespace rehearse::step
