// The part of NVIDIA's CUPTI that the library uses, in our own declarations: functions, numbers,
// and offsets of the fields of activity records. CUPTI only adds fields at the end, so these
// offsets hold for every record of CUDA 11.0 and later; a later field has the version that added
// it. Compared with NVIDIA's header at compile time if that is found (tests/abi).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rehearse::capture::cupti {

// Values of cuptiGetVersion: counted up to CUDA 12.9, then 130000 for 13.0.
inline constexpr std::uint32_t kVersion11_1 = 14;
inline constexpr std::uint32_t kVersion11_6 = 17;
inline constexpr std::uint32_t kVersion11_8 = 18;
inline constexpr std::uint32_t kVersion12_8 = 26;
inline constexpr std::uint32_t kVersion13_0 = 130000;

enum Result : int {
  kSuccess = 0,
  kInvalidParameter = 1,
  kMaxLimitReached = 12,
  kNotInitialized = 15,
  kInsufficientPrivileges = 35,
  kMultipleSubscribers = 39,
  kUnknownError = 999,
};

enum Kind : std::uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kDevice = 8,
  kContext = 9,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kMemcpyPeer = 22,
  kCudaEvent = 36,
  kSynchronization = 38,
  kMemory2 = 49,
  kGraphTrace = 51,
  kJit = 52,
};

enum Domain : std::uint32_t { kDriverApi = 1, kRuntimeApi = 2 };
enum Attribute : std::uint32_t { kZeroedOutBuffer = 5 };
inline constexpr std::uint32_t kSystemThreadId = 1;
inline constexpr std::uint32_t kFlushForced = 1;

using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                                 std::size_t bytes, std::size_t valid_bytes);
using ApiCallback = void (*)(void* user, std::uint32_t domain, std::uint32_t callback,
                             const void* data);

/// Parameters of cuptiSubscribe_v2, which exists since CUDA 13.0.
struct SubscriberParams {
  std::size_t size;
  const char* name;
  char* old_name;
  std::size_t old_name_bytes;
};
inline constexpr std::size_t kOldNameBytes = 64;

/// First fields of the data of an API callback: 0 before the call, 1 after it.
struct ApiCallbackData {
  std::uint32_t site;
};

/// A field of type T at a fixed place in a record.
template <class T, std::size_t kAt>
struct Field {
  static constexpr std::size_t at = kAt;
  using Type = T;
  T operator()(const unsigned char* record) const {
    T value;
    std::memcpy(&value, record + kAt, sizeof value);
    return value;
  }
};
template <std::size_t kAt>
using U8 = Field<std::uint8_t, kAt>;
template <std::size_t kAt>
using U16 = Field<std::uint16_t, kAt>;
template <std::size_t kAt>
using U32 = Field<std::uint32_t, kAt>;
template <std::size_t kAt>
using U64 = Field<std::uint64_t, kAt>;
template <std::size_t kAt>
using Text = Field<const char*, kAt>;

inline constexpr U32<0> kind;

namespace kernel {
inline constexpr U16<6> registers;
inline constexpr U64<16> start;
inline constexpr U64<24> end;
inline constexpr U32<40> device;
inline constexpr U32<44> context;
inline constexpr U32<48> stream;
inline constexpr U32<52> grid_x;
inline constexpr U32<56> grid_y;
inline constexpr U32<60> grid_z;
inline constexpr U32<64> block_x;
inline constexpr U32<68> block_y;
inline constexpr U32<72> block_z;
inline constexpr U32<76> static_shared;
inline constexpr U32<80> dynamic_shared;
inline constexpr U32<88> local_total;
inline constexpr U32<92> correlation;
inline constexpr Text<104> name;
inline constexpr U64<144> graph_node;
inline constexpr U32<156> graph;
inline constexpr U32<176> cluster_x;  // 11.8
inline constexpr U32<180> cluster_y;
inline constexpr U32<184> cluster_z;
}  // namespace kernel

namespace copy {
inline constexpr U8<4> direction;
inline constexpr U8<5> from;
inline constexpr U8<6> to;
inline constexpr U8<7> flags;  // bit 0: asynchronous
inline constexpr U64<8> bytes;
inline constexpr U64<16> start;
inline constexpr U64<24> end;
inline constexpr U32<32> device;
inline constexpr U32<36> context;
inline constexpr U32<40> stream;
inline constexpr U32<44> correlation;
inline constexpr U64<64> graph_node;  // 11.1
inline constexpr U32<72> graph;       // 11.1
}  // namespace copy

/// A copy between devices. Fields shared with a copy have its offsets, except these.
namespace peer_copy {
inline constexpr U32<44> from_device;
inline constexpr U32<52> to_device;
inline constexpr U32<60> correlation;
inline constexpr U64<72> graph_node;  // 11.1
inline constexpr U32<80> graph;       // 11.1
}  // namespace peer_copy

namespace set {
inline constexpr U32<4> value;
inline constexpr U64<8> bytes;
inline constexpr U64<16> start;
inline constexpr U64<24> end;
inline constexpr U32<32> device;
inline constexpr U32<36> context;
inline constexpr U32<40> stream;
inline constexpr U32<44> correlation;
inline constexpr U16<50> memory;
inline constexpr U64<64> graph_node;  // 11.1
inline constexpr U32<72> graph;       // 11.1
}  // namespace set

namespace call {
inline constexpr U32<4> callback;
inline constexpr U64<8> start;
inline constexpr U64<16> end;
inline constexpr U32<28> thread;
inline constexpr U32<32> correlation;
inline constexpr U32<36> result;
}  // namespace call

namespace sync {
inline constexpr U32<4> type;
inline constexpr U64<8> start;
inline constexpr U64<16> end;
inline constexpr U32<24> correlation;
inline constexpr U32<28> context;
inline constexpr U32<32> stream;
inline constexpr U32<36> event;
inline constexpr U64<40> instant;  // 12.8
}  // namespace sync

namespace event {
inline constexpr U32<4> correlation;
inline constexpr U32<8> context;
inline constexpr U32<12> stream;
inline constexpr U32<16> event;
inline constexpr U64<48> instant;  // 12.8
}  // namespace event

namespace graph_trace {
inline constexpr U32<4> correlation;
inline constexpr U64<8> start;
inline constexpr U64<16> end;
inline constexpr U32<24> device;
inline constexpr U32<28> graph;
inline constexpr U32<32> context;
inline constexpr U32<36> stream;
}  // namespace graph_trace

namespace memory {
inline constexpr U32<4> operation;
inline constexpr U32<8> memory_kind;
inline constexpr U32<12> correlation;
inline constexpr U64<16> address;
inline constexpr U64<24> bytes;
inline constexpr U64<32> time;
inline constexpr U32<52> device;
inline constexpr U32<56> context;
inline constexpr U32<60> stream;
}  // namespace memory

namespace jit {
inline constexpr U32<12> device;
inline constexpr U64<16> start;
inline constexpr U64<24> end;
inline constexpr U32<32> correlation;
}  // namespace jit

namespace overhead {
inline constexpr U32<4> overhead_kind;
inline constexpr U32<8> object_kind;  // 2: a thread
inline constexpr U32<16> thread;      // of object_kind 2, after its process
inline constexpr U64<24> start;
inline constexpr U64<32> end;
inline constexpr Field<void*, 48> data;  // 13.0 for certain; freed by the reader
inline constexpr std::uint32_t kThread = 2;
}  // namespace overhead

namespace device {
inline constexpr U64<8> memory_bandwidth;  // 1000 bytes/s
inline constexpr U64<16> memory_bytes;
inline constexpr U32<28> l2_bytes;
inline constexpr U32<36> core_clock;  // kHz
inline constexpr U32<44> multiprocessors;
inline constexpr U32<104> compute_major;
inline constexpr U32<108> compute_minor;
inline constexpr U32<112> id;
inline constexpr std::size_t kUuid = 120;  // 16 bytes
inline constexpr Text<136> name;           // 13.0: freed by the reader
inline constexpr U8<145> mig;              // 11.6
inline constexpr U32<152> gpu_instance;
inline constexpr U32<156> compute_instance;
inline constexpr std::size_t kMigUuid = 160;
}  // namespace device

namespace context {
inline constexpr U32<4> id;
inline constexpr U32<8> device;
inline constexpr U16<14> null_stream;
}  // namespace context

}  // namespace rehearse::capture::cupti
