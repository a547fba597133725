// The time of one collective on a scope at one fidelity, which `rehearse network` shows per size.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/commands/collective_scope.h"
#include "cli/config/fidelity_names.h"
#include "models/comm/nccl_choice.h"
#include "sim/base/algorithm.h"
#include "sim/base/estimate.h"

namespace rehearse::cli {

enum class Fidelity : std::uint8_t { kClosed, kMessage, kSimgrid };

struct CollectivePrice {
  Estimate<Seconds> time;
  std::string algorithm;
  std::string protocol;                   ///< empty where there is none: messages on links alone
  std::optional<std::uint32_t> channels;  ///< likewise
};

using PriceOfSize = std::function<Result<CollectivePrice>(Bytes)>;

/// How a collective is priced.
struct PriceRequest {
  CollectiveKind kind;
  comm::NcclOverrides overrides = {};
  Fidelity fidelity = Fidelity::kClosed;
  bool in_framework = false;  ///< as timed there, not as nccl-tests does
};

/// By calibration where the scope has one that covers it, the messages on the links of the cluster
/// where there is a cluster; run by our own engine or by SimGrid at these fidelities. Messages on
/// links that no calibration covers have the interval of datasheets (models/job/interval.h). Fails
/// where there is neither.
Result<PriceOfSize> prices_of(const Scope& scope, const PriceRequest& request);

}  // namespace rehearse::cli
