// Tenants for tests: chains of kernels with gaps between them, on one stream of one device.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "models/sharing/tenants.h"
#include "sim/base/check.h"
#include "sim/program/rank_builder.h"

namespace rehearse::test {

struct Piece {
  double kernel_us;   ///< 0: none
  double gap_us = 0;  ///< before it
  double multiprocessors = 1;
  double bandwidth = 0;
  program::Task gap = program::Task::kHost;
  double host_link = 0;
};

/// Each piece follows the one before it.
inline sharing::Tenant chain(std::string name, const std::vector<Piece>& pieces) {
  using namespace program;
  Program program;
  RankBuilder builder;
  const std::uint32_t stream = builder.add(Stream{.name = program.names.intern("stream")});
  std::vector<sharing::DeviceOp> on_device;
  std::vector<OpIndex> last;
  const auto add = [&](const char* what, Task task, double us, std::uint32_t on) {
    last = {builder.add(ProgramOp{.name = program.names.intern(what),
                                  .task = task,
                                  .duration = Picoseconds::from(Seconds::us(us)),
                                  .stream = on},
                        last)};
  };
  for (const Piece& piece : pieces) {
    if (piece.gap_us > 0) add("gap", piece.gap, piece.gap_us, kNoStream);
    if (piece.kernel_us <= 0) continue;
    add("kernel", Task::kCompute, piece.kernel_us, stream);
    on_device.push_back({0, last.front(), piece.multiprocessors, piece.bandwidth, piece.host_link});
  }
  program.programs.push_back(std::move(builder).build());
  program.program_of = {0};
  program.groups = {{"alone", {RankId(0)}}};
  program.groups_of = {{0}};
  Result<sharing::Tenant> tenant =
      sharing::make_tenant(std::move(name), std::move(program), std::move(on_device));
  REHEARSE_CHECK(tenant.has_value(), "{}", to_string(tenant.error()));
  return std::move(*tenant);
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
                    .gap = program::Task::kCollective});
  return chain(std::move(name), pieces);
}

}  // namespace rehearse::test
