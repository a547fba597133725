// Records: data of the injected library other than ranges, one struct per table of the capture
// file.
//
// A record is an array of 64-bit numbers with names. Its first kTexts fields are numbers of texts.
// Fields are only added at the end, so that a reader uses the fields it knows from files of any
// version, and missing fields read as zero. Times are CLOCK_REALTIME, ns. Zero is "not
// known" unless a field states otherwise; "+ 1" marks numbers that may be zero.
#pragma once

#include <bit>
#include <cstdint>

namespace rehearse::capture {

enum class TableId : std::uint8_t {
  kKernel = 1,
  kCopy = 2,
  kSet = 3,
  kCall = 4,
  kSync = 5,
  kEvent = 6,
  kGraphLaunch = 7,
  kMemory = 8,
  kJit = 9,
  kOverhead = 10,
  kDevice = 11,
  kContext = 12,
  kCommunicator = 13,
  kCollective = 14,
  kCollectiveKernel = 15,
  kPower = 16,
  kFact = 17,
  kBoard = 18,
  kKeptStep = 20,
};

/// A kernel that ran.
struct KernelRecord {
  static constexpr TableId kTable = TableId::kKernel;
  static constexpr unsigned kTexts = 1;
  std::uint64_t name;  ///< as the compiler mangled it
  std::uint64_t start, end;
  std::uint64_t device;  ///< ordinal in the process, as in all tables
  std::uint64_t context, stream, correlation;
  std::uint64_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
  std::uint64_t registers;                      ///< per thread
  std::uint64_t static_shared, dynamic_shared;  ///< bytes per block
  std::uint64_t local_bytes;
  std::uint64_t cluster_x, cluster_y, cluster_z;
  std::uint64_t graph, graph_node;  ///< of the CUDA graph it is a node of
};

/// Numbers of MemoryKind and of copy directions are CUPTI's, which CUDA's documentation gives.
struct CopyRecord {
  static constexpr TableId kTable = TableId::kCopy;
  static constexpr unsigned kTexts = 0;
  std::uint64_t start, end, bytes;
  std::uint64_t device, context, stream, correlation;
  std::uint64_t
      direction;  ///< CUpti_ActivityMemcpyKind: 1 host to device, 2 back, 8 within, 10 peer
  std::uint64_t from, to;      ///< CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, 3 device
  std::uint64_t asynchronous;  ///< 1 when the call may return before
  std::uint64_t from_device, to_device;  ///< + 1, of copies between devices
  std::uint64_t graph, graph_node;
};

struct SetRecord {
  static constexpr TableId kTable = TableId::kSet;
  static constexpr unsigned kTexts = 0;
  std::uint64_t start, end, bytes, value;
  std::uint64_t device, context, stream, correlation;
  std::uint64_t graph, graph_node;
  std::uint64_t memory;  ///< CUpti_ActivityMemoryKind
};

/// A call of the CUDA runtime (`driver` 0) or of the driver (1).
struct CallRecord {
  static constexpr TableId kTable = TableId::kCall;
  static constexpr unsigned kTexts = 1;
  std::uint64_t name;  ///< without a version at its end: cudaLaunchKernel
  std::uint64_t start, end;
  std::uint64_t thread;  ///< system id
  std::uint64_t correlation;
  std::uint64_t driver;
  std::uint64_t result;  ///< 0 success
};

/// A wait of the host for a device, a stream or an event, or of a stream for an event.
struct SyncRecord {
  static constexpr TableId kTable = TableId::kSync;
  static constexpr unsigned kTexts = 0;
  std::uint64_t start, end;
  std::uint64_t type;  ///< CUpti_ActivitySynchronizationType: 1 event, 2 stream waits for event, 3
                       ///< stream, 4 context
  std::uint64_t correlation, context, stream;
  std::uint64_t event;          ///< + 1
  std::uint64_t event_instant;  ///< + 1; which recording of the event: EventRecord::instant
};

/// An event was recorded in a stream.
struct EventRecord {
  static constexpr TableId kTable = TableId::kEvent;
  static constexpr unsigned kTexts = 0;
  std::uint64_t correlation, context, stream;
  std::uint64_t event;    ///< + 1
  std::uint64_t instant;  ///< + 1
};

/// A CUDA graph that ran, if its nodes are not recorded one by one.
struct GraphLaunchRecord {
  static constexpr TableId kTable = TableId::kGraphLaunch;
  static constexpr unsigned kTexts = 0;
  std::uint64_t start, end;
  std::uint64_t device, context, stream, correlation;
  std::uint64_t graph;
};

/// An allocation or a free of device memory.
struct MemoryRecord {
  static constexpr TableId kTable = TableId::kMemory;
  static constexpr unsigned kTexts = 0;
  std::uint64_t time, address, bytes;
  std::uint64_t operation;  ///< CUpti_ActivityMemoryOperationType: 1 allocated, 2 freed
  std::uint64_t kind;       ///< CUpti_ActivityMemoryKind
  std::uint64_t device, context, stream, correlation;
};

/// A compilation of a kernel while the program ran.
struct JitRecord {
  static constexpr TableId kTable = TableId::kJit;
  static constexpr unsigned kTexts = 0;
  std::uint64_t start, end, device, correlation;
};

/// Time by which the profiler delayed the program.
struct OverheadRecord {
  static constexpr TableId kTable = TableId::kOverhead;
  static constexpr unsigned kTexts = 0;
  std::uint64_t start, end;
  std::uint64_t kind;    ///< CUpti_ActivityOverheadKind
  std::uint64_t thread;  ///< system id
};

struct DeviceRecord {
  static constexpr TableId kTable = TableId::kDevice;
  static constexpr unsigned kTexts = 2;
  std::uint64_t name;
  std::uint64_t
      uuid;  ///< of the GPU, or of the MIG instance that the process sees: "GPU-…", "MIG-…"
  std::uint64_t device;
  std::uint64_t multiprocessors, memory_bytes, l2_bytes;
  std::uint64_t memory_bandwidth;          ///< bytes/s
  std::uint64_t core_clock, memory_clock;  ///< Hz, the highest
  std::uint64_t compute_major, compute_minor;
  std::uint64_t gpu_instance, compute_instance;  ///< + 1; 0 where MIG is off
};

struct ContextRecord {
  static constexpr TableId kTable = TableId::kContext;
  static constexpr unsigned kTexts = 0;
  std::uint64_t context, device, null_stream;
};

/// A communicator of NCCL, from its profiler interface.
struct CommunicatorRecord {
  static constexpr TableId kTable = TableId::kCommunicator;
  static constexpr unsigned kTexts = 1;
  std::uint64_t name;
  std::uint64_t communicator;  ///< hash that all its ranks share; unknown before NCCL 2.27
  std::uint64_t ranks;         ///< 0 if NCCL does not report it
  std::uint64_t rank, nodes;
};

/// A call of NCCL for a collective, a send or a receive.
struct CollectiveRecord {
  static constexpr TableId kTable = TableId::kCollective;
  static constexpr unsigned kTexts = 4;
  std::uint64_t function;  ///< AllReduce, Send, ...
  std::uint64_t datatype, algorithm, protocol;
  std::uint64_t start, end;  ///< of the bookkeeping after its kernel was launched, on the host
  std::uint64_t thread;      ///< system id
  std::uint64_t communicator;
  std::uint64_t sequence;  ///< + 1; counts the communicator's calls of this function
  std::uint64_t count;     ///< elements of one rank's argument, as NCCL counts them
  std::uint64_t bytes;     ///< of these
  std::uint64_t peer;      ///< + 1: root, or the other side
  std::uint64_t channels, warps;
  std::uint64_t call;  ///< number in the process; CollectiveKernelRecord names it
  std::uint64_t launch_start, launch_end;  ///< of the launch of its kernel, on the same thread
  std::uint64_t asked;     ///< when the program called it; this and the next: NCCL 2.28 on
  std::uint64_t stream;    ///< cudaStream_t
  std::uint64_t captured;  ///< 1 when it is part of a CUDA graph
};

/// The time of a collective's kernel on one channel, by the GPU's clock.
struct CollectiveKernelRecord {
  static constexpr TableId kTable = TableId::kCollectiveKernel;
  static constexpr unsigned kTexts = 0;
  std::uint64_t call, channel;
  std::uint64_t gpu_start, gpu_end;  ///< ns of globaltimer
};

/// A board that the process may use, or one MIG instance of it.
struct BoardRecord {
  static constexpr TableId kTable = TableId::kBoard;
  static constexpr unsigned kTexts = 3;
  std::uint64_t uuid;  ///< of the board: "GPU-…", as PowerRecord has it
  std::uint64_t name;
  std::uint64_t instance;             ///< of the MIG instance: "MIG-…"; none where MIG is off
  std::uint64_t index;                ///< of the board, as NVML counts
  std::uint64_t multiprocessors;      ///< of the instance
  std::uint64_t all_multiprocessors;  ///< of all instances that the board has
  std::uint64_t gpu_instance, compute_instance;  ///< + 1
  std::uint64_t power_limit;                     ///< mW
};

/// A reading of a board.
struct PowerRecord {
  static constexpr TableId kTable = TableId::kPower;
  static constexpr unsigned kTexts = 1;
  std::uint64_t uuid;  ///< of the board
  std::uint64_t time;
  std::uint64_t power;                     ///< mW
  std::uint64_t energy;                    ///< mJ since the driver was loaded; not in every record
  std::uint64_t core_clock, memory_clock;  ///< Hz
  std::uint64_t temperature;               ///< degrees Celsius
  std::uint64_t clock_reasons;             ///< NVML's bits for why the clock is not higher
};

/// A fact about the process as a whole: a version, a setting, data that could not be recorded.
struct FactRecord {
  static constexpr TableId kTable = TableId::kFact;
  static constexpr unsigned kTexts = 2;
  std::uint64_t key, value;
};

/// A step that was requested, from a ring or by a window, and its result.
struct KeptStepRecord {
  static constexpr TableId kTable = TableId::kKeptStep;
  static constexpr unsigned kTexts = 1;
  std::uint64_t reason;  ///< for people
  std::uint64_t step;    ///< its number
  std::uint64_t start, end;
  std::uint64_t cause;     ///< 1 the trigger, 2 another rank, 3 a neighbour of such a step
  std::uint64_t recorded;  ///< bytes that were encoded
  std::uint64_t kept;      ///< of these, bytes in the file
};

template <class Record>
inline constexpr unsigned kFieldsOf = sizeof(Record) / sizeof(std::uint64_t);

inline constexpr unsigned kMaxFields =
    64;  ///< no record has more; a reader refuses a block that says so

/// Whether a record has a time.
template <class Record>
inline constexpr bool kHasTimes = requires(const Record& record) {
  record.start, record.end;
};
template <class Record>
inline constexpr bool kHasTime = requires(const Record& record) {
  record.time;
};
/// Whether a record applies to the whole process, so that it is written whichever steps are
/// selected.
template <class Record>
inline constexpr bool kIsFact =
    !kHasTimes<Record> && !kHasTime<Record> && Record::kTable != TableId::kEvent &&
    Record::kTable != TableId::kCollectiveKernel;

}  // namespace rehearse::capture
