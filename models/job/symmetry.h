// Symmetry: the ranks of a job that do the same at the same times, judged by its structure.
//
// Ranks are divided into classes: all ranks of a class have one program, and fold.cc separates those
// whose communication does not cost the same. The ranks of a class are alike if each of its groups
// holds the same number of ranks of the same classes, which all issue the same collectives in it,
// and if each of its peers is a rank of one other class that answers with the same ops. Their orders
// with services are equal. One rank per class then represents all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/program/program.h"

namespace rehearse::job {

/// By rank: its class. Classes are numbered in the order of their first ranks.
using Classes = std::vector<std::uint32_t>;

/// Ranks with equal keys are of one class.
Classes classes_of(std::span<const std::vector<std::uint32_t>> keys);

/// Those of the programs.
Classes classes_of_programs(const program::Program& job);

/// The fewest classes within the given ones whose ranks have groups with ranks of the same classes,
/// and peers of the same classes. REQUIRES: groups and peers are ranks of the job.
Classes refined(const program::Program& job, Classes classes);

struct Symmetry {
  struct Place {
    std::uint32_t run;  ///< in `ranks`
    std::uint32_t op;
  };
  /// From a send to a receive; the send is that of the representative.
  struct Arrival {
    Place from, to;
  };

  std::vector<RankId> ranks;  ///< the first of each class
  Classes run_of;             ///< by rank: the run of its class
  /// By run and its local group number: the group that it shares with the runs whose ranks are also
  /// in its groups.
  std::vector<std::vector<std::uint32_t>> meets_in;
  std::vector<Arrival> arrivals;
};

/// Nothing if ranks of one class are not alike. Ranks may differ in which of several sends of a
/// peer they receive, if those are alike and run at the same time; under `one_stream` none do.
/// REQUIRES: groups and peers are ranks of the job.
std::optional<Symmetry> symmetry_of(const program::Program& job, bool one_stream, Classes classes);

}  // namespace rehearse::job
