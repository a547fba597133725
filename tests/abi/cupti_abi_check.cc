// Compares cupti_abi.h with NVIDIA's header: what differs does not compile. Older records, which
// the header keeps, must have the same fields at the same places. Headers before CUDA 13.0 lack the
// newest of them and are not compared.
#include <cstddef>
#include <type_traits>

#include <cupti.h>

#include "profiler/capture/cupti_abi.h"

#if CUPTI_API_VERSION >= 130000
namespace rehearse::capture::cupti {
namespace {

#define REHEARSE_FIELD(ours, Record, member)           \
  static_assert(ours.at == offsetof(Record, member) && \
                sizeof(decltype(ours)::Type) == sizeof(((Record*)nullptr)->member))

#define REHEARSE_KERNEL(Record)                                        \
  REHEARSE_FIELD(kind, Record, kind);                                  \
  REHEARSE_FIELD(kernel::registers, Record, registersPerThread);       \
  REHEARSE_FIELD(kernel::start, Record, start);                        \
  REHEARSE_FIELD(kernel::end, Record, end);                            \
  REHEARSE_FIELD(kernel::device, Record, deviceId);                    \
  REHEARSE_FIELD(kernel::context, Record, contextId);                  \
  REHEARSE_FIELD(kernel::stream, Record, streamId);                    \
  REHEARSE_FIELD(kernel::grid_x, Record, gridX);                       \
  REHEARSE_FIELD(kernel::grid_y, Record, gridY);                       \
  REHEARSE_FIELD(kernel::grid_z, Record, gridZ);                       \
  REHEARSE_FIELD(kernel::block_x, Record, blockX);                     \
  REHEARSE_FIELD(kernel::block_y, Record, blockY);                     \
  REHEARSE_FIELD(kernel::block_z, Record, blockZ);                     \
  REHEARSE_FIELD(kernel::static_shared, Record, staticSharedMemory);   \
  REHEARSE_FIELD(kernel::dynamic_shared, Record, dynamicSharedMemory); \
  REHEARSE_FIELD(kernel::local_total, Record, localMemoryTotal);       \
  REHEARSE_FIELD(kernel::correlation, Record, correlationId);          \
  REHEARSE_FIELD(kernel::name, Record, name);                          \
  REHEARSE_FIELD(kernel::graph_node, Record, graphNodeId);             \
  REHEARSE_FIELD(kernel::graph, Record, graphId)
REHEARSE_KERNEL(CUpti_ActivityKernel5);
REHEARSE_KERNEL(CUpti_ActivityKernel6);
REHEARSE_KERNEL(CUpti_ActivityKernel7);
REHEARSE_KERNEL(CUpti_ActivityKernel8);
REHEARSE_KERNEL(CUpti_ActivityKernel9);
REHEARSE_KERNEL(CUpti_ActivityKernel10);
REHEARSE_FIELD(kernel::cluster_x, CUpti_ActivityKernel8, clusterX);
REHEARSE_FIELD(kernel::cluster_y, CUpti_ActivityKernel9, clusterY);
REHEARSE_FIELD(kernel::cluster_z, CUpti_ActivityKernel10, clusterZ);

#define REHEARSE_COPY(Record)                        \
  REHEARSE_FIELD(copy::direction, Record, copyKind); \
  REHEARSE_FIELD(copy::from, Record, srcKind);       \
  REHEARSE_FIELD(copy::to, Record, dstKind);         \
  REHEARSE_FIELD(copy::flags, Record, flags);        \
  REHEARSE_FIELD(copy::bytes, Record, bytes);        \
  REHEARSE_FIELD(copy::start, Record, start);        \
  REHEARSE_FIELD(copy::end, Record, end);            \
  REHEARSE_FIELD(copy::device, Record, deviceId);    \
  REHEARSE_FIELD(copy::context, Record, contextId);  \
  REHEARSE_FIELD(copy::stream, Record, streamId)
REHEARSE_COPY(CUpti_ActivityMemcpy4);
REHEARSE_COPY(CUpti_ActivityMemcpy5);
REHEARSE_COPY(CUpti_ActivityMemcpy6);
REHEARSE_FIELD(copy::correlation, CUpti_ActivityMemcpy4, correlationId);
REHEARSE_FIELD(copy::correlation, CUpti_ActivityMemcpy6, correlationId);
REHEARSE_FIELD(copy::graph_node, CUpti_ActivityMemcpy4, graphNodeId);
REHEARSE_FIELD(copy::graph_node, CUpti_ActivityMemcpy6, graphNodeId);
REHEARSE_FIELD(copy::graph, CUpti_ActivityMemcpy4, graphId);
REHEARSE_FIELD(copy::graph, CUpti_ActivityMemcpy6, graphId);
REHEARSE_COPY(CUpti_ActivityMemcpyPtoP3);
REHEARSE_COPY(CUpti_ActivityMemcpyPtoP4);
REHEARSE_FIELD(peer_copy::from_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
REHEARSE_FIELD(peer_copy::to_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
REHEARSE_FIELD(peer_copy::correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
REHEARSE_FIELD(peer_copy::graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);
REHEARSE_FIELD(peer_copy::graph, CUpti_ActivityMemcpyPtoP4, graphId);
REHEARSE_FIELD(peer_copy::graph, CUpti_ActivityMemcpyPtoP3, graphId);

#define REHEARSE_SET(Record)                               \
  REHEARSE_FIELD(set::value, Record, value);               \
  REHEARSE_FIELD(set::bytes, Record, bytes);               \
  REHEARSE_FIELD(set::start, Record, start);               \
  REHEARSE_FIELD(set::end, Record, end);                   \
  REHEARSE_FIELD(set::device, Record, deviceId);           \
  REHEARSE_FIELD(set::context, Record, contextId);         \
  REHEARSE_FIELD(set::stream, Record, streamId);           \
  REHEARSE_FIELD(set::correlation, Record, correlationId); \
  REHEARSE_FIELD(set::memory, Record, memoryKind);         \
  REHEARSE_FIELD(set::graph_node, Record, graphNodeId);    \
  REHEARSE_FIELD(set::graph, Record, graphId)
REHEARSE_SET(CUpti_ActivityMemset3);
REHEARSE_SET(CUpti_ActivityMemset4);

REHEARSE_FIELD(call::callback, CUpti_ActivityAPI, cbid);
REHEARSE_FIELD(call::start, CUpti_ActivityAPI, start);
REHEARSE_FIELD(call::end, CUpti_ActivityAPI, end);
REHEARSE_FIELD(call::thread, CUpti_ActivityAPI, threadId);
REHEARSE_FIELD(call::correlation, CUpti_ActivityAPI, correlationId);
REHEARSE_FIELD(call::result, CUpti_ActivityAPI, returnValue);

#define REHEARSE_SYNC(Record)                               \
  REHEARSE_FIELD(sync::type, Record, type);                 \
  REHEARSE_FIELD(sync::start, Record, start);               \
  REHEARSE_FIELD(sync::end, Record, end);                   \
  REHEARSE_FIELD(sync::correlation, Record, correlationId); \
  REHEARSE_FIELD(sync::context, Record, contextId);         \
  REHEARSE_FIELD(sync::stream, Record, streamId);           \
  REHEARSE_FIELD(sync::event, Record, cudaEventId)
REHEARSE_SYNC(CUpti_ActivitySynchronization);
REHEARSE_SYNC(CUpti_ActivitySynchronization2);
REHEARSE_FIELD(sync::instant, CUpti_ActivitySynchronization2, cudaEventSyncId);

REHEARSE_FIELD(event::correlation, CUpti_ActivityCudaEvent, correlationId);
REHEARSE_FIELD(event::correlation, CUpti_ActivityCudaEvent2, correlationId);
REHEARSE_FIELD(event::context, CUpti_ActivityCudaEvent2, contextId);
REHEARSE_FIELD(event::stream, CUpti_ActivityCudaEvent2, streamId);
REHEARSE_FIELD(event::event, CUpti_ActivityCudaEvent2, eventId);
REHEARSE_FIELD(event::instant, CUpti_ActivityCudaEvent2, cudaEventSyncId);

#define REHEARSE_GRAPH(Record)                                     \
  REHEARSE_FIELD(graph_trace::correlation, Record, correlationId); \
  REHEARSE_FIELD(graph_trace::start, Record, start);               \
  REHEARSE_FIELD(graph_trace::end, Record, end);                   \
  REHEARSE_FIELD(graph_trace::device, Record, deviceId);           \
  REHEARSE_FIELD(graph_trace::graph, Record, graphId);             \
  REHEARSE_FIELD(graph_trace::context, Record, contextId);         \
  REHEARSE_FIELD(graph_trace::stream, Record, streamId)
REHEARSE_GRAPH(CUpti_ActivityGraphTrace);
REHEARSE_GRAPH(CUpti_ActivityGraphTrace2);

#define REHEARSE_MEMORY(Record)                                   \
  REHEARSE_FIELD(memory::operation, Record, memoryOperationType); \
  REHEARSE_FIELD(memory::memory_kind, Record, memoryKind);        \
  REHEARSE_FIELD(memory::correlation, Record, correlationId);     \
  REHEARSE_FIELD(memory::address, Record, address);               \
  REHEARSE_FIELD(memory::bytes, Record, bytes);                   \
  REHEARSE_FIELD(memory::time, Record, timestamp);                \
  REHEARSE_FIELD(memory::device, Record, deviceId);               \
  REHEARSE_FIELD(memory::context, Record, contextId);             \
  REHEARSE_FIELD(memory::stream, Record, streamId)
REHEARSE_MEMORY(CUpti_ActivityMemory2);
REHEARSE_MEMORY(CUpti_ActivityMemory3);
REHEARSE_MEMORY(CUpti_ActivityMemory4);

REHEARSE_FIELD(jit::device, CUpti_ActivityJit2, deviceId);
REHEARSE_FIELD(jit::start, CUpti_ActivityJit2, start);
REHEARSE_FIELD(jit::end, CUpti_ActivityJit2, end);
REHEARSE_FIELD(jit::correlation, CUpti_ActivityJit2, correlationId);

REHEARSE_FIELD(overhead::overhead_kind, CUpti_ActivityOverhead3, overheadKind);
REHEARSE_FIELD(overhead::object_kind, CUpti_ActivityOverhead3, objectKind);
REHEARSE_FIELD(overhead::start, CUpti_ActivityOverhead3, start);
REHEARSE_FIELD(overhead::end, CUpti_ActivityOverhead3, end);
REHEARSE_FIELD(overhead::data, CUpti_ActivityOverhead3, overheadData);
REHEARSE_FIELD(overhead::start, CUpti_ActivityOverhead, start);
REHEARSE_FIELD(overhead::end, CUpti_ActivityOverhead, end);
static_assert(overhead::thread.at == offsetof(CUpti_ActivityOverhead3, objectId) +
                                         offsetof(CUpti_ActivityObjectKindId, pt.threadId));

#define REHEARSE_DEVICE(Record)                                            \
  REHEARSE_FIELD(device::memory_bandwidth, Record, globalMemoryBandwidth); \
  REHEARSE_FIELD(device::memory_bytes, Record, globalMemorySize);          \
  REHEARSE_FIELD(device::l2_bytes, Record, l2CacheSize);                   \
  REHEARSE_FIELD(device::core_clock, Record, coreClockRate);               \
  REHEARSE_FIELD(device::multiprocessors, Record, numMultiprocessors);     \
  REHEARSE_FIELD(device::compute_major, Record, computeCapabilityMajor);   \
  REHEARSE_FIELD(device::compute_minor, Record, computeCapabilityMinor);   \
  REHEARSE_FIELD(device::id, Record, id);                                  \
  REHEARSE_FIELD(device::name, Record, name);                              \
  static_assert(device::kUuid == offsetof(Record, uuid))
REHEARSE_DEVICE(CUpti_ActivityDevice2);
REHEARSE_DEVICE(CUpti_ActivityDevice4);
REHEARSE_DEVICE(CUpti_ActivityDevice5);
REHEARSE_FIELD(device::mig, CUpti_ActivityDevice4, isMigEnabled);
REHEARSE_FIELD(device::mig, CUpti_ActivityDevice5, isMigEnabled);
REHEARSE_FIELD(device::gpu_instance, CUpti_ActivityDevice5, gpuInstanceId);
REHEARSE_FIELD(device::compute_instance, CUpti_ActivityDevice5, computeInstanceId);
static_assert(device::kMigUuid == offsetof(CUpti_ActivityDevice5, migUuid));

REHEARSE_FIELD(context::id, CUpti_ActivityContext3, contextId);
REHEARSE_FIELD(context::device, CUpti_ActivityContext3, deviceId);
REHEARSE_FIELD(context::null_stream, CUpti_ActivityContext3, nullStreamId);
REHEARSE_FIELD(context::null_stream, CUpti_ActivityContext2, nullStreamId);

constexpr bool same(auto ours, auto theirs) {
  return static_cast<long>(ours) == static_cast<long>(theirs);
}
static_assert(same(kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY));
static_assert(same(kMemset, CUPTI_ACTIVITY_KIND_MEMSET));
static_assert(same(kDriver, CUPTI_ACTIVITY_KIND_DRIVER));
static_assert(same(kRuntime, CUPTI_ACTIVITY_KIND_RUNTIME));
static_assert(same(kDevice, CUPTI_ACTIVITY_KIND_DEVICE));
static_assert(same(kContext, CUPTI_ACTIVITY_KIND_CONTEXT));
static_assert(same(kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
static_assert(same(kOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD));
static_assert(same(kMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2));
static_assert(same(kCudaEvent, CUPTI_ACTIVITY_KIND_CUDA_EVENT));
static_assert(same(kSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
static_assert(same(kMemory2, CUPTI_ACTIVITY_KIND_MEMORY2));
static_assert(same(kGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
static_assert(same(kJit, CUPTI_ACTIVITY_KIND_JIT));
static_assert(same(kSuccess, CUPTI_SUCCESS));
static_assert(same(kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER));
static_assert(same(kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED));
static_assert(same(kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED));
static_assert(same(kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES));
static_assert(same(kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED));
static_assert(same(kUnknownError, CUPTI_ERROR_UNKNOWN));
static_assert(same(kDriverApi, CUPTI_CB_DOMAIN_DRIVER_API));
static_assert(same(kRuntimeApi, CUPTI_CB_DOMAIN_RUNTIME_API));
static_assert(same(kZeroedOutBuffer, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER));
static_assert(same(kSystemThreadId, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
static_assert(same(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
static_assert(same(overhead::kThread, CUPTI_ACTIVITY_OBJECT_THREAD));
static_assert(sizeof(SubscriberParams) == sizeof(CUpti_SubscriberParams) &&
              offsetof(SubscriberParams, size) == offsetof(CUpti_SubscriberParams, structSize) &&
              offsetof(SubscriberParams, name) ==
                  offsetof(CUpti_SubscriberParams, subscriberName) &&
              offsetof(SubscriberParams, old_name) ==
                  offsetof(CUpti_SubscriberParams, oldSubscriberName) &&
              offsetof(SubscriberParams, old_name_bytes) ==
                  offsetof(CUpti_SubscriberParams, oldSubscriberSize) &&
              kOldNameBytes >= CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
static_assert(offsetof(ApiCallbackData, site) == offsetof(CUpti_CallbackData, callbackSite));

}  // namespace
}  // namespace rehearse::capture::cupti
#endif
