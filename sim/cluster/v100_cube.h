// The hybrid cube mesh of eight V100.
#pragma once

#include <array>
#include <cstdint>

namespace rehearse::cluster {

using CubeLinks = std::array<std::array<std::uint8_t, 8>, 8>;

/// NVLinks between the GPUs of a DGX-1V, six per GPU, as `nvidia-smi topo -m` prints them.
inline constexpr CubeLinks kV100Cube = {{{0, 1, 1, 2, 2, 0, 0, 0},
                                         {1, 0, 2, 1, 0, 2, 0, 0},
                                         {1, 2, 0, 2, 0, 0, 1, 0},
                                         {2, 1, 2, 0, 0, 0, 0, 1},
                                         {2, 0, 0, 0, 0, 1, 1, 2},
                                         {0, 2, 0, 0, 1, 0, 2, 1},
                                         {0, 0, 1, 0, 1, 2, 0, 2},
                                         {0, 0, 0, 1, 2, 1, 2, 0}}};

}  // namespace rehearse::cluster
