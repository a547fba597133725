// NCCL's profiler interface, as far as we use it: our own declarations of versions 3 to 6 (NCCL
// 2.26, 2.27, 2.28, 2.29).
//
// NCCL looks in a library for `ncclProfiler_vN` of the newest version that it knows. All versions
// agree in the head of an event's description: byte 8 has the parent, byte 16 the rank, and byte 24
// data that depends on the type. The later bytes have the layout that the 64-bit System V ABI gives
// the interface's documented fields; no header of NCCL is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::capture::nccl {

using Result = int;  ///< ncclResult_t: 0 success
inline constexpr Result kSuccess = 0;
inline constexpr Result kSystemError = 2;

/// Kinds of events, one bit each.
enum EventType : std::uint64_t {
  kGroup = 1 << 0,
  kCollective = 1 << 1,
  kSendReceive = 1 << 2,
  kKernelChannel = 1 << 6,
  kGroupCall = 1 << 8,
  kCollectiveCall = 1 << 9,
  kSendReceiveCall = 1 << 10,
  kKernelLaunch = 1 << 11,
};

/// The only state that we read: the end of a kernel's channel, with the device's clock.
inline constexpr int kKernelChannelStop = 22;

/// Versions 3 and 4: `type` is one byte.
struct EventHead3 {
  std::uint8_t type;
  void* parent;
  int rank;
};
/// Versions 5 and 6.
struct EventHead5 {
  std::uint64_t type;
  void* parent;
  int rank;
};
inline constexpr std::size_t kDetailAt = 24;
static_assert(offsetof(EventHead3, parent) == 8 && offsetof(EventHead3, rank) == 16 &&
              sizeof(EventHead3) == kDetailAt);
static_assert(offsetof(EventHead5, parent) == 8 && offsetof(EventHead5, rank) == 16 &&
              sizeof(EventHead5) == kDetailAt);

// Contents at kDetailAt, by the type of the event and the version of the interface.

/// kCollective of version 4 and later.
struct Collective {
  std::uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
static_assert(offsetof(Collective, count) == 32 && offsetof(Collective, datatype) == 48 &&
              offsetof(Collective, channels) == 56 && offsetof(Collective, algorithm) == 64 &&
              sizeof(Collective) == 80);

/// kCollective of version 3, which has the communicator in each event.
struct Collective3 {
  const char* communicator_name;
  std::uint64_t communicator;
  Collective what;
};
static_assert(offsetof(Collective3, what) == 16 && sizeof(Collective3) == 96);

/// kSendReceive of version 4 and later; version 3 has no channels.
struct SendReceive {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};
static_assert(offsetof(SendReceive, count) == 24 && offsetof(SendReceive, peer) == 32 &&
              offsetof(SendReceive, channels) == 36);

struct SendReceive3 {
  const char* communicator_name;
  std::uint64_t communicator;
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
};
static_assert(offsetof(SendReceive3, peer) == 48);

/// kCollectiveCall of version 5 and later.
struct CollectiveCall {
  const char* function;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool captured;  ///< into a CUDA graph
};
static_assert(offsetof(CollectiveCall, stream) == 32 && offsetof(CollectiveCall, captured) == 40);

/// kSendReceiveCall of version 5 and later.
struct SendReceiveCall {
  const char* function;
  std::size_t count;
  const char* datatype;
  void* stream;
  bool captured;
};
static_assert(offsetof(SendReceiveCall, stream) == 24 && offsetof(SendReceiveCall, captured) == 32);

/// kKernelLaunch of version 5 and later.
struct KernelLaunch {
  void* stream;
};

/// kKernelChannel; version 3 has no time.
struct KernelChannel {
  std::uint8_t channel;
  std::uint64_t time;  ///< of its start, by the device's clock
};
static_assert(offsetof(KernelChannel, time) == 8);

/// Data of kKernelChannelStop of version 4 and later.
struct KernelChannelStop {
  std::uint64_t time;
};

using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);
using StartEvent = Result (*)(void* context, void** handle, void* event);
using StopEvent = Result (*)(void* handle);
using RecordState = Result (*)(void* handle, int state, void* arguments);
using Finalize = Result (*)(void* context);

/// The tables of functions; NCCL keeps a pointer to the one it took.
template <class Init>
struct Profiler {
  const char* name;
  Init init;
  StartEvent start_event;
  StopEvent stop_event;
  RecordState record_state;
  Finalize finalize;
};
using Init3 = Result (*)(void** context, int* mask);
using Init4 = Result (*)(void** context, int* mask, const char* name, std::uint64_t communicator,
                         int nodes, int ranks, int rank, Logger log);
using Init5 = Result (*)(void** context, std::uint64_t communicator, int* mask, const char* name,
                         int nodes, int ranks, int rank, Logger log);
static_assert(sizeof(Profiler<Init3>) == 48 && sizeof(Profiler<Init5>) == 48);

}  // namespace rehearse::capture::nccl
