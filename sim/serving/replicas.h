// The replicas of one kind of server, their router, and how many of them there are. For the sources of
// this module: the loops of a run (run.cc, pools.cc) differ in what requests do between replicas.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/serving/run.h"

namespace rehearse::serving {

inline constexpr Picoseconds kNever(std::numeric_limits<std::int64_t>::max());

/// Fails after the longest run.
Status check_length(Picoseconds now);
/// The same in a loop with so many of the requests left; it also fails if it is asked to stop (watch.h).
Status go_on(Picoseconds now, std::size_t left, std::size_t requests);

/// A server, and the requests that reached it and are not in its queue.
struct Replica {
  Scheduler server;
  Picoseconds rented{0}, ready{0}, gone = kNever;  ///< as in Run
  bool leaving = false;
  Picoseconds until{0};  ///< the end of the steps that it runs
  Picoseconds busy{0};   ///< time of all steps, up to `until`
  bool ending = false;   ///< whether `server.finished()` ends then
  bool ran = false;      ///< whether it had blocks for a step when it last formed one
  std::vector<std::uint32_t> arrived = {}, next = {};

  bool waits() const { return !arrived.empty() || !next.empty(); }
  /// Puts requests into the queue, before a step.
  void look(bool overlapped);
  /// Returns whether it runs steps. REQUIRES: server.busy().
  bool start(Picoseconds now, Picoseconds horizon, bool single, std::vector<Served>& served);
};

class Replicas {
 public:
  /// REQUIRES: all arguments outlive this.
  Replicas(const Pool& pool, std::span<const Request> requests, const RunOptions& options,
           std::vector<Served>& served);

  std::size_t size() const { return replicas_.size(); }
  Replica& operator[](std::size_t i) { return replicas_[i]; }

  /// Decides, and opens replicas that are ready, if that is due. Fails after ten million decisions.
  Status scale(Picoseconds now);
  /// When scale() has something to do.
  Picoseconds next_change() const;

  /// Chooses the replica of a request, which is sent to it until `end_steps` ends it.
  std::size_t route(std::uint32_t request, Picoseconds now);
  /// Calls `ended` with each replica and request whose last steps end by `now`, or that leaves.
  template <class Ended>
  void end_steps(Picoseconds now, const Ended& ended) {
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      Replica& replica = replicas_[i];
      if (replica.until > now) continue;
      const auto end_all = [&](const std::vector<std::uint32_t>& requests) {
        for (const std::uint32_t request : requests) {
          end(i, request, now);
          ended(i, request);
        }
      };
      if (replica.ending) end_all(replica.server.finished());
      replica.ending = false;
      end_all(replica.server.drop_late(now, served_));
    }
  }
  /// Starts steps on all replicas that run none, calls `started` with each that does, and runs equal
  /// steps together until `horizon`. If requests of one replica may wait for another's (`coupled`),
  /// steps run one by one.
  template <class Started>
  void start(Picoseconds now, Picoseconds horizon, bool coupled, const Started& started) {
    const bool one_by_one = coupled && replicas_.size() > 1;
    for (Replica& replica : replicas_) {
      if (replica.until > now) continue;
      replica.look(pool_.rules.overlapped);
      if (!replica.server.busy()) continue;
      if (replica.start(now, one_by_one || replica.waits() ? now : horizon, options_.single,
                        served_))
        started(replica);
    }
  }
  /// The next end of steps.
  Picoseconds next_end() const;
  /// Without their requests.
  std::vector<Run> runs() const;

 private:
  void add(Picoseconds now, Picoseconds ready);
  void remove_youngest(Picoseconds now);
  void open_ready(Picoseconds now);
  void end(std::size_t replica, std::uint32_t request, Picoseconds now);
  /// Adds up unfinished requests over time, before their number changes.
  void count(Picoseconds now);
  double signal(Picoseconds now);
  double late_first_token(Picoseconds now);

  const Pool& pool_;
  std::span<const Request> requests_;
  const RunOptions& options_;
  std::vector<Served>& served_;
  Router router_;
  std::deque<Replica> replicas_ = {};  ///< in the order of their start, with those that are gone
  std::optional<Scaler> scaler_ = {};
  std::size_t staying_ = 0;                ///< replicas that do not leave, ready or not
  std::deque<std::size_t> starting_ = {};  ///< those that are not ready
  Picoseconds decided_{0};                 ///< the last decision
  Picoseconds counted_{0};
  double unfinished_ = 0, request_time_ = 0;       ///< since the last decision, in picoseconds
  Picoseconds busy_{0};                            ///< time of steps up to the last decision
  std::vector<std::uint32_t> without_token_ = {};  ///< requests whose first token was not counted
};

}  // namespace rehearse::serving
