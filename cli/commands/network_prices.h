// The time of one collective on a scope at one fidelity, which `rehearse network` shows per size.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/commands/collective_scope.h"
#include "models/comm/nccl_choice.h"
#include "sim/base/algorithm.h"
#include "sim/base/estimate.h"
#include "strategies/step/fidelity.h"

namespace rehearse::cli {

struct CollectivePrice {
  Estimate<Seconds> time;
  std::string algorithm;
  std::string protocol;                        ///< empty for messages without calibration
  std::optional<std::uint32_t> channels = {};  ///< likewise
};

struct PriceOfSize {
  std::function<Result<CollectivePrice>(Bytes)> of;
  std::string why_not = {};  ///< no calibration prices it; empty: one does
};

/// The way in which a collective is priced.
struct PriceRequest {
  CollectiveKind kind;
  comm::NcclOverrides overrides = {};
  step::Fidelity fidelity = step::Fidelity::kClosed;
  bool in_framework = false;  ///< as timed in a framework, not as nccl-tests does
};

/// Prices as `rehearse simulate` does (job::Schedules): by calibration if one covers the scope, else by
/// messages on the cluster's links, with the interval of datasheets (models/job/interval.h). At the
/// fidelities that need it, our own engine or SimGrid runs the messages. A named calibration and a
/// protocol have no messages to fall back to: fails if no calibration covers them.
Result<PriceOfSize> prices_of(const Scope& scope, const PriceRequest& request);

}  // namespace rehearse::cli
