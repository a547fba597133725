// A GPU that is not there: what the mock driver (mock_cuda.cc) offers to programs, and what it
// tells the mock CUPTI (mock_cupti.cc). Durations are the program's to choose, and the device keeps
// them to the nanosecond: tests know exactly what a recording has to hold.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Of the driver itself. MOCK_CUDA_INIT makes cuInit fail with that number, MOCK_CUDA_VERSION is the
// version it supports (13000 unless set).
int cuInit(unsigned flags);
int cuDriverGetVersion(int* version);

// The device executes what streams hold in order; streams side by side. Calls return at once unless
// they wait. Each is one call of the run time with one of the driver inside, as frameworks make
// them; `mock_driver_launch` is of the driver alone.
void mock_launch(const char* name, const unsigned grid[3], const unsigned block[3],
                 std::uint64_t duration_ns, std::uint32_t stream);
void mock_driver_launch(const char* name, std::uint64_t duration_ns, std::uint32_t stream);
void mock_copy(unsigned direction, std::uint64_t bytes, std::uint64_t duration_ns,
               std::uint32_t stream, int pageable);
void mock_peer_copy(unsigned from, unsigned to, std::uint64_t bytes, std::uint64_t duration_ns,
                    std::uint32_t stream);
void mock_set(std::uint64_t bytes, std::uint64_t duration_ns, std::uint32_t stream);
void mock_allocate(std::uint64_t address, std::uint64_t bytes);
void mock_free(std::uint64_t address, std::uint64_t bytes);
void mock_event_record(std::uint32_t event, std::uint32_t stream);
void mock_stream_wait(std::uint32_t stream, std::uint32_t event);
void mock_stream_synchronize(std::uint32_t stream);
void mock_device_synchronize();
/// A graph of `nodes` kernels of one duration.
void mock_graph_launch(std::uint32_t graph, unsigned nodes, std::uint64_t duration_ns,
                       std::uint32_t stream);
/// A call that is not worth recording.
void mock_query();
void mock_device_reset();
}

namespace mock {

/// Numbers of the calls, as the mock CUPTI knows them.
enum Call : std::uint32_t {
  kLaunchKernel = 1,
  kMemcpyAsync,
  kMemcpyPeerAsync,
  kMemsetAsync,
  kMalloc,
  kFree,
  kEventRecord,
  kStreamWaitEvent,
  kStreamSynchronize,
  kDeviceSynchronize,
  kGraphLaunch,
  kGetDevice,
  kDeviceReset,
  kCalls,
};

/// What the mock CUPTI wants to hear of.
struct Tracer {
  void (*call)(bool driver, Call call, std::uint64_t start, std::uint64_t end, std::uint32_t thread,
               std::uint32_t correlation);
  void (*before_call)(bool driver, Call call);
  void (*kernel)(const char* name, const unsigned grid[3], const unsigned block[3],
                 std::uint64_t start, std::uint64_t end, std::uint32_t stream,
                 std::uint32_t correlation, std::uint32_t graph, std::uint64_t node);
  void (*copy)(unsigned direction, unsigned from, unsigned to, std::uint64_t bytes,
               std::uint64_t start, std::uint64_t end, std::uint32_t stream,
               std::uint32_t correlation);
  void (*peer_copy)(unsigned from, unsigned to, std::uint64_t bytes, std::uint64_t start,
                    std::uint64_t end, std::uint32_t stream, std::uint32_t correlation);
  void (*set)(std::uint64_t bytes, std::uint64_t start, std::uint64_t end, std::uint32_t stream,
              std::uint32_t correlation);
  void (*memory)(unsigned operation, std::uint64_t address, std::uint64_t bytes, std::uint64_t time,
                 std::uint32_t correlation);
  void (*sync)(unsigned type, std::uint64_t start, std::uint64_t end, std::uint32_t stream,
               std::uint32_t event, std::uint64_t instant, std::uint32_t correlation);
  void (*event)(std::uint32_t event, std::uint64_t instant, std::uint32_t stream,
                std::uint32_t correlation);
  /// A launch of a graph as a whole; false when its nodes are to be told one by one.
  bool (*graph)(std::uint32_t graph, std::uint64_t start, std::uint64_t end, std::uint32_t stream,
                std::uint32_t correlation);
};

/// The mock driver's function "mock_attach_tracer".
using AttachTracer = void (*)(const Tracer*);

}  // namespace mock
