// Lowers a job on a cluster to a graph. Rank r runs on device r.
//
// Per rank there is a server for compute, one for memory and one for host ops. An op requests its
// server when all its dependencies have ended, and ops are served one at a time. Collectives of one
// process group run one after the other in their order of issue; those of different groups run
// concurrently (each group has its own stream, as in PyTorch). A collective begins when all members
// have arrived. A send starts at once and ends when it has arrived; a receive waits for that and
// takes no time itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/comm/schedule.h"
#include "sim/base/estimate.h"
#include "sim/cluster/cluster.h"
#include "sim/graph/graph.h"
#include "sim/graph/timeline.h"
#include "sim/program/lower.h"
#include "sim/program/program.h"

namespace rehearse::job {

enum class Fidelity : std::uint8_t {
  kClosed,   ///< a collective takes its closed form; nothing contends
  kMessage,  ///< its messages share the links of the cluster with all others
};

/// An end of an interval.
enum class Bound : std::uint8_t { kLow, kValue, kHigh };

struct Rules {
  Fidelity fidelity = Fidelity::kMessage;
  /// Absent: NCCL's choice if `calibrated` is set and a calibration covers the group; otherwise
  /// ring, and pairwise for all_to_all.
  Algorithms algorithms = {};
  /// One stream per rank for all its collectives and sends, served as they become ready.
  bool one_stream = false;
  /// A collective is divided into this many parts, one after the other.
  std::uint32_t parts = 1;
  /// Added to the latency of every message.
  Seconds message_overhead = Seconds::s(0);
  /// The messages of a collective are one group (engine::Division::kCoflow).
  bool grouped = false;
  /// The slowdown of compute ops while a collective runs on their device
  /// (models/comm/interference.h); 1: none.
  double slowdown = 1;
  /// Collectives are priced by a shipped calibration where one covers them, in the closed form and
  /// message by message.
  bool calibrated = false;
};

/// One collective of the job.
struct Collective {
  CollectiveKind kind;
  Bytes bytes;
  std::uint32_t group;  ///< in Program::groups
  std::int32_t priority;
  std::vector<OpId> members;
};

/// The basis of the times of a kind of collective on a number of ranks.
struct Pricing {
  CollectiveKind kind;
  std::uint32_t ranks;
  bool calibrated;  ///< else the links of the cluster
  std::string why;  ///< the source of the calibration, or why there is none; empty: not asked for

  friend bool operator==(const Pricing&, const Pricing&) = default;
};

/// An op of the graph, or a transfer, that takes the time of a closed form.
struct Priced {
  std::uint32_t index;  ///< of the op, or in Graph::transfers
  bool transfer;
  std::uint32_t price;  ///< in LoweredJob::prices
};

struct LoweredJob : program::Lowered {
  std::vector<Collective> collectives;
  std::vector<Pricing> pricings;  ///< in the order of their first use
  /// The worst provenance of the prices: of closed forms, and of calibrated messages.
  Provenance provenance = Provenance::kRecorded;
  bool folded = false;  ///< one rank of each class (symmetry.h) is simulated for all its ranks
  std::vector<std::uint32_t> run_of = {};  ///< by rank: the run of its class; empty if not folded
  double bytes_sent = 0;                   ///< over all ranks that are run
  std::uint64_t messages = 0;
  /// What takes a closed form, at closed fidelity, and the prices of it. The graph has their values.
  std::vector<Priced> priced = {};
  std::vector<Estimate<Seconds>> prices = {};
};

/// The graph of a job with its prices at an end of their intervals. Its ops are those of the job's
/// graph. Fails if one lasts for more than a day.
Result<graph::Graph> at_bound(const LoweredJob& job, Bound bound);

/// Lowers all ranks. Fails with one line if ranks do not match each other or the cluster: more
/// ranks than devices, members of a group that run different collectives, sends without receives,
/// an op without a length.
Result<LoweredJob> lower(const program::Program& job, const cluster::Cluster& cluster,
                         const Rules& rules);

/// Adds the same to a graph that other jobs share. Its result has no graph. Under `common_links`, links
/// of one name and rate are those of the other jobs on it.
Result<LoweredJob> add(const program::Program& job, const cluster::Cluster& cluster,
                       const Rules& rules, program::Assembly& onto, bool common_links);

/// How graphs of messages are run.
using Run = std::function<Result<graph::Timeline>(const graph::Graph&)>;

/// Lowers one rank of each class to represent all of its ranks. Nothing if ranks of a class are not
/// alike (symmetry.h), or if `grouped`. Closed: the classes are programs, divided where collectives
/// or sends do not cost the same. Messages: the classes are programs; nothing where they differ.
///
/// Messages: a collective or send takes its time from a run by `run`, in which all groups of its
/// concurrent set (the same op on all ranks of the program) that have common links begin together.
/// This includes contention within a set. Concurrent sets flow over their common links
/// (docs/concepts/job.md). REQUIRES: `run`, at that fidelity.
Result<std::optional<LoweredJob>> fold(const program::Program& job, const cluster::Cluster& cluster,
                                       const Rules& rules, const Run& run = {});

/// Adds the same to a graph that other jobs share, with links of its own. Its result has no graph.
Result<std::optional<LoweredJob>> add_folded(const program::Program& job,
                                             const cluster::Cluster& cluster, const Rules& rules,
                                             const Run& run, program::Assembly& onto);

/// This algorithm for each kind of collective that it supports; nothing for the others.
Algorithms wherever_possible(Algorithm algorithm);
/// The algorithm where neither the rules nor a calibration choose one. NCCL posts all messages of an
/// all_to_all at once.
Algorithm usual_algorithm(CollectiveKind kind);

/// The kinds of collectives in the job that the given algorithm does not support.
std::vector<CollectiveKind> not_done_by(const program::Program& job, Algorithm algorithm);

}  // namespace rehearse::job
