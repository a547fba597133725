// libcuda.so.1 that has one device of its own making: see mock_gpu.h.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/capture_targets/mock_gpu.h"

#define MOCK_ENTRY extern "C" [[gnu::visibility("default")]]

namespace {

constexpr std::uint32_t kStreams = 64;

const mock::Tracer* tracer = nullptr;
std::mutex device;  // of what follows
std::uint64_t stream_ends[kStreams];
struct Event {
  std::uint64_t time = 0;
  std::uint64_t instant = 0;
};
Event events[kStreams];
std::uint64_t instants = 0;
std::uint64_t nodes_run = 0;
std::atomic<std::uint32_t> correlations{0};

std::uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

void wait_until(std::uint64_t time) {
  for (std::uint64_t t; (t = now()) < time;)
    if (time - t > 200000) std::this_thread::sleep_for(std::chrono::nanoseconds(time - t - 100000));
}

std::uint32_t thread_id() { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

/// One call of the run time, with one of the driver inside. `work(correlation)` is what it does.
template <class Work>
void in_call(mock::Call call, Work work, bool runtime = true) {
  const std::uint32_t correlation = ++correlations;
  const std::uint64_t begin = now();
  if (tracer && runtime) tracer->before_call(false, call);
  if (tracer) tracer->before_call(true, call);
  const std::uint64_t inner = now();
  work(correlation);
  const std::uint64_t inner_end = now();
  if (!tracer) return;
  tracer->call(true, call, inner, inner_end, thread_id(), correlation);
  if (runtime) tracer->call(false, call, begin, now(), thread_id(), correlation);
}

/// Appends work of a duration to the stream, and returns its start. REQUIRES: `device` is held.
std::uint64_t place(std::uint32_t stream, std::uint64_t duration) {
  // A launch takes some microseconds to get to the device.
  const std::uint64_t start = std::max(stream_ends[stream % kStreams], now() + 2000);
  stream_ends[stream % kStreams] = start + duration;
  return start;
}

void launch(const char* name, const unsigned grid[3], const unsigned block[3],
            std::uint64_t duration, std::uint32_t stream, std::uint32_t correlation) {
  const std::lock_guard lock(device);
  const std::uint64_t start = place(stream, duration);
  if (tracer) tracer->kernel(name, grid, block, start, start + duration, stream, correlation, 0, 0);
}

void synchronize(mock::Call call, unsigned type, std::uint32_t stream) {
  in_call(call, [&](std::uint32_t correlation) {
    const std::uint64_t begin = now();
    std::uint64_t end = 0;
    {
      const std::lock_guard lock(device);
      for (std::uint32_t s = 0; s < kStreams; ++s)
        if (call == mock::kDeviceSynchronize || s == stream) end = std::max(end, stream_ends[s]);
    }
    wait_until(end);
    if (tracer)
      tracer->sync(type, begin, now(), call == mock::kDeviceSynchronize ? UINT32_MAX : stream,
                   UINT32_MAX, 0, correlation);
  });
}

}  // namespace

MOCK_ENTRY int cuInit(unsigned) {
  const char* code = getenv("MOCK_CUDA_INIT");
  if (code && atoi(code) != 0) return atoi(code);
  static std::once_flag once;
  std::call_once(once, [] {
    const char* injected = getenv("CUDA_INJECTION64_PATH");
    void* library = injected && *injected ? dlopen(injected, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library) return;
    if (const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")))
      initialize();
  });
  return 0;
}

MOCK_ENTRY int cuDriverGetVersion(int* version) {
  const char* set = getenv("MOCK_CUDA_VERSION");
  *version = set ? atoi(set) : 13000;
  return 0;
}

MOCK_ENTRY int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

MOCK_ENTRY void mock_attach_tracer(const mock::Tracer* attached) { tracer = attached; }

MOCK_ENTRY void mock_launch(const char* name, const unsigned grid[3], const unsigned block[3],
                            std::uint64_t duration, std::uint32_t stream) {
  in_call(mock::kLaunchKernel, [&](std::uint32_t correlation) {
    launch(name, grid, block, duration, stream, correlation);
  });
}

MOCK_ENTRY void mock_driver_launch(const char* name, std::uint64_t duration, std::uint32_t stream) {
  constexpr unsigned kOne[3] = {1, 1, 1};
  in_call(
      mock::kLaunchKernel,
      [&](std::uint32_t correlation) { launch(name, kOne, kOne, duration, stream, correlation); },
      false);
}

MOCK_ENTRY void mock_copy(unsigned direction, std::uint64_t bytes, std::uint64_t duration,
                          std::uint32_t stream, int pageable) {
  in_call(mock::kMemcpyAsync, [&](std::uint32_t correlation) {
    std::uint64_t start;
    {
      const std::lock_guard lock(device);
      start = place(stream, duration);
    }
    if (pageable) wait_until(start + duration);
    const unsigned host = pageable ? 1 : 2;
    if (tracer)
      tracer->copy(direction, direction == 1 ? host : 3, direction == 2 ? host : 3, bytes, start,
                   start + duration, stream, correlation);
  });
}

MOCK_ENTRY void mock_peer_copy(unsigned from, unsigned to, std::uint64_t bytes,
                               std::uint64_t duration, std::uint32_t stream) {
  in_call(mock::kMemcpyPeerAsync, [&](std::uint32_t correlation) {
    const std::lock_guard lock(device);
    const std::uint64_t start = place(stream, duration);
    if (tracer) tracer->peer_copy(from, to, bytes, start, start + duration, stream, correlation);
  });
}

MOCK_ENTRY void mock_set(std::uint64_t bytes, std::uint64_t duration, std::uint32_t stream) {
  in_call(mock::kMemsetAsync, [&](std::uint32_t correlation) {
    const std::lock_guard lock(device);
    const std::uint64_t start = place(stream, duration);
    if (tracer) tracer->set(bytes, start, start + duration, stream, correlation);
  });
}

MOCK_ENTRY void mock_allocate(std::uint64_t address, std::uint64_t bytes) {
  in_call(mock::kMalloc, [&](std::uint32_t correlation) {
    if (tracer) tracer->memory(1, address, bytes, now(), correlation);
  });
}

MOCK_ENTRY void mock_free(std::uint64_t address, std::uint64_t bytes) {
  in_call(mock::kFree, [&](std::uint32_t correlation) {
    if (tracer) tracer->memory(2, address, bytes, now(), correlation);
  });
}

MOCK_ENTRY void mock_event_record(std::uint32_t event, std::uint32_t stream) {
  in_call(mock::kEventRecord, [&](std::uint32_t correlation) {
    const std::lock_guard lock(device);
    events[event % kStreams] = {stream_ends[stream % kStreams], ++instants};
    if (tracer) tracer->event(event, instants, stream, correlation);
  });
}

MOCK_ENTRY void mock_stream_wait(std::uint32_t stream, std::uint32_t event) {
  in_call(mock::kStreamWaitEvent, [&](std::uint32_t correlation) {
    const std::uint64_t begin = now();
    const std::lock_guard lock(device);
    const Event& awaited = events[event % kStreams];
    std::uint64_t& end = stream_ends[stream % kStreams];
    end = std::max(end, awaited.time);
    if (tracer) tracer->sync(2, begin, now(), stream, event, awaited.instant, correlation);
  });
}

MOCK_ENTRY void mock_stream_synchronize(std::uint32_t stream) {
  synchronize(mock::kStreamSynchronize, 3, stream);
}

MOCK_ENTRY void mock_device_synchronize() { synchronize(mock::kDeviceSynchronize, 4, 0); }

MOCK_ENTRY void mock_graph_launch(std::uint32_t graph, unsigned nodes, std::uint64_t duration,
                                  std::uint32_t stream) {
  constexpr unsigned kGrid[3] = {8, 1, 1}, kBlock[3] = {128, 1, 1};
  in_call(mock::kGraphLaunch, [&](std::uint32_t correlation) {
    const std::lock_guard lock(device);
    const std::uint64_t start = place(stream, duration * nodes);
    if (!tracer || tracer->graph(graph, start, start + duration * nodes, stream, correlation))
      return;
    for (unsigned n = 0; n < nodes; ++n)
      tracer->kernel("graph_node_kernel", kGrid, kBlock, start + duration * n,
                     start + duration * (n + 1), stream, correlation, graph, ++nodes_run);
  });
}

MOCK_ENTRY void mock_query() {
  in_call(mock::kGetDevice, [](std::uint32_t) {});
}

MOCK_ENTRY void mock_device_reset() {
  in_call(mock::kDeviceReset, [](std::uint32_t) {});
}
