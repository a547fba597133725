// A client that sends requests to a server, or to replicas through a router, and what it measures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/serving/router.h"
#include "sim/serving/scaling.h"
#include "sim/serving/scheduler.h"

namespace rehearse::serving {

struct RunOptions {
  /// The client, of all replicas together, has at most this many requests in flight, and sends one that was planned earlier
  /// when another ends, after its think time; 0: any number. Requests that are all planned at 0 make a closed loop. A
  /// conversation counts as one from its first sending to its last token, while its user thinks too.
  std::int64_t most_in_flight = 0;
  double scale = 1;     ///< of all times of the pricer
  bool single = false;  ///< runs every step by itself, which changes nothing but the time it takes
};

/// Replicas of a server.
struct Pool {
  Rules rules;
  const StepPricer& pricer;  ///< outlives the run
  std::size_t replicas = 1;  ///< at least 1
  Routing routing = Routing::kRoundRobin;
  std::optional<Scaling> scaling = {};  ///< of their number; then `replicas` has no meaning
};

struct Run {
  std::vector<Served> served = {};  ///< in the order of the requests
  std::vector<StepRun> steps = {};
  Gaps gaps = {};
  std::int64_t blocks = 1;  ///< of the server
  /// A replica that a rule started is paid for from its decision on, and takes requests when it is ready.
  /// It is gone after its last request. Replicas that never leave are gone at the end of time.
  Picoseconds rented{0}, ready{0}, gone{0};
};

/// The longest run; picoseconds count up to 106 days.
inline constexpr Picoseconds kLongest{90 * 86'400 * 1'000'000'000'000};

/// Runs all requests to their end on replicas, each with the requests that the router sent to it. The same
/// arguments give the same runs, in the order in which the replicas were started. Fails on a request that the
/// server can never run, and after kLongest. REQUIRES: conversations in the order of the planned times of
/// their first turns, and their turns one after another.
Result<std::vector<Run>> run_replicas(const Pool& pool, std::span<const Request> requests,
                                      const RunOptions& options = {});

/// The same on one server.
Result<Run> run(const Rules& rules, const StepPricer& pricer, std::span<const Request> requests,
                const RunOptions& options = {});

}  // namespace rehearse::serving
