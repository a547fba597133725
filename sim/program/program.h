// Program: the work of each rank and of services. It is the form between every source (a plan, a
// Chakra trace, a recording, an input pipeline) and the graph that the engine runs.
//
// Equal ranks share one RankProgram. A RankProgram refers to process groups and peers by local
// numbers, which the Program resolves per rank. So the ranks of a pipeline stage with tensor and
// data parallelism share their RankProgram.
//
// Invariants:
//  1. The ops of one stream are in issue order. Dependencies are in ascending order, without
//     duplicates and cycles. In programs of plans and Chakra traces, which can be folded, they
//     point to earlier ops; in a recording a call may wait for a device op that follows it.
//  2. A rank is a member of each of its groups; members are distinct, and so are its peers.
//  3. Services do not communicate. An order is between ops of different programs, and is listed once.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/collective.h"
#include "sim/base/estimate.h"
#include "sim/base/ids.h"
#include "sim/base/names.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/program/origin.h"

namespace rehearse::program {

enum class Task : std::uint8_t {
  kCompute,     ///< on the device
  kHost,        ///< on the host of the rank
  kMemory,      ///< loads or stores `bytes`
  kCollective,  ///< of kind `collective`, `bytes` as docs/concepts/collectives.md counts them
  kSend,        ///< `bytes` to `peer`
  kReceive,     ///< `bytes` from `peer`
  kMark,        ///< nothing; only orders others, such as the return of a call
  kInput,       ///< on the host: loads samples, or waits for them
  kLaunch,      ///< the way from a call to the device
  kProfiler,    ///< on the host: the work of recording
  kDelay,       ///< time that no work explains
};

using OpIndex = std::uint32_t;  ///< of an op in its program

/// The programs whose ops use a resource. A wider scope than kOwn counts where several programs are
/// added to one graph (lower.h): resources of one name and scope are then one resource.
enum class Scope : std::uint8_t {
  kOwn,     ///< one rank of the program, or the service
  kDevice,  ///< all ranks of that number, which are on one device
  kAll,
};

/// Flows of different groups (Stream::group) take turns in a pool.
struct Turns {
  Picoseconds quantum;    ///< how long a turn lasts while others wait
  Picoseconds change{0};  ///< from one turn to the next; nothing flows

  friend bool operator==(const Turns&, const Turns&) = default;
};

/// A capacity that the ops of several streams divide: the cores of a host, a link. It moves so much
/// work per second.
struct Pool {
  NameId name;
  double rate;
  std::optional<Turns> turns = {};
  Scope scope = Scope::kOwn;

  friend bool operator==(const Pool&, const Pool&) = default;
};

/// A resource that serves one op at a time on each of its slots, or that uses the slots of another
/// stream. The work of its ops flows through pools.
struct Stream {
  enum class Kind : std::uint8_t { kDevice, kHost };
  NameId name;
  Kind kind = Kind::kDevice;
  std::uint32_t number = 0;  ///< among the streams of the device, or the threads of the host
  std::uint32_t slots = 1;   ///< 0: its ops wait for no slot
  /// Least time between the end of one op and the start of the next on the same slot.
  Picoseconds turnaround{0};
  /// In RankProgram::pools: none, one for all slots, or one for each slot.
  std::vector<std::uint32_t> pools = {};
  /// Not empty: work flows through all of the pools, with this amount in each per unit of work.
  std::vector<double> units_per_work = {};
  double rate_cap = std::numeric_limits<double>::infinity();  ///< work per second of one op
  std::int32_t priority = 0;                ///< of the work in the pools; higher first
  std::optional<std::uint32_t> group = {};  ///< of flows that belong together, or that take turns
  Picoseconds due{0};  ///< when the flows of the group should end, from the first one's start on
  std::optional<std::uint32_t> slots_of = {};  ///< uses the slots of this stream, not its own
  /// With leases, the slot is granted for a whole lease, in order of request: until every op with
  /// that number has run. Streams that use the slots of one with leases have a lease each.
  bool leases = false;
  std::optional<std::uint32_t> lease = {};
  Scope scope = Scope::kOwn;

  friend bool operator==(const Stream&, const Stream&) = default;
};

/// The stream of an op that names none of its program's streams. A rank has one stream for compute,
/// one for host ops and one for memory; other tasks take none.
inline constexpr std::uint32_t kStreamOfTask = UINT32_MAX;
inline constexpr std::uint32_t kNoStream = UINT32_MAX - 1;  ///< such an op waits for no resource

/// Demand of a compute op on its device, for jobs that share one.
struct DeviceWork {
  Picoseconds kernels{0};     ///< part of the duration in which kernels run
  Picoseconds matrix{0};      ///< part of that in matrix multiplications
  Bytes bytes = Bytes::b(0);  ///< read from and written to the device's memory

  friend bool operator==(const DeviceWork&, const DeviceWork&) = default;
};

/// For an op without an origin: its task and its name state the purpose of its time.
inline constexpr std::uint32_t kPlainOrigin = UINT32_MAX;

struct ProgramOp {
  NameId name;
  Task task;
  /// For a collective: the measured time on this rank, from the arrival of the last member on.
  /// Absent: follows from flops and bytes.
  std::optional<Picoseconds> duration = {};
  Flops flops = Flops::flop(0);
  Bytes bytes = Bytes::b(0);
  CollectiveKind collective = CollectiveKind::kBarrier;
  std::uint32_t group = 0;  ///< number of a collective's group in the program
  std::uint32_t peer = 0;   ///< number of a send's or receive's peer in the program
  /// Distinguishes messages between two ranks, and collectives of one group that have a duration.
  std::uint32_t tag = 0;
  std::uint32_t stream = kStreamOfTask;  ///< in RankProgram::streams
  /// Of the messages, or among the ops that wait for a slot of the stream; higher first.
  std::int32_t priority = 0;
  /// The number of its dependencies that must end before it starts; 0: all.
  std::uint32_t need = 0;
  /// For a collective: its kind, bytes and number of ranks are known, so it can be priced.
  bool sized = true;
  Provenance provenance = Provenance::kRecorded;  ///< of the duration of an op without an origin
  std::uint32_t origin = kPlainOrigin;            ///< in Program::origins

  friend bool operator==(const ProgramOp&, const ProgramOp&) = default;
};

struct RankProgram {
  std::vector<ProgramOp> ops;
  std::vector<std::uint32_t> first_dependency = {0};  ///< ops.size() + 1 offsets
  std::vector<std::uint32_t> dependencies;            ///< indices of ops
  std::vector<Stream> streams = {};
  std::vector<Recorded> recorded = {};  ///< by op; empty for a program that is not from a recording
  std::vector<DeviceWork> device_work = {};  ///< by op; ops after its end have no known demand
  std::vector<Pool> pools = {};
  /// By op: its work in the pools of its stream, after its duration. Ops after its end have none.
  std::vector<double> work = {};

  DeviceWork device_work_of(OpIndex op) const {
    return op < device_work.size() ? device_work[op] : DeviceWork{};
  }

  friend bool operator==(const RankProgram&, const RankProgram&) = default;
};

struct OpRef {
  std::uint32_t of;  ///< a rank, or Program::ranks() + the number of a service
  OpIndex op;

  friend auto operator<=>(const OpRef&, const OpRef&) = default;
};

/// `op` starts when `before` has ended.
struct Order {
  OpRef before, op;

  friend auto operator<=>(const Order&, const Order&) = default;
};

struct Program {
  struct Group {
    std::string name;
    std::vector<RankId> members;  ///< in their order around a ring
    /// The number of participants, if the program does not have all of them. 0: the members.
    std::uint32_t of_ranks = 0;

    std::uint32_t ranks() const {
      return of_ranks > 0 ? of_ranks : static_cast<std::uint32_t>(members.size());
    }
  };

  NamePool names;
  std::vector<Origin> origins = {};
  std::vector<RankProgram> programs;
  std::vector<std::uint32_t> program_of;  ///< by rank
  std::vector<Group> groups;              ///< each with a stream of its own
  std::vector<std::vector<std::uint32_t>>
      groups_of;  ///< by rank: its program's groups, in `groups`
  /// By rank: its program's peers. Empty if no rank sends anything.
  std::vector<std::vector<RankId>> peers_of = {};
  /// Work that belongs to no rank, such as an input pipeline that feeds several.
  std::vector<RankProgram> services = {};
  std::vector<Order> orders = {};  ///< with ops of services; alike for ranks that are folded

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(program_of.size()); }
  const RankProgram& program(RankId rank) const { return programs[program_of[rank.index()]]; }
  RankId peer(RankId rank, const ProgramOp& op) const { return peers_of[rank.index()][op.peer]; }
  std::size_t ops() const {
    std::size_t sum = 0;
    for (const std::uint32_t p : program_of) sum += programs[p].ops.size();
    return sum;
  }
};

}  // namespace rehearse::program
