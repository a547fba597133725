// Attribution: where the time of a run goes. There are two questions, and they have two answers:
//   - what occupies a rank (occupancy): a partition of the rank's time by what its device does;
//   - what decides the length (path_parts): the critical path, which goes through ranks.
//     Communication that overlaps computation is in neither. Computation with slack occupies a rank
//     without being on the critical path.
//
// Both are asked of RunOps: what the form that was run (a program, a recording) knows of the ops of
// its graph.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/graph/critical_path.h"
#include "sim/graph/graph.h"
#include "sim/graph/timeline.h"
#include "sim/program/occupancy.h"
#include "sim/program/path_parts.h"

namespace rehearse::program {

/// What attribution asks of the ops of a run.
class RunOps {
 public:
  virtual ~RunOps() = default;
  virtual std::uint32_t ranks() const = 0;  ///< that are run; numbers of ranks count these
  virtual std::vector<OpId> of_rank(std::uint32_t rank) const = 0;
  /// Whose time the op takes; nothing for what goes on between ranks: messages, their receipt, the
  /// concurrent group of a collective's members.
  virtual std::optional<std::uint32_t> rank(OpId op) const = 0;
  /// The device of its rank is busy with the op from its start to its end.
  virtual bool on_device(OpId op) const = 0;
  /// A wait that nothing recorded explains.
  virtual bool unexplained(OpId /*op*/) const { return false; }
  /// The op whose end made this one start when it did, on the way back to why a device idled.
  virtual std::optional<OpId> cause(OpId op) const = 0;
};

/// A stretch of a rank's time.
struct Window {
  Picoseconds begin, end;
  /// What kept the rank to the end of the window, where its device idles there.
  std::optional<OpId> last = {};
};

/// The occupancy of each rank of a run. REQUIRES: all arguments outlive it.
class Occupancies {
 public:
  Occupancies(const graph::Graph& graph, const graph::Timeline& timeline, const RunOps& ops);

  Occupancy within(std::uint32_t rank, const Window& window) const;
  /// From time zero to the end of the run.
  Occupancy of_run(std::uint32_t rank) const;

 private:
  struct Busy {
    Picoseconds start, end;
    std::size_t part;
    OpId op;
  };
  struct RankBusy {
    std::vector<Busy> ops;           // by start
    std::vector<Picoseconds> reach;  // the latest end of an op and those before it
    std::optional<OpId> last;        // of all ops of the rank, the first of those that end last
  };
  using Sum =
      std::array<std::int64_t, 8>;  // picoseconds, by the members of Occupancy after `total`

  void explain_idle(std::uint32_t rank, Picoseconds from, Picoseconds until, const Window& window,
                    Sum& sum) const;

  const graph::Graph& graph_;
  const graph::Timeline& timeline_;
  const RunOps& ops_;
  std::vector<RankBusy> ranks_;
};

/// The path by what kind of op it passes, and by their names.
struct PathTimes {
  struct Named {
    graph::Category category;
    std::string name;
    Seconds time;
  };
  std::vector<Seconds> by_category;  ///< indexed by graph::Category
  std::vector<Named> by_name;        ///< the largest first
};
/// The times of an average step of the path, which covers `steps` steps. REQUIRES: steps >= 1.
PathTimes path_times(const graph::Graph& graph, const std::vector<graph::PathStep>& path,
                     std::size_t steps = 1);

/// What the time of a run's ops is for.
class Explanations {
 public:
  virtual ~Explanations() = default;
  /// Not empty. Not asked of ops that take no time.
  virtual std::vector<PathShare> shares(OpId op) const = 0;
  /// Ops of equal numbers have equal shares.
  virtual std::uint64_t alike(OpId op) const { return op.index(); }
  /// How long a computing op takes when no other is on its device; nothing for other ops, and where
  /// ops have their own times alone.
  virtual std::optional<Picoseconds> alone(OpId /*op*/) const { return std::nullopt; }
  /// What a computing op takes longer than alone.
  virtual PathShare slowed(OpId op) const { return shares(op).front(); }
};

/// The path cut into what it is for; the parts add up to the path. Where it computes on one rank,
/// and the rank on which it ends has nothing to do meanwhile, that is the bubble: with it the parts
/// are those of the run as that rank sees it.
PathParts path_parts(const std::vector<graph::PathStep>& path, const graph::Timeline& timeline,
                     const RunOps& ops, const Explanations& explanations);

}  // namespace rehearse::program
