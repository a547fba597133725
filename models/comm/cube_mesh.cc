// Rings in the hybrid cube mesh of eight V100.
#include <bit>
#include <vector>

#include "models/comm/collective_cost.h"
#include "sim/base/check.h"
#include "sim/cluster/v100_cube.h"

namespace rehearse::comm {
namespace {

using cluster::kV100Cube;
using Links = cluster::CubeLinks;

void collect(std::uint32_t ranks, std::vector<std::uint8_t>& path, std::uint32_t seen,
             std::vector<std::vector<std::uint8_t>>& cycles) {
  const std::uint8_t last = path.back();
  if (path.size() == ranks) {
    if (kV100Cube[last][0]) cycles.push_back(path);
    return;
  }
  for (std::uint8_t next = 1; next < ranks; ++next)
    if (!(seen >> next & 1U) && kV100Cube[last][next]) {
      path.push_back(next);
      collect(ranks, path, seen | 1U << next, cycles);
      path.pop_back();
    }
}

bool take(const std::vector<std::uint8_t>& cycle, Links& free, int by) {
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    std::uint8_t& left = free[cycle[i]][cycle[(i + 1) % cycle.size()]];
    if (by > 0 && left == 0) {
      while (i-- > 0) ++free[cycle[i]][cycle[(i + 1) % cycle.size()]];
      return false;
    }
    left = static_cast<std::uint8_t>(left - by);
  }
  return true;
}

/// The most cycles from `from` on that fit beside each other; stops at `bound`, which none can
/// beat.
std::uint32_t most(const std::vector<std::vector<std::uint8_t>>& cycles, std::size_t from,
                   Links& free, std::uint32_t bound) {
  std::uint32_t best = 0;
  for (std::size_t c = from; c < cycles.size() && best < bound; ++c) {
    if (!take(cycles[c], free, 1)) continue;
    best = std::max(best, 1 + most(cycles, c, free, bound - 1));
    take(cycles[c], free, -1);
  }
  return best;
}

std::uint32_t count_rings(std::uint32_t ranks) {
  std::vector<std::vector<std::uint8_t>> cycles;
  std::vector<std::uint8_t> path = {0};
  collect(ranks, path, 1, cycles);
  Links free = kV100Cube;
  std::uint32_t bound = 6;  // links into a GPU
  for (std::uint32_t gpu = 0; gpu < ranks; ++gpu) {
    std::uint32_t into = 0;
    for (std::uint32_t other = 0; other < ranks; ++other) into += kV100Cube[gpu][other];
    bound = std::min(bound, into);
  }
  return most(cycles, 0, free, bound);
}

}  // namespace

std::uint32_t cube_mesh_rings(std::uint32_t ranks) {
  REHEARSE_CHECK(ranks >= 2 && ranks <= 8, "{} ranks", ranks);
  static const auto kRings = [] {
    std::array<std::uint32_t, 9> rings{};
    for (std::uint32_t n = 2; n <= 8; ++n) rings[n] = count_rings(n);
    return rings;
  }();
  return kRings[ranks];
}

}  // namespace rehearse::comm
