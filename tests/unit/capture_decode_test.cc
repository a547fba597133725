// Activity records of CUPTI, as the buffers of every version hold them, become records of ours.
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "profiler/capture/cupti_decode.h"
#include "tests/capture_targets/cupti_sizes.h"

#if REHEARSE_HAS_CUPTI
#include <cupti.h>
#include <dlfcn.h>
#endif

namespace rehearse::capture::cupti {
namespace {

/// A record whose every byte tells its place: what is read from another place shows.
std::vector<unsigned char> patterned(Kind of, std::uint32_t version) {
  std::vector<unsigned char> record(record_bytes(of, version));
  for (std::size_t i = 0; i < record.size(); ++i)
    record[i] = static_cast<unsigned char>(i * 37 + 13);
  const auto number = static_cast<std::uint32_t>(of);
  std::memcpy(record.data(), &number, sizeof number);
  return record;
}

template <class T>
std::uint64_t at(const std::vector<unsigned char>& record, std::size_t place) {
  T value;
  REQUIRE(place + sizeof value <= record.size());
  std::memcpy(&value, record.data() + place, sizeof value);
  return value;
}

TEST_CASE("fields are read at the offsets of each version, and never beyond its size") {
  for (const std::uint32_t version : {13u, 14u, 15u, 17u, 18u, 19u, 20u, 23u, 26u, 28u, 130001u}) {
    INFO(version);
    // In memory of exactly its size, so that a sanitizer sees what is read beyond.
    const auto kernel = patterned(kConcurrentKernel, version);
    const KernelRecord k = kernel_record(kernel.data(), version);
    CHECK(k.start == at<std::uint64_t>(kernel, 16));
    CHECK(k.end == at<std::uint64_t>(kernel, 24));
    CHECK(k.registers == at<std::uint16_t>(kernel, 6));
    CHECK(k.grid_z == at<std::uint32_t>(kernel, 60));
    CHECK(k.block_x == at<std::uint32_t>(kernel, 64));
    CHECK(k.correlation == at<std::uint32_t>(kernel, 92));
    CHECK(k.graph_node == at<std::uint64_t>(kernel, 144));
    CHECK(k.graph == at<std::uint32_t>(kernel, 156));
    CHECK(k.cluster_y == (version >= 18 ? at<std::uint32_t>(kernel, 180) : 0));

    const auto copy = patterned(kMemcpy, version);
    const CopyRecord c = copy_record(copy.data(), version);
    CHECK(c.bytes == at<std::uint64_t>(copy, 8));
    CHECK(c.correlation == at<std::uint32_t>(copy, 44));
    CHECK(c.from_device == 0);
    CHECK(c.graph == (version >= 14 ? at<std::uint32_t>(copy, 72) : 0));

    const auto peer = patterned(kMemcpyPeer, version);
    const CopyRecord p = copy_record(peer.data(), version);
    CHECK(p.correlation == at<std::uint32_t>(peer, 60));
    CHECK(p.from_device == at<std::uint32_t>(peer, 44) + 1);
    CHECK(p.to_device == at<std::uint32_t>(peer, 52) + 1);
    CHECK(p.graph_node == (version >= 14 ? at<std::uint64_t>(peer, 72) : 0));

    const auto set = patterned(kMemset, version);
    CHECK(set_record(set.data(), version).bytes == at<std::uint64_t>(set, 8));
    CHECK(set_record(set.data(), version).memory == at<std::uint16_t>(set, 50));
    CHECK(set_record(set.data(), version).graph ==
          (version >= 14 ? at<std::uint32_t>(set, 72) : 0));

    const auto sync = patterned(kSynchronization, version);
    const SyncRecord s = sync_record(sync.data(), version);
    CHECK(s.stream == at<std::uint32_t>(sync, 32));
    CHECK(s.event_instant == (version >= 26 ? at<std::uint64_t>(sync, 40) + 1 : 0));

    const auto event = patterned(kCudaEvent, version);
    CHECK(event_record(event.data(), version).event == at<std::uint32_t>(event, 16) + 1);
    CHECK(event_record(event.data(), version).instant ==
          (version >= 26 ? at<std::uint64_t>(event, 48) + 1 : 0));

    const auto device = patterned(kDevice, version);
    const DeviceRecord d = device_record(device.data(), version);
    CHECK(d.multiprocessors == at<std::uint32_t>(device, 44));
    CHECK(d.gpu_instance == (version >= 17 ? at<std::uint32_t>(device, 152) + 1 : 0));
    CHECK(uuid_of_device(device.data(), version) == device.data() + (version >= 17 ? 160 : 120));

    const auto memory = patterned(kMemory2, version);
    CHECK(memory_record(memory.data()).time == at<std::uint64_t>(memory, 32));
    const auto jit = patterned(kJit, version);
    CHECK(jit_record(jit.data()).end == at<std::uint64_t>(jit, 24));
    const auto graph = patterned(kGraphTrace, version);
    CHECK(graph_launch_record(graph.data()).stream == at<std::uint32_t>(graph, 36));
    const auto context = patterned(kContext, version);
    CHECK(context_record(context.data()).null_stream == at<std::uint16_t>(context, 14));
    const auto overhead = patterned(kOverhead, version);
    CHECK(overhead_record(overhead.data()).end == at<std::uint64_t>(overhead, 32));
  }
}

TEST_CASE("an absent value of a wait or a device differs from 0") {
  auto sync = patterned(kSynchronization, 130001);
  std::memset(sync.data() + 32, 0xFF, 8);  // no stream, no event
  CHECK(sync_record(sync.data(), 130001).stream == 0);
  CHECK(sync_record(sync.data(), 130001).event == 0);

  auto device = patterned(kDevice, 130001);
  device[145] = 0;  // MIG is off
  CHECK(device_record(device.data(), 130001).gpu_instance == 0);
  CHECK(uuid_of_device(device.data(), 130001) == device.data() + 120);
  device[145] = 1;
  std::memset(device.data() + 152, 0, 8);  // instance 0
  CHECK(device_record(device.data(), 130001).gpu_instance == 1);
  CHECK(device_record(device.data(), 130001).compute_instance == 1);

  auto overhead = patterned(kOverhead, 130001);
  const std::uint32_t process = 1, thread = 2;
  std::memcpy(overhead.data() + 8, &process, 4);
  CHECK(overhead_record(overhead.data()).thread == 0);
  std::memcpy(overhead.data() + 8, &thread, 4);
  CHECK(overhead_record(overhead.data()).thread == at<std::uint32_t>(overhead, 16));
}

#if REHEARSE_HAS_CUPTI && CUPTI_API_VERSION >= 130000
/// Appends a record of NVIDIA's type to the buffer.
template <class Record>
void put(std::vector<std::uint8_t>& buffer, const Record& record) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  buffer.insert(buffer.end(), bytes, bytes + sizeof record);
}

TEST_CASE("NVIDIA's library walks a buffer of its types as we read them", "[cupti]") {
  void* library = ::dlopen(REHEARSE_CUPTI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    WARN("skipped: no libcupti was found here");
    return;
  }
  const auto next = reinterpret_cast<decltype(&cuptiActivityGetNextRecord)>(
      ::dlsym(library, "cuptiActivityGetNextRecord"));
  const auto get_version =
      reinterpret_cast<decltype(&cuptiGetVersion)>(::dlsym(library, "cuptiGetVersion"));
  REQUIRE(next);
  std::uint32_t version = 0;
  REQUIRE(get_version(&version) == CUPTI_SUCCESS);
  if (version / 100 != CUPTI_API_VERSION / 100) {
    WARN("skipped: the library is of another release than the header");
    return;
  }

  CUpti_ActivityKernel10 kernel = {};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.registersPerThread = 40;
  kernel.start = 1000;
  kernel.end = 2500;
  kernel.gridX = 7;
  kernel.blockZ = 3;
  kernel.correlationId = 99;
  kernel.graphNodeId = 1ull << 40;
  kernel.clusterZ = 4;
  CUpti_ActivityMemcpy6 copy = {};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.bytes = 4096;
  copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  CUpti_ActivityMemcpyPtoP4 peer = {};
  peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peer.srcDeviceId = 2;
  peer.correlationId = 5;
  CUpti_ActivityMemset4 set = {};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.value = 77;
  CUpti_ActivityAPI call = {};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.threadId = 4242;
  CUpti_ActivitySynchronization2 sync = {};
  sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  sync.cudaEventSyncId = 12;
  CUpti_ActivityCudaEvent2 event = {};
  event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  event.cudaEventSyncId = 12;
  CUpti_ActivityGraphTrace2 graph = {};
  graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  graph.graphId = 6;
  CUpti_ActivityMemory4 memory = {};
  memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  memory.bytes = 512;
  CUpti_ActivityJit2 jit = {};
  jit.kind = CUPTI_ACTIVITY_KIND_JIT;
  jit.end = 8;
  CUpti_ActivityOverhead3 overhead = {};
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  overhead.end = 9;
  CUpti_ActivityDevice5 device = {};
  device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  device.numMultiprocessors = 132;
  device.coreClockRate = 1980000;
  CUpti_ActivityContext3 context = {};
  context.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  context.nullStreamId = 7;

  std::vector<std::uint8_t> buffer;
  put(buffer, kernel);
  put(buffer, copy);
  put(buffer, peer);
  put(buffer, set);
  put(buffer, call);
  put(buffer, sync);
  put(buffer, event);
  put(buffer, graph);
  put(buffer, memory);
  put(buffer, jit);
  put(buffer, overhead);
  put(buffer, device);
  put(buffer, context);

  std::vector<const unsigned char*> records;
  CUpti_Activity* record = nullptr;
  while (next(buffer.data(), buffer.size(), &record) == CUPTI_SUCCESS)
    records.push_back(reinterpret_cast<const unsigned char*>(record));
  REQUIRE(records.size() == 13);
  for (std::size_t i = 0; i + 1 < records.size(); ++i)  // the sizes that the mock goes by
    CHECK(static_cast<std::size_t>(records[i + 1] - records[i]) ==
          record_bytes(kind(records[i]), version));

  const KernelRecord k = kernel_record(records[0], version);
  CHECK(k.registers == 40);
  CHECK(k.end - k.start == 1500);
  CHECK(k.grid_x == 7);
  CHECK(k.block_z == 3);
  CHECK(k.correlation == 99);
  CHECK(k.graph_node == 1ull << 40);
  CHECK(k.cluster_z == 4);
  const CopyRecord c = copy_record(records[1], version);
  CHECK(c.direction == 1);
  CHECK(c.from == 2);
  CHECK(c.bytes == 4096);
  CHECK(c.asynchronous == 1);
  CHECK(copy_record(records[2], version).from_device == 3);
  CHECK(copy_record(records[2], version).correlation == 5);
  CHECK(set_record(records[3], version).value == 77);
  CHECK(call_record(records[4]).thread == 4242);
  CHECK(sync_record(records[5], version).type == 2);
  CHECK(sync_record(records[5], version).event_instant == 13);
  CHECK(event_record(records[6], version).instant == 13);
  CHECK(graph_launch_record(records[7]).graph == 6);
  CHECK(memory_record(records[8]).bytes == 512);
  CHECK(jit_record(records[9]).end == 8);
  CHECK(overhead_record(records[10]).kind == 1u << 16);
  CHECK(device_record(records[11], version).multiprocessors == 132);
  CHECK(device_record(records[11], version).core_clock == 1980000000);
  CHECK(context_record(records[12]).null_stream == 7);
}
#endif

}  // namespace
}  // namespace rehearse::capture::cupti
