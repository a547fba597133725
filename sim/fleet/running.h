// Running jobs: their position, rate and end.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/fleet/places.h"
#include "sim/fleet/waiting.h"

namespace rehearse::fleet {

/// Invariant: `ends()` holds each running job once, at the instant at which it ends.
class Running {
 public:
  /// `order` are indices of jobs by rank. Keeps references to all.
  Running(const Fleet& fleet, const std::vector<std::uint32_t>& order, const Options& options,
          const Places& places);

  /// The time that `work` would take there, after `overhead`.
  Nanoseconds time_on(Rank rank, const Spot& spot, Nanoseconds work, Nanoseconds overhead) const;

  void start(Rank rank, Spot spot, Nanoseconds work, Nanoseconds overhead, Nanoseconds now);
  struct Left {
    Nanoseconds work, overhead, held, restarting;
    Spot spot;
  };
  /// Removes the job; returns its remaining work, and the time since its start.
  Left stop(Rank rank, Nanoseconds now);

  const std::set<std::pair<Nanoseconds, Rank>>& ends() const { return ends_; }
  const Spot& spot(Rank rank) const { return states_[rank].spot; }
  Nanoseconds work_left(Rank rank, Nanoseconds now) const;
  std::uint32_t nodes_of(const Spot& spot) const;

 private:
  struct State {
    Nanoseconds work{0}, overhead{0};  // at `since`
    Nanoseconds since{0}, end{0};
    double rate = 1;
    Spot spot = {};
  };

  double rate_on(Rank rank, const Spot& spot) const;

  const Fleet& fleet_;
  const std::vector<std::uint32_t>& order_;
  const Options& options_;
  const Places& places_;
  std::vector<State> states_;
  std::set<std::pair<Nanoseconds, Rank>> ends_ = {};
};

/// Looks ahead: running jobs return their GPUs one after another until a demand fits. A query costs the number of releases since the previous query.
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
