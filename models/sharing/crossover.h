// Crossover: data-parallel jobs take turns on the same GPUs, iteration by iteration. One computes
// while the others synchronise.
//
// An iteration computes for C with the GPUs leased to it alone, then communicates for N, which
// nothing of its own hides. Two equal jobs with N <= C keep the GPUs busy: their iterations come
// every 2 C in place of C + N, and together they do (C + N) / C of what they do one after another.
//
// It is run, not computed: iterations are leases of a server of the graph (sim/graph/graph.h), and
// whoever asks first is next. What it leaves out: links that both use (the synchronisation of one
// beside what the other sends while it computes), and what it takes to switch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/graph/graph.h"

namespace rehearse::sharing {

struct TurnTaker {
  std::string name;
  Seconds compute;                   ///< of an iteration, on the GPUs
  Seconds exposed;                   ///< communication of an iteration that it does not hide itself
  std::optional<Bytes> memory = {};  ///< of the fullest GPU; all of it stays while others compute
};

struct Turns {
  std::vector<double> rates;  ///< of each job, against running alone: 1 at most
  /// Sum of the rates: work done together, against one job after another.
  double gain;
};

/// The graph of `iterations[i]` iterations of each job; ops of a job stand together, three an
/// iteration: forward and backward under one lease, then communication.
Result<graph::Graph> turns_graph(std::span<const TurnTaker> jobs,
                                 std::span<const std::uint32_t> iterations);

/// As simulated, counted while all of the jobs run. Fails where a job takes no time, or the memory
/// of all is more than `memory`.
Result<Turns> take_turns(std::span<const TurnTaker> jobs, std::optional<Bytes> memory = {});

}  // namespace rehearse::sharing
