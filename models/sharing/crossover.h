// Crossover: data-parallel jobs take turns on the same GPUs, iteration by iteration. One computes
// while the others synchronize.
//
// An iteration computes for C with the GPUs leased to it alone. Its communication begins H before
// that ends, hidden by its own computing, and continues for N, which is exposed. Two equal jobs
// keep the GPUs busy if N + H <= C: their iterations come every 2 C instead of C + N each in turn,
// and their combined throughput is (C + N) / C times that of one after another. If N + H > C, the
// links are the bottleneck: at most (C + N) / (N + H).
//
// This formula is for orientation: the result is simulated. Iterations are leases of a stream, in
// request order; synchronizations flow through the links that all jobs share, as the engine divides
// them. The cost of a switch, and links that a job does not fill while it communicates, are not
// modelled.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/program/program.h"

namespace rehearse::sharing {

struct TurnTaker {
  std::string name;
  Seconds compute;                   ///< per iteration, on the GPUs
  Seconds exposed;                   ///< communication of an iteration that it does not hide itself
  Seconds hidden = Seconds::s(0);    ///< communication that overlaps the end of its computing
  std::optional<Bytes> memory = {};  ///< on the fullest GPU; all of it stays while others compute
};

/// How jobs that communicate at the same time divide their links (sim/engine/division.h).
enum class Links : std::uint8_t {
  kFair,       ///< equally
  kPriority,   ///< jobs in the order in which they were named
  kCoflow,     ///< the synchronisation that finishes soonest first
  kEchelon,    ///< the one first that can end closest to its end when alone
  kFirstCome,  ///< one after the other, whole
  kApart,      ///< each job has its own links, and none slows another
};
inline constexpr std::string_view kLinksNames[] = {"fair",    "priority",   "coflow",
                                                   "echelon", "first_come", "apart"};

struct Turns {
  std::vector<double> rates = {};  ///< by job, relative to running alone: at most 1
  /// Sum of the rates: combined throughput relative to one job after another.
  double gain;
};

/// A service with `iterations[i]` iterations of each job; ops of a job are consecutive, five an
/// iteration: forward and backward in one turn, communication alongside backward, and the bounds of
/// the turn.
program::Program turns_program(std::span<const TurnTaker> jobs,
                               std::span<const std::uint32_t> iterations, Links links);

/// Simulates the turns and counts while all of the jobs run. Fails if a job takes no time or hides
/// more than it computes, or if the total memory exceeds `memory`.
Result<Turns> take_turns(std::span<const TurnTaker> jobs, Links links = Links::kFair,
                         std::optional<Bytes> memory = {});

}  // namespace rehearse::sharing
