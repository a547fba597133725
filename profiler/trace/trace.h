// Trace: the recording of one job, from any recorder.
//
// A trace has one Rank per recorded process. Times are nanoseconds on the rank's own clock, whose
// origin is RankInfo::clock_base; ranks of one server share that clock. Rows are in
// recording order, which is not the order of time: sort before use.
//
// Absent values are std::nullopt. Texts are interned in Trace::names.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/trace/op_timing.h"
#include "profiler/trace/problems.h"
#include "sim/base/collective.h"
#include "sim/base/ids.h"
#include "sim/base/names.h"
#include "sim/base/time.h"
#include "sim/base/units.h"

namespace rehearse::trace {

using ThreadId = Id<struct ThreadTag>;            ///< index into Rank::threads
using InputsId = Id<struct InputsTag>;            ///< index into Rank::inputs
using LaunchShapeId = Id<struct LaunchShapeTag>;  ///< index into Rank::launch_shapes
using CollectiveId = Id<struct CollectiveTag>;    ///< index into Rank::collectives

/// A host thread as the profiler names it: numbers, or words such as "stream 7".
struct Thread {
  NameId process;
  NameId thread;
  friend bool operator==(const Thread&, const Thread&) = default;
};

struct Device {
  std::uint32_t ordinal;
  std::string name;
  std::optional<Bytes> memory = {};
  std::optional<std::uint32_t> multiprocessors = {};
  std::optional<std::uint32_t> compute_major = {};
  std::optional<std::uint32_t> compute_minor = {};
};

enum class HostKind : std::uint8_t {
  kOperator,    ///< an operator of the framework
  kRuntime,     ///< a call of the CUDA or HIP runtime
  kDriver,      ///< a call of the driver
  kAnnotation,  ///< a range named by the user or the framework: steps, layers, phases
  kFrame,       ///< a frame of a Python stack
  kOverhead,    ///< work of the profiler
};

struct HostOp {
  NameId name;
  ThreadId thread;
  HostKind kind;
  Nanoseconds start;
  Nanoseconds duration;
  /// Links a runtime or driver call to the device ops that it launched.
  std::optional<std::uint32_t> correlation = {};
  /// Operators: a backward operator has the number of the forward one that created it, and the
  /// framework's number of the thread on which that ran.
  std::optional<std::uint32_t> sequence = {};
  std::optional<std::uint32_t> forward_thread = {};
  /// Operators: their number in the execution trace of the same run.
  std::optional<std::uint32_t> record_function = {};
  std::optional<InputsId> inputs = {};
  /// The collective that this operator or range issues.
  std::optional<CollectiveId> collective = {};
  /// A number that the program gave with a range: bytes of a gradient, items of a batch.
  std::optional<std::uint64_t> payload = {};

  Nanoseconds end() const { return start + duration; }
};

/// Shapes and types of an operator's inputs, as recorded: "[[32, 3, 224, 224], []]".
struct Inputs {
  NameId shapes;
  NameId types;
  friend bool operator==(const Inputs&, const Inputs&) = default;
};

enum class GpuKind : std::uint8_t { kKernel, kCopy, kSet };

enum class CopyDirection : std::uint8_t {
  kUnknown,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kPeer,
  kHostToHost,
};

/// Memory on the host side of a copy. With pageable memory the host waits; with pinned memory it
/// does not.
enum class HostMemory : std::uint8_t { kUnknown, kPageable, kPinned };

struct LaunchShape {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t registers;
  std::uint32_t shared_bytes;
  friend auto operator<=>(const LaunchShape&, const LaunchShape&) = default;
};

struct GpuOp {
  NameId name;
  GpuKind kind;
  CopyDirection direction = CopyDirection::kUnknown;
  HostMemory host_memory = HostMemory::kUnknown;
  std::uint16_t device = 0;
  std::uint32_t stream = 0;
  Nanoseconds start;
  Nanoseconds duration;
  std::optional<std::uint32_t> correlation = {};
  std::optional<LaunchShapeId> launch_shape = {};
  std::optional<CollectiveId> collective = {};
  std::optional<std::uint64_t> bytes = {};
  /// Counts the collectives of one kind in their group; the same on all ranks.
  std::optional<std::uint64_t> collective_number = {};

  Nanoseconds end() const { return start + duration; }
};

struct Collective {
  CollectiveKind kind;
  std::optional<std::uint64_t> bytes_in = {};   ///< per rank
  std::optional<std::uint64_t> bytes_out = {};  ///< per rank
  std::optional<std::uint32_t> group_size = {};
  std::optional<NameId> group = {};  ///< the process group's name
  std::optional<NameId> ranks = {};  ///< its members, as recorded
  std::optional<NameId> dtype = {};
  std::optional<NameId> algorithm = {};  ///< as the library names it: "RING", "NVLS"
  std::optional<NameId> protocol = {};   ///< "SIMPLE", "LL", "LL128"
  std::optional<std::uint32_t> channels = {};
  friend auto operator<=>(const Collective&, const Collective&) = default;
};

enum class SyncKind : std::uint8_t {
  kDevice,           ///< the host waits for a device
  kStream,           ///< the host waits for a stream
  kEvent,            ///< the host waits for an event
  kStreamWaitEvent,  ///< a stream waits for an event
};

/// A recorded synchronisation with both sides.
struct Sync {
  SyncKind kind;
  Nanoseconds start;
  Nanoseconds duration;
  std::optional<std::uint32_t> correlation = {};        ///< of the call
  std::optional<std::uint32_t> stream = {};             ///< that waits, or is waited for (kStream)
  std::optional<std::uint32_t> source_stream = {};      ///< where the event was recorded
  std::optional<std::uint32_t> event_correlation = {};  ///< of the call that recorded the event
};

/// A board that a process may use, or one MIG instance of it.
struct Board {
  std::string uuid;  ///< of the board, the same for all processes
  std::string name = {};
  std::string instance = {};                 ///< UUID of the MIG instance; empty if MIG is off
  std::optional<std::uint32_t> device = {};  ///< its ordinal in the process, as in GpuOp
  std::optional<std::uint32_t> multiprocessors = {};      ///< of the board or of the instance
  std::optional<std::uint32_t> all_multiprocessors = {};  ///< of all MIG instances of the board
};

struct PowerReading {
  std::uint32_t board;  ///< index into Rank::boards; for an instance, that of its board
  Nanoseconds time;
  std::optional<Watts> power = {};
  std::optional<Joules> energy = {};  ///< since the driver was loaded
  std::optional<std::uint32_t> core_mhz = {};
  std::optional<std::uint32_t> memory_mhz = {};
  std::optional<std::uint32_t> celsius = {};
  std::optional<std::uint64_t> clock_reasons = {};  ///< NVML's bits: why the clock is not higher
};

/// A row of a rank: an index into its host or its device ops.
struct RowRef {
  bool on_gpu;
  std::uint32_t index;
};

/// For recordings that state dependencies instead of times (Chakra): `to` needs `from`.
struct Dependency {
  RowRef from;
  RowRef to;
};

/// A fact that the recorder states about a process: a version, a setting, a measured cost.
struct Fact {
  std::string key;
  std::string value;
  friend bool operator==(const Fact&, const Fact&) = default;
};

/// The mapping of a rank's clock to that of the others (align): its instant t became t + offset +
/// drift x (t - origin of the trace).
struct ClockFit {
  Nanoseconds offset;
  double drift;             ///< seconds per second
  Nanoseconds residual;     ///< median distance of the ends of collectives that should coincide
  std::size_t samples = 0;  ///< number of pairs of ends
};

struct RankInfo {
  std::string source;                      ///< the file it was read from
  std::string format;                      ///< "kineto", "nsys", "chakra", ...
  std::optional<std::uint32_t> rank = {};  ///< position in the job, if recorded
  std::optional<std::uint32_t> world_size = {};
  std::string host;
  /// Nanoseconds since the Unix epoch at time zero of this rank's rows, if known.
  Nanoseconds clock_base{0};
  /// False for execution traces, whose rows have no start (and perhaps no duration).
  bool timed = true;
  std::vector<Fact> facts = {};
  std::optional<ClockFit> clock_fit = {};  ///< for a rank on another host than the first
};

struct Rank {
  RankInfo info;
  std::vector<Thread> threads;
  std::vector<Device> devices;
  std::vector<Inputs> inputs;
  std::vector<LaunchShape> launch_shapes;
  std::vector<Collective> collectives;
  std::vector<Board> boards;

  std::vector<HostOp> host_ops;
  std::vector<GpuOp> gpu_ops;
  std::vector<Sync> syncs;
  std::vector<Dependency> dependencies;
  std::vector<PowerReading> power;
};

struct Trace {
  NamePool names;
  std::vector<Rank> ranks = {};
  Problems problems = {};
  /// Times of operations measured alone; the times of a recording are in its rows.
  std::vector<OpTiming> timings = {};
};

}  // namespace rehearse::trace
