// The time of one collective on a scope, at one fidelity: what `rehearse network` shows per size.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/commands/collective_scope.h"
#include "cli/config/fidelity_names.h"
#include "models/comm/algorithm.h"
#include "models/comm/nccl_choice.h"
#include "sim/base/estimate.h"

namespace rehearse::cli {

enum class Fidelity : std::uint8_t { kClosed, kMessage, kSimgrid };

struct CollectivePrice {
  Estimate<Seconds> time;
  std::string algorithm;
  std::string protocol;                   ///< empty where there is none: messages
  std::optional<std::uint32_t> channels;  ///< likewise
};

using PriceOfSize = std::function<Result<CollectivePrice>(Bytes)>;

/// By calibration, as nccl-tests times it or inside a framework. REQUIRES: the scope has one.
Result<PriceOfSize> closed_prices(const Scope& scope, CollectiveKind kind,
                                  const comm::NcclOverrides& overrides, bool in_framework);

/// As messages on the links of the cluster, which nothing else uses; run by our own engine or by
/// SimGrid. The interval is that of times on datasheet links (models/job/interval.h). Without an
/// algorithm: ring, or pairwise for all_to_all. Fails without a cluster.
Result<PriceOfSize> message_prices(const Scope& scope, CollectiveKind kind,
                                   std::optional<comm::Algorithm> algorithm, Fidelity fidelity);

}  // namespace rehearse::cli
