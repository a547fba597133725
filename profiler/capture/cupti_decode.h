// Converts activity records of CUPTI to our records. `version` is that of the library that wrote
// them. Texts are left to the caller, which has the memory to store them.
#pragma once

#include "profiler/capture/cupti_abi.h"
#include "profiler/capture/records.h"

namespace rehearse::capture::cupti {

inline KernelRecord kernel_record(const unsigned char* r, std::uint32_t version) {
  KernelRecord out = {.name = 0,
                      .start = kernel::start(r),
                      .end = kernel::end(r),
                      .device = kernel::device(r),
                      .context = kernel::context(r),
                      .stream = kernel::stream(r),
                      .correlation = kernel::correlation(r),
                      .grid_x = kernel::grid_x(r),
                      .grid_y = kernel::grid_y(r),
                      .grid_z = kernel::grid_z(r),
                      .block_x = kernel::block_x(r),
                      .block_y = kernel::block_y(r),
                      .block_z = kernel::block_z(r),
                      .registers = kernel::registers(r),
                      .static_shared = kernel::static_shared(r),
                      .dynamic_shared = kernel::dynamic_shared(r),
                      .local_bytes = kernel::local_total(r),
                      .cluster_x = 0,
                      .cluster_y = 0,
                      .cluster_z = 0,
                      .graph = kernel::graph(r),
                      .graph_node = kernel::graph_node(r)};
  if (version >= kVersion11_8) {
    out.cluster_x = kernel::cluster_x(r);
    out.cluster_y = kernel::cluster_y(r);
    out.cluster_z = kernel::cluster_z(r);
  }
  return out;
}

inline CopyRecord copy_record(const unsigned char* r, std::uint32_t version) {
  const bool peer = kind(r) == kMemcpyPeer;
  CopyRecord out = {
      .start = copy::start(r),
      .end = copy::end(r),
      .bytes = copy::bytes(r),
      .device = copy::device(r),
      .context = copy::context(r),
      .stream = copy::stream(r),
      .correlation = peer ? peer_copy::correlation(r) : copy::correlation(r),
      .direction = copy::direction(r),
      .from = copy::from(r),
      .to = copy::to(r),
      .asynchronous = copy::flags(r) & 1u,
      .from_device = peer ? std::uint64_t{peer_copy::from_device(r)} + 1 : 0,
      .to_device = peer ? std::uint64_t{peer_copy::to_device(r)} + 1 : 0,
      .graph = 0,
      .graph_node = 0,
  };
  if (version >= kVersion11_1) {
    out.graph = peer ? peer_copy::graph(r) : copy::graph(r);
    out.graph_node = peer ? peer_copy::graph_node(r) : copy::graph_node(r);
  }
  return out;
}

inline SetRecord set_record(const unsigned char* r, std::uint32_t version) {
  const bool in_graphs = version >= kVersion11_1;
  return {.start = set::start(r),
          .end = set::end(r),
          .bytes = set::bytes(r),
          .value = set::value(r),
          .device = set::device(r),
          .context = set::context(r),
          .stream = set::stream(r),
          .correlation = set::correlation(r),
          .graph = in_graphs ? set::graph(r) : 0,
          .graph_node = in_graphs ? set::graph_node(r) : 0,
          .memory = set::memory(r)};
}

inline CallRecord call_record(const unsigned char* r) {
  return {.name = 0,
          .start = call::start(r),
          .end = call::end(r),
          .thread = call::thread(r),
          .correlation = call::correlation(r),
          .driver = kind(r) == kDriver ? 1u : 0u,
          .result = call::result(r)};
}

inline SyncRecord sync_record(const unsigned char* r, std::uint32_t version) {
  constexpr std::uint32_t kNone = UINT32_MAX;  // streams and events that a wait does not have
  const std::uint32_t stream = sync::stream(r), event = sync::event(r);
  return {.start = sync::start(r),
          .end = sync::end(r),
          .type = sync::type(r),
          .correlation = sync::correlation(r),
          .context = sync::context(r),
          .stream = stream == kNone ? 0u : stream,
          .event = event == kNone ? 0 : std::uint64_t{event} + 1,
          .event_instant = version >= kVersion12_8 ? sync::instant(r) + 1 : 0};
}

inline EventRecord event_record(const unsigned char* r, std::uint32_t version) {
  return {.correlation = event::correlation(r),
          .context = event::context(r),
          .stream = event::stream(r),
          .event = std::uint64_t{event::event(r)} + 1,
          .instant = version >= kVersion12_8 ? event::instant(r) + 1 : 0};
}

inline GraphLaunchRecord graph_launch_record(const unsigned char* r) {
  return {.start = graph_trace::start(r),
          .end = graph_trace::end(r),
          .device = graph_trace::device(r),
          .context = graph_trace::context(r),
          .stream = graph_trace::stream(r),
          .correlation = graph_trace::correlation(r),
          .graph = graph_trace::graph(r)};
}

inline MemoryRecord memory_record(const unsigned char* r) {
  return {.time = memory::time(r),
          .address = memory::address(r),
          .bytes = memory::bytes(r),
          .operation = memory::operation(r),
          .kind = memory::memory_kind(r),
          .device = memory::device(r),
          .context = memory::context(r),
          .stream = memory::stream(r),
          .correlation = memory::correlation(r)};
}

inline JitRecord jit_record(const unsigned char* r) {
  return {.start = jit::start(r),
          .end = jit::end(r),
          .device = jit::device(r),
          .correlation = jit::correlation(r)};
}

inline OverheadRecord overhead_record(const unsigned char* r) {
  return {.start = overhead::start(r),
          .end = overhead::end(r),
          .kind = overhead::overhead_kind(r),
          .thread = overhead::object_kind(r) == overhead::kThread
                        ? std::uint64_t{overhead::thread(r)}
                        : 0};
}

inline DeviceRecord device_record(const unsigned char* r, std::uint32_t version) {
  const bool mig = version >= kVersion11_6 && device::mig(r) != 0;
  const auto instance = [&](std::uint32_t id) {
    return mig && id != UINT32_MAX ? std::uint64_t{id} + 1 : 0;
  };
  return {.name = 0,
          .uuid = 0,
          .device = device::id(r),
          .multiprocessors = device::multiprocessors(r),
          .memory_bytes = device::memory_bytes(r),
          .l2_bytes = device::l2_bytes(r),
          .memory_bandwidth = device::memory_bandwidth(r) * 1000,
          .core_clock = std::uint64_t{device::core_clock(r)} * 1000,
          .memory_clock = 0,
          .compute_major = device::compute_major(r),
          .compute_minor = device::compute_minor(r),
          .gpu_instance = mig ? instance(device::gpu_instance(r)) : 0,
          .compute_instance = mig ? instance(device::compute_instance(r)) : 0};
}

/// The UUID of the device, or of the MIG instance that the process sees of it.
inline const unsigned char* uuid_of_device(const unsigned char* r, std::uint32_t version) {
  const bool mig = version >= kVersion11_6 && device::mig(r) != 0;
  return r + (mig ? device::kMigUuid : device::kUuid);
}

inline ContextRecord context_record(const unsigned char* r) {
  return {.context = context::id(r),
          .device = context::device(r),
          .null_stream = context::null_stream(r)};
}

}  // namespace rehearse::capture::cupti
