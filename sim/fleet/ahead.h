// Looks ahead: running jobs return their GPUs one after another until a demand fits.
#pragma once

#include <optional>
#include <unordered_map>

#include "sim/fleet/places.h"

namespace rehearse::fleet {

/// Future free resources. A query costs the number of releases since the previous query.
class Ahead {
 public:
  /// REQUIRES: `need` does not fit in `places`, which outlives this.
  Ahead(const Places& places, Placement placement, const Need& need, std::uint32_t gpus_per_node)
      : places_(places), placement_(placement), need_(need), gpus_per_node_(gpus_per_node) {}

  void give_back(const Spot& spot);
  /// The place where `need` fits by now, with the remaining room; nothing if it does not fit.
  std::optional<Keep> fits();

 private:
  std::uint32_t free_in_pod(std::uint32_t pod) const;
  std::uint32_t free_in_node(std::uint32_t node) const;

  const Places& places_;
  Placement placement_;
  Need need_;
  std::uint32_t gpus_per_node_;
  std::uint32_t freed_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> of_node_, of_pod_, taken_;  // never iterated
  std::set<std::uint32_t> shared_;   // GPUs that were shared, and are whole and free now
  std::set<std::uint32_t> touched_;  // GPUs, since the last question
};

}  // namespace rehearse::fleet
