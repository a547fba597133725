// Turns of a tenant under leases: which of its ops hold the devices together.
#pragma once

#include <optional>
#include <vector>

#include "models/sharing/tenants.h"

namespace rehearse::sharing {

struct TurnPlan {
  struct Turn {
    std::vector<OpId> ops;  ///< of one period, in the order in which they begin when alone
  };
  std::vector<Turn> turns;  ///< of a period, in order; the first may have no ops
  /// The first turn continues what the last turn of the previous period began.
  bool joined = false;
};

/// Under kCrossover, turns end where the tenant synchronises: per step, in the longest time in
/// which it communicates and does not compute. Under kExclusive, they end with the step. REQUIRES:
/// one of these policies. Fails on kCrossover for a tenant that never synchronises.
Result<TurnPlan> turns_of(const Tenant& tenant, Policy policy);

}  // namespace rehearse::sharing
