// A client that sends requests to a server, or to replicas through a router, and what it measures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/serving/router.h"
#include "sim/serving/scheduler.h"

namespace rehearse::serving {

struct RunOptions {
  /// The client, of all replicas together, has at most this many requests in flight, and sends one that was planned earlier
  /// when another ends; 0: any number. Requests that are all planned at 0 make a closed loop.
  std::int64_t most_in_flight = 0;
  double scale = 1;     ///< of all times of the pricer
  bool single = false;  ///< runs every step by itself, which changes nothing but the time it takes
  std::size_t replicas = 1;  ///< of run_replicas
  Routing routing = Routing::kRoundRobin;
};

struct Run {
  std::vector<Served> served = {};  ///< in the order of the requests
  std::vector<StepRun> steps = {};
  Gaps gaps = {};
  std::int64_t blocks = 1;  ///< of the server
};

/// Of a run; picoseconds count up to 106 days.
inline constexpr Picoseconds kLongest{90 * 86'400 * 1'000'000'000'000};

/// Runs all requests to their end. The same arguments give the same run. Fails on a request that the
/// server can never run, and after kLongest. REQUIRES: requests in the order of their planned times,
/// and one replica.
Result<Run> run(const Rules& rules, const StepPricer& pricer, std::span<const Request> requests,
                const RunOptions& options = {});

/// The same on replicas of one server, each with the requests that the router sent to it.
/// REQUIRES: at least one replica.
Result<std::vector<Run>> run_replicas(const Rules& rules, const StepPricer& pricer,
                                      std::span<const Request> requests,
                                      const RunOptions& options = {});

}  // namespace rehearse::serving
