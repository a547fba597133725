#include "profiler/ingest/kineto_event.h"

#include "profiler/trace/recorder.h"

namespace rehearse::ingest::kineto {
namespace {

struct Category {
  std::string_view name;
  Kind kind;
};

// By length, then as in the file most often; 2021 dialect, later CUDA and ROCm, Intel. PyTorch built
// without Kineto writes operators and ranges without a category.
constexpr Category kCategories[] = {
    {"", Kind::kOperator},
    {"ac2g", Kind::kFlow},
    {"Trace", Kind::kSpan},
    {"async", Kind::kFlow},
    {"cpu_op", Kind::kOperator},
    {"kernel", Kind::kKernel},
    {"Kernel", Kind::kKernel},
    {"fwdbwd", Kind::kFlow},
    {"Memcpy", Kind::kCopy},
    {"Memset", Kind::kSet},
    {"Runtime", Kind::kRuntime},
    {"Operator", Kind::kOperator},
    {"overhead", Kind::kOverhead},
    {"cuda_sync", Kind::kSync},
    {"async_gpu", Kind::kFlow},
    {"gpu_memcpy", Kind::kCopy},
    {"gpu_memset", Kind::kSet},
    {"cuda_event", Kind::kIgnored},
    {"xpu_driver", Kind::kDriver},
    {"hip_driver", Kind::kDriver},
    {"cuda_driver", Kind::kDriver},
    {"hip_runtime", Kind::kRuntime},
    {"xpu_runtime", Kind::kRuntime},
    {"cuda_runtime", Kind::kRuntime},
    {"python_function", Kind::kFrame},
    {"user_annotation", Kind::kAnnotation},
    {"async_cpu_to_gpu", Kind::kFlow},
    {"forward_backward", Kind::kFlow},
    {"cpu_instant_event", Kind::kIgnored},
    {"gpu_user_annotation", Kind::kIgnored},
    {"cuda_profiler_range", Kind::kIgnored},
};

}  // namespace

Field field_named(std::string_view key) {
  switch (key.size()) {
    case 2:
      if (key == "ph") return &Event::phase;
      if (key == "ts") return &Event::start;
      if (key == "id") return &Event::id;
      break;
    case 3:
      if (key == "cat") return &Event::category;
      if (key == "dur") return &Event::duration;
      if (key == "pid") return &Event::process;
      if (key == "tid") return &Event::thread;
      break;
    case 4:
      if (key == "name") return &Event::name;
      break;
    default: break;
  }
  return nullptr;
}

Field argument_named(std::string_view key) {
  switch (key.size()) {
    case 4:
      if (key == "grid") return &Event::grid;
      break;
    case 5:
      if (key == "bytes") return &Event::bytes;
      if (key == "block") return &Event::block;
      if (key == "dtype") return &Event::dtype;
      break;
    case 6:
      if (key == "stream") return &Event::stream;
      if (key == "device") return &Event::device;
      break;
    case 10:
      if (key == "Input Dims") return &Event::shapes;
      if (key == "Input type") return &Event::types;
      if (key == "Group size") return &Event::group_size;
      break;
    case 11:
      if (key == "correlation") return &Event::correlation;
      break;
    case 13:
      if (key == "Fwd thread id") return &Event::forward_thread;
      if (key == "In msg nelems") return &Event::elements_in;
      if (key == "shared memory") return &Event::shared_memory;
      break;
    case 14:
      if (key == "Out msg nelems") return &Event::elements_out;
      if (key == "cuda_sync_kind") return &Event::sync_kind;
      if (key == "wait_on_stream") return &Event::wait_on_stream;
      break;
    case 15:
      if (key == "Sequence number") return &Event::sequence;
      if (key == "Collective name") return &Event::collective;
      break;
    case 18:
      if (key == "Record function id") return &Event::record_function;
      if (key == "Process Group Name") return &Event::group;
      break;
    case 19:
      if (key == "Process Group Ranks") return &Event::group_ranks;
      break;
    case 20:
      if (key == "registers per thread") return &Event::registers;
      break;
    case 33:
      if (key == "wait_on_cuda_event_record_corr_id") return &Event::event_correlation;
      break;
    default: break;
  }
  return nullptr;
}

Kind kind_of(std::string_view category) {
  for (const Category& entry : kCategories)
    if (entry.name.size() == category.size() && entry.name == category) return entry.kind;
  return Kind::kUnknown;
}

bool names_a_range(std::string_view name) {
  return trace::is_step_name(name) || name.starts_with("Optimizer.") ||
         name.starts_with("enumerate(DataLoader)") || name.starts_with("nccl:") ||
         name.starts_with("gloo:") || name.starts_with("## ");
}

void parse_copy_name(std::string_view name, trace::GpuOp& op) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("HtoD") || has("HostToDevice")) op.direction = trace::CopyDirection::kHostToDevice;
  if (has("DtoH") || has("DeviceToHost")) op.direction = trace::CopyDirection::kDeviceToHost;
  if (has("DtoD") || has("DeviceToDevice")) op.direction = trace::CopyDirection::kDeviceToDevice;
  if (has("PtoP")) op.direction = trace::CopyDirection::kPeer;
  if (has("HtoH")) op.direction = trace::CopyDirection::kHostToHost;
  if (has("Pageable")) op.host_memory = trace::HostMemory::kPageable;
  if (has("Pinned")) op.host_memory = trace::HostMemory::kPinned;
}

}  // namespace rehearse::ingest::kineto
