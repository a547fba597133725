// Random numbers for property tests; the same seed gives the same ones.
#pragma once

#include <cstdint>
#include <random>

namespace rehearse::test {

using Random = std::mt19937_64;

/// From `least` to `most`, inclusive.
inline std::uint32_t between(Random& random, std::uint32_t least, std::uint32_t most) {
  return least + static_cast<std::uint32_t>(random() % (most - least + 1));
}

}  // namespace rehearse::test
