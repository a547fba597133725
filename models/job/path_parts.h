// The critical path of a job's run, cut into what it is for (sim/program/path_parts.h).
//
// The path goes through ranks. Where it computes on one, and the rank on which it ends has nothing
// to do meanwhile, that is the bubble: with it the parts are those of a step as that rank sees it.
#pragma once

#include <vector>

#include "models/job/lower.h"
#include "sim/graph/timeline.h"
#include "sim/program/path_parts.h"

namespace rehearse::job {

/// What is known of the ops of a job's programs by whoever made it.
class OpOrigins {
 public:
  virtual ~OpOrigins() = default;
  /// What the time of an op is for. Not asked of receives, which take none.
  virtual std::vector<program::PathShare> shares(std::uint32_t program, std::uint32_t op) const = 0;
  /// Ops of a program with equal numbers have equal shares.
  virtual std::uint32_t alike(std::uint32_t program, std::uint32_t op) const = 0;
  /// Of what flows between ranks beside collectives.
  virtual program::PathShare message(std::string_view name) const = 0;
};

/// Adds up to the makespan. What a computing op takes longer beside communication than alone counts
/// as communication.
program::PathParts path_parts(const program::Program& job, const LoweredJob& lowered,
                              const graph::Timeline& timeline, const OpOrigins& origins);

}  // namespace rehearse::job
