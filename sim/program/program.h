// Program: the work of each rank, before its machines are known.
//
// Equal ranks share one RankProgram. A RankProgram refers to process groups and peers
// by local numbers; the Program resolves them per rank, so
// that the ranks of a pipeline stage with tensor and data parallelism share their RankProgram.
//
// Invariants (ingest::read_chakra_job establishes them, job::verify checks the rest):
//  1. Ops are in issue order; dependencies point to earlier ops, in ascending order, without
//     duplicates.
//  2. A rank is a member of each of its groups; members are distinct, and so are its peers.
#pragma once

#include <cstdint>
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
  kMark,        ///< nothing; only orders others
};

/// Demand of a compute op on its device, for jobs that share one.
struct DeviceWork {
  Picoseconds kernels{0};     ///< part of the duration in which kernels run
  Picoseconds matrix{0};      ///< part of that in matrix multiplications
  Bytes bytes = Bytes::b(0);  ///< read from and written to the device's memory

  friend bool operator==(const DeviceWork&, const DeviceWork&) = default;
};

/// An op without one: its task and its name say what its time is for.
inline constexpr std::uint32_t kPlainOrigin = UINT32_MAX;

struct ProgramOp {
  NameId name;
  Task task;
  std::optional<Picoseconds> duration = {};  ///< absent: follows from flops and bytes
  Flops flops = Flops::flop(0);
  Bytes bytes = Bytes::b(0);
  CollectiveKind collective = CollectiveKind::kBarrier;
  std::uint32_t group = 0;  ///< number of a collective's group in the program
  std::uint32_t peer = 0;   ///< number of a send's or receive's peer in the program
  std::uint32_t tag = 0;
  std::int32_t priority = 0;  ///< of the messages; higher first
  /// So many of its dependencies must end before it starts; 0: all.
  std::uint32_t need = 0;
  DeviceWork device = {};
  Provenance provenance = Provenance::kRecorded;  ///< of the duration of an op without an origin
  std::uint32_t origin = kPlainOrigin;            ///< in Program::origins

  friend bool operator==(const ProgramOp&, const ProgramOp&) = default;
};

struct RankProgram {
  std::vector<ProgramOp> ops;
  std::vector<std::uint32_t> first_dependency = {0};  ///< ops.size() + 1 offsets
  std::vector<std::uint32_t> dependencies;            ///< indices of ops

  friend bool operator==(const RankProgram&, const RankProgram&) = default;
};

struct Program {
  struct Group {
    std::string name;
    std::vector<RankId> members;  ///< in their order around a ring
  };

  NamePool names;
  std::vector<Origin> origins = {};
  std::vector<RankProgram> programs;
  std::vector<std::uint32_t> program_of;  ///< by rank
  std::vector<Group> groups;              ///< each with a stream of its own
  std::vector<std::vector<std::uint32_t>>
      groups_of;  ///< by rank: its program's groups, in `groups`
  /// By rank: its program's peers. Empty where no rank sends anything.
  std::vector<std::vector<RankId>> peers_of = {};

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
