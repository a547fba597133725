// Jobs on machines that are taken away: how often to write checkpoints, and what is lost.
//
// Interruptions of an instance come at random, without memory, at a mean time M between them (an
// exponential distribution), and each ends the whole job until it has been started anew: of n
// instances M is that of one ÷ n. What is not in it: warnings ahead of an interruption, and
// capacity that is not given back at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cost {

struct Checkpointing {
  Seconds write;    ///< the job stands still while it writes one
  Seconds restart;  ///< from an interruption until it goes on: a machine, its start, reading back
};

/// √(2 C M): J. W. Young, Communications of the ACM 17(9), 1974. For C well below M.
Seconds young_interval(Seconds write, Seconds between);

/// Work between two checkpoints with which the job ends soonest, to higher order: J. T. Daly,
/// Future Generation Computer Systems 22(3), 2006: √(2 C M) (1 + ⅓ √(C/2M) + ⅑ C/2M) − C for
/// C < 2 M, else M. REQUIRES: both above zero.
Seconds daly_interval(Seconds write, Seconds between);

/// Wall-clock time ÷ time of the work, expected: M e^(R/M) (e^((t+C)/M) − 1) / t with a checkpoint
/// behind each `every` of work (Daly, 2006, for whole intervals). Exact for such interruptions; an
/// interruption may meet writing and starting anew as well. Infinite where no interval gets done.
double slowdown(Seconds every, const Checkpointing& checkpointing, Seconds between);

/// How long instances of one kind were held, from a log.
struct Lifetime {
  double instances;  ///< so many for `held` each
  Seconds held;
  bool interrupted;  ///< else it was given back, or still runs
};

/// Mean time between interruptions of one instance: all that was held ÷ the number of
/// interruptions. The 90 % interval is that of so many events of a Poisson process (Wilson and
/// Hilferty's approximation of the χ² quantiles). Fails without an interruption: then only a least
/// time is known, which the message says.
Result<Estimate<Seconds>> mean_time_between(std::span<const Lifetime> lifetimes);

/// From a file with columns instances, held_h and interrupted (0 or 1).
Result<std::vector<Lifetime>> parse_lifetimes(std::string_view text, std::string name);

}  // namespace rehearse::cost
