// Attribution: where the time of a run goes. There are two questions with two answers:
//   - what occupies a rank (occupancy): a partition of the rank's time by device activity. If the
//     device idles, the chain of causes of its next op says why: also on other ranks, whose
//     communication counts as exposed communication, and whose work as the bubble;
//   - what determines the length of the run (path_parts): the critical path, which crosses ranks.
//     Communication that overlaps computation is in neither. Computation with slack occupies a rank
//     without being on the critical path.
//
// Both use RunOps: the knowledge that the source of the run (a program, a recording) has about the
// ops of its graph.
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

/// The purposes of an op's time.
struct Purpose {
  double launch = 0;                    ///< share: the device waits for launches
  double recompute = 0, optimizer = 0;  ///< shares of such work
  bool idle = false;                    ///< nothing works
};

/// The properties of a run's ops that attribution needs.
class RunOps {
 public:
  virtual ~RunOps() = default;
  virtual std::uint32_t ranks() const = 0;  ///< ranks that are run; rank numbers count these
  virtual std::vector<OpId> of_rank(std::uint32_t rank) const = 0;
  /// The rank whose time the op takes. Nothing for ops between ranks: messages, their receipt, the
  /// concurrent group of a collective's members.
  virtual std::optional<std::uint32_t> rank(OpId op) const = 0;
  /// Whether the device of its rank is busy with the op from its start to its end.
  virtual bool on_device(OpId op) const = 0;
  /// Whether it is a wait that nothing recorded explains.
  virtual bool unexplained(OpId /*op*/) const { return false; }
  /// The op whose end made this one start when it did. Following causes leads to why a device
  /// idled.
  virtual std::optional<OpId> cause(OpId op) const = 0;
  virtual Purpose purpose(OpId /*op*/) const { return {}; }
  /// For a member of a collective: the member that arrived last. Until then the device waits.
  virtual OpId last_arrival(OpId op) const { return op; }
  /// The shares of an op by purpose; not empty. Not called for ops that take no time.
  virtual std::vector<PathShare> shares(OpId op) const = 0;
  /// Ops of equal numbers have equal shares.
  virtual std::uint64_t alike(OpId op) const { return op.index(); }
  /// The time that a computing op takes when no other is on its device. Nothing for other ops, and
  /// if ops have their times alone.
  virtual std::optional<Picoseconds> alone(OpId /*op*/) const { return std::nullopt; }
  /// The purpose of the additional time that a computing op takes compared with running alone.
  virtual PathShare slowed(OpId op) const { return shares(op).front(); }
};

/// A stretch of a rank's time.
struct Window {
  Picoseconds begin, end;
  /// The op that the rank waited for until the end of the window, if its device idles there.
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
    Purpose purpose;
  };
  struct RankBusy {
    std::vector<Busy> ops;           // by start
    std::vector<Picoseconds> reach;  // the latest end of an op and those before it
    std::optional<OpId> last;        // of all ops of the rank, the first of those that end last
  };
  using Sum =
      std::array<std::int64_t, 12>;  // picoseconds, by the members of Occupancy after `total`

  std::size_t waiting_for(OpId op, std::uint32_t rank) const;
  void explain_idle(std::uint32_t rank, Picoseconds from, Picoseconds until, const Window& window,
                    Sum& sum) const;

  const graph::Graph& graph_;
  const graph::Timeline& timeline_;
  const RunOps& ops_;
  std::vector<RankBusy> ranks_;
  std::optional<OpId> last_;  // of all ranks
};

/// The critical path of a run (graph::critical_path). From a collective it goes on with the member
/// that arrived last.
std::vector<graph::PathStep> critical_path(const graph::Timeline& timeline, const RunOps& ops);

/// The times of the path by category of op, and by name.
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

/// The path divided by purpose; the parts add up to the path. Where the path computes on one rank
/// while the rank on which it ends is idle, the part is the bubble. With it, the parts are those of
/// the run as that rank sees it.
PathParts path_parts(const std::vector<graph::PathStep>& path, const graph::Timeline& timeline,
                     const RunOps& ops);

}  // namespace rehearse::program
