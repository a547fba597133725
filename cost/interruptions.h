// Jobs on machines that may be interrupted: intervals of checkpoints, and lost time.
//
// Interruptions of an instance are memoryless, with a mean time M between them (an exponential
// distribution), and each stops the whole job until it is restarted. For n instances, M is that of
// one instance ÷ n. Warnings before an interruption, and capacity that stays away, are not
// modelled.
#pragma once

#include <span>
#include <string_view>

#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cost {

struct Checkpointing {
  Seconds write;    ///< the job stops while it writes a checkpoint
  Seconds restart;  ///< from an interruption until the job resumes: machine, start, reading
};

/// √(2 C M): J. W. Young, Communications of the ACM 17(9), 1974. For C well below M.
Seconds young_interval(Seconds write, Seconds between);

/// Work between two checkpoints with which the job ends soonest, to higher order: J. T. Daly,
/// Future Generation Computer Systems 22(3), 2006: √(2 C M) (1 + ⅓ √(C/2M) + ⅑ C/2M) − C for
/// C < 2 M, else M. REQUIRES: both above zero.
Seconds daly_interval(Seconds write, Seconds between);

/// Expected wall-clock time ÷ time of the work: M e^(R/M) (e^((t+C)/M) − 1) / t with a checkpoint
/// after each `every` of work (Daly, 2006, for whole intervals). Exact for memoryless
/// interruptions, which may also occur during writing and restart. Infinite if no interval
/// completes.
double slowdown(Seconds every, const Checkpointing& checkpointing, Seconds between);

/// How long instances of one kind were held, from a log.
struct Lifetime {
  double instances;  ///< number of instances, each held for `held`
  Seconds held;
  bool interrupted;  ///< else it was given back, or still runs
};

/// Mean time between interruptions of one instance: total time held ÷ number of
/// interruptions. The 90 % interval is that of a Poisson count (Wilson and
/// Hilferty's approximation of the χ² quantiles). Fails without an interruption: then only a lower
/// bound is known, which the message states.
Result<Estimate<Seconds>> mean_time_between(std::span<const Lifetime> lifetimes);

/// From a file with columns instances, held_h and interrupted (0 or 1).
Result<std::vector<Lifetime>> parse_lifetimes(std::string_view text, std::string name);

}  // namespace rehearse::cost
