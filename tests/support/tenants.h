// Tenants for tests: chains of kernels with gaps between them, on one stream of one device.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "models/sharing/tenants.h"
#include "sim/base/check.h"

namespace rehearse::test {

struct Piece {
  double kernel_us;   ///< 0: none
  double gap_us = 0;  ///< before it
  double multiprocessors = 1;
  double bandwidth = 0;
  graph::Category gap = graph::Category::kHost;
  double host_link = 0;
};

/// Each piece follows the one before it.
inline sharing::Tenant chain(std::string name, const std::vector<Piece>& pieces) {
  using namespace graph;
  GraphBuilder builder;
  sharing::Tenant tenant{.name = std::move(name), .graph = {}, .on_device = {}};
  const DemandId stream =
      builder.add(Demand{.server = builder.add(Server{.name = builder.intern("stream")})});
  const auto length = [](double us) { return Picoseconds::from(Seconds::us(us)); };
  std::optional<OpId> last;
  const auto add = [&](const Op& op) {
    const OpId id = builder.add(op);
    if (last) builder.add_edge(*last, id);
    last = id;
    return id;
  };
  for (const Piece& piece : pieces) {
    if (piece.gap_us > 0) add({builder.intern("gap"), piece.gap, length(piece.gap_us)});
    if (piece.kernel_us <= 0) continue;
    const OpId kernel =
        add({builder.intern("kernel"), Category::kCompute, length(piece.kernel_us), stream});
    tenant.on_device.push_back(
        {kernel, 0, piece.multiprocessors, piece.bandwidth, piece.host_link});
  }
  Result<Graph> graph = std::move(builder).build();
  REHEARSE_CHECK(graph.has_value(), "{}", to_string(graph.error()));
  tenant.graph = std::move(*graph);
  return tenant;
}

/// A chain whose last gap is communication.
inline sharing::Tenant random_chain(std::string name, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  std::vector<Piece> pieces;
  const int n = pick(1, 12);
  for (int i = 0; i < n; ++i)
    pieces.push_back({.kernel_us = pick(1, 500) + pick(0, 999) * 1e-3,
                      .gap_us = pick(0, 1) * pick(0, 300) * 1.0,
                      .multiprocessors = pick(0, 2) ? 0.01 * pick(1, 100) : 1,
                      .bandwidth = pick(0, 1) * 0.01 * pick(1, 100)});
  pieces.push_back({.kernel_us = 0,
                    .gap_us = pick(1, 400) + pick(0, 999) * 1e-3,
                    .gap = graph::Category::kCommunication});
  return chain(std::move(name), pieces);
}

}  // namespace rehearse::test
