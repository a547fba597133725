// A second simulator of fleets, written for readability: plain loops over all jobs, GPUs and nodes
// at every instant. It checks the fast simulator on small lists. Also makes random lists of jobs.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/fleet/fleet.h"

namespace rehearse::test {

struct NaiveStay {
  std::uint32_t job;
  std::int64_t from, to;
  std::vector<std::uint32_t> gpus;
  std::uint32_t positions;

  friend auto operator<=>(const NaiveStay&, const NaiveStay&) = default;
};

/// Returns stays in the order of ends, then of arrivals. Does not support RateOf; with kBackfill,
/// neither slices nor Placement::kRail; with preemption, neither slices nor rails.
std::vector<NaiveStay> naive_fleet(const fleet::Fleet& fleet, const std::vector<fleet::Job>& jobs,
                                   const fleet::Options& options);

/// The profiles of an A100 of 40 GB, without media extensions, at the rates of their compute
/// slices.
std::vector<fleet::SliceKind> a100_slices();

struct RandomFleet {
  fleet::Fleet fleet;
  std::vector<fleet::Job> jobs;
};
/// Up to 24 GPUs and 40 jobs that arrive in bursts, some at once; every job fits.
RandomFleet random_fleet(std::uint64_t seed, bool slices, bool rail);

}  // namespace rehearse::test
