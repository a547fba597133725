// The transforms from program to program with which a tenant shares devices. Its program is lowered
// as any other afterwards, into one graph with those of the other tenants.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/sharing/tenants.h"
#include "sim/program/program.h"

namespace rehearse::sharing {

/// The ops flow through pools of their device under kMps, kPriority and kTimeSlice, and copies share
/// the link to the host under every policy. `number`: of the tenant, for its cap, priority and group.
program::Program on_shared_devices(program::Program program, std::span<const DeviceOp> ops,
                                   std::size_t number, const Sharing& sharing,
                                   const Contended& contended);

/// The program repeated: op i of period p becomes op p · n + i of the n ops of its rank. All ranks
/// begin a period together, when all have ended the one before; the first begins at `begins`.
struct Repeated {
  program::Program program;
  std::vector<program::OpRef> ends;  ///< of the periods, in a service
};
Repeated repeated(program::Program program, std::uint32_t periods, Picoseconds begins);

/// A turn: ops of the repeated program that run in one lease of the devices, by program of a rank, in
/// the order in which they begin alone. The lease is requested when the op that begins first could
/// begin: that of program `first`.
struct Turn {
  std::uint32_t lease;
  std::uint32_t period;  ///< in which it begins
  std::uint32_t first;
  std::vector<std::vector<program::OpIndex>> ops;
};
void add_turns(Repeated& tenant, std::span<const Turn> turns);

}  // namespace rehearse::sharing
