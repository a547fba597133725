// A CUPTI of any version for the mock driver (mock_gpu.h), by its environment:
//   MOCK_CUPTI_VERSION    what cuptiGetVersion says (130001 unless set); records have the sizes
//                         that this version gives them
//   MOCK_CUPTI_SUBSCRIBE  an error of cuptiSubscribe; MOCK_CUPTI_OTHER names who else holds it
//   MOCK_CUPTI_ENABLE     an error of enabling kernels
//   MOCK_CUPTI_DROP       records that it says it dropped
//   MOCK_CUPTI_LATE       records are given only when asked with force
//   MOCK_CUPTI_FLUSH_MS   a request for records takes so long
//   MOCK_CUPTI_NO_TIMES   every so manieth kernel has no times
//   MOCK_CUPTI_OLD        lacks the functions that came after CUDA 11
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "profiler/capture/cupti_abi.h"
#include "tests/capture_targets/cupti_sizes.h"
#include "tests/capture_targets/mock_gpu.h"

#define MOCK_ENTRY extern "C" [[gnu::visibility("default")]]

namespace {

using namespace rehearse::capture::cupti;

long variable(const char* name, long otherwise = 0) {
  const char* text = getenv(name);
  return text && *text ? atol(text) : otherwise;
}

std::uint32_t version() {
  static const auto set = static_cast<std::uint32_t>(variable("MOCK_CUPTI_VERSION", 130001));
  return set;
}

std::mutex state;  // of what follows
BufferRequested requested = nullptr;
BufferCompleted completed = nullptr;
std::uint8_t* buffer = nullptr;
std::size_t capacity = 0;
std::size_t used = 0;
bool enabled[64];
bool chosen[2][mock::kCalls];  // calls enabled one by one
bool flush_calls[2][mock::kCalls];
ApiCallback callback = nullptr;
unsigned kernels = 0;

void give_buffer() {
  if (!buffer) return;
  completed(nullptr, 0, buffer, capacity, used);
  buffer = nullptr;
  used = capacity = 0;
}

/// Room for a record of a kind, zeroed as the client promised. REQUIRES: `state` is held.
unsigned char* room(std::uint32_t record_kind) {
  const std::size_t bytes = record_bytes(record_kind, version());
  if (buffer && used + bytes > capacity) give_buffer();
  if (!buffer) {
    std::size_t most = 0;
    requested(&buffer, &capacity, &most);
    used = 0;
    if (!buffer || capacity < bytes) return nullptr;
  }
  unsigned char* record = buffer + used;
  used += bytes;
  std::memcpy(record, &record_kind, sizeof record_kind);
  return record;
}

template <class T, std::size_t kAt, class Value>
void put(unsigned char* record, Field<T, kAt>, Value value) {
  T typed;
  if constexpr (std::is_pointer_v<T>)
    typed = value;
  else
    typed = static_cast<T>(value);
  std::memcpy(record + kAt, &typed, sizeof typed);
}

/// Adds a record of a kind, if that is enabled, filled by fill(record).
template <class Fill>
void add(std::uint32_t record_kind, bool wanted, Fill fill) {
  const std::lock_guard lock(state);
  if (!wanted || !completed) return;
  if (unsigned char* record = room(record_kind)) fill(record);
}

void on_call(bool driver, mock::Call which, std::uint64_t start, std::uint64_t end,
             std::uint32_t thread, std::uint32_t correlation) {
  add(driver ? kDriver : kRuntime, enabled[driver ? kDriver : kRuntime] || chosen[driver][which],
      [&](unsigned char* r) {
        put(r, call::callback, which);
        put(r, call::start, start);
        put(r, call::end, end);
        put(r, call::thread, thread);
        put(r, call::correlation, correlation);
      });
}

void on_before_call(bool driver, mock::Call which) {
  if (!callback || !flush_calls[driver][which]) return;
  const ApiCallbackData data = {.site = 0};
  callback(nullptr, driver ? kDriverApi : kRuntimeApi, which, &data);
}

void on_kernel(const char* name, const unsigned grid[3], const unsigned block[3],
               std::uint64_t start, std::uint64_t end, std::uint32_t stream,
               std::uint32_t correlation, std::uint32_t graph, std::uint64_t node) {
  add(kConcurrentKernel, enabled[kConcurrentKernel], [&](unsigned char* r) {
    const long no_times = variable("MOCK_CUPTI_NO_TIMES");
    if (no_times > 0 && ++kernels % no_times == 0) start = end = 0;
    put(r, kernel::registers, 32);
    put(r, kernel::start, start);
    put(r, kernel::end, end);
    put(r, kernel::context, 1);
    put(r, kernel::stream, stream);
    put(r, kernel::grid_x, grid[0]);
    put(r, kernel::grid_y, grid[1]);
    put(r, kernel::grid_z, grid[2]);
    put(r, kernel::block_x, block[0]);
    put(r, kernel::block_y, block[1]);
    put(r, kernel::block_z, block[2]);
    put(r, kernel::static_shared, 1024);
    put(r, kernel::dynamic_shared, 2048);
    put(r, kernel::correlation, correlation);
    put(r, kernel::name, name);
    put(r, kernel::graph, graph);
    put(r, kernel::graph_node, node);
    if (version() >= kVersion11_8) put(r, kernel::cluster_x, 2);
  });
}

void on_copy(unsigned direction, unsigned from, unsigned to, std::uint64_t bytes,
             std::uint64_t start, std::uint64_t end, std::uint32_t stream,
             std::uint32_t correlation) {
  add(kMemcpy, enabled[kMemcpy], [&](unsigned char* r) {
    put(r, copy::direction, direction);
    put(r, copy::from, from);
    put(r, copy::to, to);
    put(r, copy::flags, from == 1 || to == 1 ? 0 : 1);
    put(r, copy::bytes, bytes);
    put(r, copy::start, start);
    put(r, copy::end, end);
    put(r, copy::context, 1);
    put(r, copy::stream, stream);
    put(r, copy::correlation, correlation);
  });
}

void on_peer_copy(unsigned from, unsigned to, std::uint64_t bytes, std::uint64_t start,
                  std::uint64_t end, std::uint32_t stream, std::uint32_t correlation) {
  add(kMemcpyPeer, enabled[kMemcpyPeer], [&](unsigned char* r) {
    put(r, copy::direction, 10);
    put(r, copy::from, 3);
    put(r, copy::to, 3);
    put(r, copy::flags, 1);
    put(r, copy::bytes, bytes);
    put(r, copy::start, start);
    put(r, copy::end, end);
    put(r, copy::context, 1);
    put(r, copy::stream, stream);
    put(r, peer_copy::from_device, from);
    put(r, peer_copy::to_device, to);
    put(r, peer_copy::correlation, correlation);
  });
}

void on_set(std::uint64_t bytes, std::uint64_t start, std::uint64_t end, std::uint32_t stream,
            std::uint32_t correlation) {
  add(kMemset, enabled[kMemset], [&](unsigned char* r) {
    put(r, set::bytes, bytes);
    put(r, set::memory, 3);
    put(r, set::start, start);
    put(r, set::end, end);
    put(r, set::context, 1);
    put(r, set::stream, stream);
    put(r, set::correlation, correlation);
  });
}

void on_memory(unsigned operation, std::uint64_t address, std::uint64_t bytes, std::uint64_t time,
               std::uint32_t correlation) {
  add(kMemory2, enabled[kMemory2], [&](unsigned char* r) {
    put(r, memory::operation, operation);
    put(r, memory::memory_kind, 3);
    put(r, memory::correlation, correlation);
    put(r, memory::address, address);
    put(r, memory::bytes, bytes);
    put(r, memory::time, time);
    put(r, memory::context, 1);
  });
}

void on_sync(unsigned type, std::uint64_t start, std::uint64_t end, std::uint32_t stream,
             std::uint32_t which, std::uint64_t instant, std::uint32_t correlation) {
  add(kSynchronization, enabled[kSynchronization], [&](unsigned char* r) {
    put(r, sync::type, type);
    put(r, sync::start, start);
    put(r, sync::end, end);
    put(r, sync::correlation, correlation);
    put(r, sync::context, 1);
    put(r, sync::stream, stream);
    put(r, sync::event, which);
    if (version() >= kVersion12_8) put(r, sync::instant, instant);
  });
}

void on_event(std::uint32_t which, std::uint64_t instant, std::uint32_t stream,
              std::uint32_t correlation) {
  add(kCudaEvent, enabled[kCudaEvent], [&](unsigned char* r) {
    put(r, event::correlation, correlation);
    put(r, event::context, 1);
    put(r, event::stream, stream);
    put(r, event::event, which);
    if (version() >= kVersion12_8) put(r, event::instant, instant);
  });
}

bool on_graph(std::uint32_t graph, std::uint64_t start, std::uint64_t end, std::uint32_t stream,
              std::uint32_t correlation) {
  if (!enabled[kGraphTrace]) return false;
  add(kGraphTrace, true, [&](unsigned char* r) {
    put(r, graph_trace::correlation, correlation);
    put(r, graph_trace::start, start);
    put(r, graph_trace::end, end);
    put(r, graph_trace::graph, graph);
    put(r, graph_trace::context, 1);
    put(r, graph_trace::stream, stream);
  });
  return true;
}

constexpr mock::Tracer kTracer = {on_call, on_before_call, on_kernel, on_copy,  on_peer_copy,
                                  on_set,  on_memory,      on_sync,   on_event, on_graph};

/// Device and context, as they come when they are made.
void add_device() {
  add(kDevice, enabled[kDevice], [](unsigned char* r) {
    put(r, device::memory_bandwidth, 3352320000u);
    put(r, device::memory_bytes, std::uint64_t{80} << 30);
    put(r, device::l2_bytes, 50u << 20);
    put(r, device::core_clock, 1980000);
    put(r, device::multiprocessors, 132);
    put(r, device::compute_major, 9);
    for (unsigned i = 0; i < 16; ++i) r[device::kUuid + i] = static_cast<unsigned char>(i);
    put(r, device::name, strdup("Mock H100"));
    if (version() >= kVersion11_6) {
      put(r, device::gpu_instance, UINT32_MAX);
      put(r, device::compute_instance, UINT32_MAX);
    }
  });
  add(kContext, enabled[kContext], [](unsigned char* r) {
    put(r, context::id, 1);
    put(r, context::null_stream, 7);
  });
}

/// Names as CUPTI has them: those of the run time end in the version that brought the call.
constexpr const char* kNames[2][mock::kCalls] = {
    {nullptr, "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaMemcpyPeerAsync_v4000",
     "cudaMemsetAsync_ptsz_v7000", "cudaMalloc_v3020", "cudaFree_v3020", "cudaEventRecord_v3020",
     "cudaStreamWaitEvent_v3020", "cudaStreamSynchronize_v3020", "cudaDeviceSynchronize_v3020",
     "cudaGraphLaunch_v10000", "cudaGetDevice_v3020", "cudaDeviceReset_v3020"},
    {nullptr, "cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuMemcpyPeerAsync", "cuMemsetD8Async",
     "cuMemAlloc_v2", "cuMemFree_v2", "cuEventRecord", "cuStreamWaitEvent",
     "cuStreamSynchronize_ptsz", "cuCtxSynchronize", "cuGraphLaunch", "cuCtxGetDevice",
     "cuDevicePrimaryCtxReset_v2"}};

Result error_of(const char* name) { return static_cast<Result>(variable(name)); }

}  // namespace

MOCK_ENTRY Result cuptiGetVersion(std::uint32_t* into) {
  *into = version();
  return kSuccess;
}

MOCK_ENTRY Result cuptiSubscribe(void** subscriber, ApiCallback called, void*) {
  *subscriber = &state;
  callback = called;
  return error_of("MOCK_CUPTI_SUBSCRIBE");
}

#ifndef MOCK_CUPTI_OLD
MOCK_ENTRY Result cuptiSubscribe_v2(void** subscriber, ApiCallback called, void* user,
                                    SubscriberParams* params) {
  const char* other = getenv("MOCK_CUPTI_OTHER");
  if (other && params->old_name) strncpy(params->old_name, other, params->old_name_bytes - 1);
  return cuptiSubscribe(subscriber, called, user);
}

MOCK_ENTRY Result cuptiActivityEnableRuntimeApi(std::uint32_t which, std::uint8_t on) {
  chosen[0][which] = on != 0;
  return kSuccess;
}

MOCK_ENTRY Result cuptiActivityEnableDriverApi(std::uint32_t which, std::uint8_t on) {
  chosen[1][which] = on != 0;
  return kSuccess;
}

MOCK_ENTRY Result cuptiActivityEnableAllSyncRecords(std::uint8_t) { return kSuccess; }
#endif

MOCK_ENTRY Result cuptiEnableCallback(std::uint32_t on, void*, std::uint32_t domain,
                                      std::uint32_t which) {
  flush_calls[domain == kDriverApi][which] = on != 0;
  return kSuccess;
}

MOCK_ENTRY Result cuptiGetCallbackName(std::uint32_t domain, std::uint32_t which,
                                       const char** name) {
  *name = which < mock::kCalls ? kNames[domain == kDriverApi][which] : nullptr;
  return *name ? kSuccess : kInvalidParameter;
}

MOCK_ENTRY Result cuptiActivitySetAttribute(std::uint32_t, std::size_t*, void*) { return kSuccess; }
MOCK_ENTRY Result cuptiSetThreadIdType(std::uint32_t) { return kSuccess; }

MOCK_ENTRY Result cuptiActivityRegisterCallbacks(BufferRequested request,
                                                 BufferCompleted complete) {
  requested = request;
  completed = complete;
  const auto attach = reinterpret_cast<mock::AttachTracer>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "mock_attach_tracer"));
  if (attach) attach(&kTracer);
  return kSuccess;
}

MOCK_ENTRY Result cuptiActivityEnable(std::uint32_t record_kind) {
  if (record_kind == kConcurrentKernel && variable("MOCK_CUPTI_ENABLE") != 0)
    return error_of("MOCK_CUPTI_ENABLE");
  if (record_kind >= std::size(enabled)) return kInvalidParameter;
  enabled[record_kind] = true;
  if (record_kind == kContext) add_device();
  return kSuccess;
}

MOCK_ENTRY Result cuptiActivityDisable(std::uint32_t record_kind) {
  if (record_kind < std::size(enabled)) enabled[record_kind] = false;
  return kSuccess;
}

MOCK_ENTRY Result cuptiActivityFlushAll(std::uint32_t flag) {
  if (const long ms = variable("MOCK_CUPTI_FLUSH_MS"))
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  if (variable("MOCK_CUPTI_LATE") != 0 && flag == 0) return kSuccess;
  const std::lock_guard lock(state);
  if (completed) give_buffer();
  return kSuccess;
}

MOCK_ENTRY Result cuptiActivityGetNextRecord(std::uint8_t* from, std::size_t valid,
                                             std::uint8_t** record) {
  std::size_t at = 0;
  if (*record) {
    std::uint32_t record_kind;
    std::memcpy(&record_kind, *record, sizeof record_kind);
    at = static_cast<std::size_t>(*record - from) + record_bytes(record_kind, version());
  }
  if (at >= valid) return kMaxLimitReached;
  *record = from + at;
  return kSuccess;
}

MOCK_ENTRY Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* records) {
  static std::atomic<bool> told{false};
  *records = told.exchange(true) ? 0 : static_cast<std::size_t>(variable("MOCK_CUPTI_DROP"));
  return kSuccess;
}
