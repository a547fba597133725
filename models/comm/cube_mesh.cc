// Rings in a mesh, and in the hybrid cube mesh of eight V100.
#include <algorithm>
#include <numeric>
#include <vector>

#include "models/comm/collective_cost.h"
#include "sim/base/check.h"
#include "sim/cluster/v100_cube.h"

namespace rehearse::comm {
namespace {

using Links = cluster::CubeLinks;
using Cycle = std::vector<std::uint32_t>;

void collect(const Links& links, std::uint32_t ranks, Cycle& path, std::uint32_t seen,
             std::vector<Cycle>& cycles) {
  const std::uint32_t last = path.back();
  if (path.size() == ranks) {
    if (links[last][0]) cycles.push_back(path);
    return;
  }
  for (std::uint32_t next = 1; next < ranks; ++next)
    if (!(seen >> next & 1U) && links[last][next]) {
      path.push_back(next);
      collect(links, ranks, path, seen | 1U << next, cycles);
      path.pop_back();
    }
}

bool take(const Cycle& cycle, Links& free, int by) {
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

/// The largest set of cycles, from `from` on, that share no link. Stops at `bound`, an upper limit.
std::vector<std::size_t> most(const std::vector<Cycle>& cycles, std::size_t from, Links& free,
                              std::size_t bound) {
  std::vector<std::size_t> best;
  for (std::size_t c = from; c < cycles.size() && best.size() < bound; ++c) {
    if (!take(cycles[c], free, 1)) continue;
    std::vector<std::size_t> others = most(cycles, c, free, bound - 1);
    if (others.size() + 1 > best.size()) {
      others.push_back(c);
      best = std::move(others);
    }
    take(cycles[c], free, -1);
  }
  return best;
}

/// The most rings that share no link.
std::vector<Cycle> cycles_among(std::uint32_t ranks, Links links) {
  REHEARSE_CHECK(ranks >= 2 && ranks <= 8, "{} ranks", ranks);
  std::size_t bound = 7;
  for (std::uint32_t a = 0; a < ranks; ++a)
    bound = std::min(bound, std::accumulate(links[a].begin(), links[a].end(), std::size_t{0}));
  std::vector<Cycle> cycles, chosen;
  Cycle path = {0};
  collect(links, ranks, path, 1, cycles);
  for (const std::size_t c : most(cycles, 0, links, bound)) chosen.push_back(cycles[c]);
  return chosen;
}

}  // namespace

std::vector<Cycle> cube_mesh_cycles(std::span<const std::uint32_t> places) {
  Links links{};
  for (std::size_t a = 0; a < places.size(); ++a)
    for (std::size_t b = 0; b < places.size(); ++b)
      links[a][b] = cluster::kV100Cube[places[a]][places[b]];
  return cycles_among(static_cast<std::uint32_t>(places.size()), links);
}

std::vector<Cycle> mesh_cycles(std::uint32_t ranks) {
  Links links{};
  for (std::uint32_t a = 0; a < ranks; ++a)
    for (std::uint32_t b = 0; b < ranks; ++b) links[a][b] = a != b;
  return cycles_among(ranks, links);
}

std::uint32_t cube_mesh_rings(std::uint32_t ranks) {
  REHEARSE_CHECK(ranks >= 2 && ranks <= 8, "{} ranks", ranks);
  static const auto kRings = [] {
    constexpr std::array kAll = {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U};
    std::array<std::uint32_t, 9> rings{};
    for (std::uint32_t n = 2; n <= 8; ++n)
      rings[n] = static_cast<std::uint32_t>(cube_mesh_cycles(std::span(kAll).first(n)).size());
    return rings;
  }();
  return kRings[ranks];
}

}  // namespace rehearse::comm
