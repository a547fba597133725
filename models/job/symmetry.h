// Symmetry: the ranks of a job that do the same at the same times, judged by its structure.
//
// The ranks of a program are alike if each of its groups holds the same number of ranks of the same
// programs, which all issue the same collectives in it, and if each of its peers is a rank of one
// other program that answers with the same ops. Their orders with services are equal. One rank per program then represents all of them;
// fold.cc checks whether they *cost* the same.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/program.h"

namespace rehearse::job {

struct Symmetry {
  /// An op of a rank that is run.
  struct Place {
    std::uint32_t run;  ///< in `ranks`
    std::uint32_t op;
  };
  /// From a send to a receive; the send is that of the representative.
  struct Arrival {
    Place from, to;
  };

  std::vector<RankId> ranks;  ///< the first of each program that ranks have, in their order
  std::vector<std::uint32_t> run_of_program;
  /// By run and its local group number: the group that it shares with the runs whose ranks are also
  /// in its groups.
  std::vector<std::vector<std::uint32_t>> meets_in;
  std::vector<Arrival> arrivals;
};

/// Nothing if ranks of one program are not alike. Ranks may differ in which of several sends of a
/// peer they receive, if those are alike and run at the same time; under `one_stream` none do.
/// REQUIRES: groups and peers are ranks of the job.
std::optional<Symmetry> symmetry_of(const program::Program& job, bool one_stream);

}  // namespace rehearse::job
