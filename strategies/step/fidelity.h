// Fidelity: how collectives and sends are carried.
#pragma once

#include <cstdint>

namespace rehearse::step {

enum class Fidelity : std::uint8_t {
  kClosed,   ///< no messages: they last as long as their closed forms say
  kMessage,  ///< our own engine, message by message
  kSimgrid,  ///< SimGrid, the same messages
};

}  // namespace rehearse::step
