#include "profiler/ingest/device_calls.h"

#include <array>

#include <fmt/core.h>

namespace rehearse::ingest {

using trace::CopyDirection;
using trace::HostMemory;

bool starts_device_work(std::string_view call) {
  for (const std::string_view part : {"LaunchKernel", "LaunchCooperative", "GraphLaunch", "Memcpy",
                                      "Memset", "LaunchHostFunc", "ModuleLaunch"})
    if (call.find(part) != std::string_view::npos) return true;
  return false;
}

CopyKind copy_kind(std::uint64_t number) {
  constexpr std::array<CopyKind, 11> kKinds = {{{"Memcpy", CopyDirection::kUnknown},
                                                {"Memcpy HtoD", CopyDirection::kHostToDevice},
                                                {"Memcpy DtoH", CopyDirection::kDeviceToHost},
                                                {"Memcpy HtoA", CopyDirection::kHostToDevice},
                                                {"Memcpy AtoH", CopyDirection::kDeviceToHost},
                                                {"Memcpy AtoA", CopyDirection::kDeviceToDevice},
                                                {"Memcpy AtoD", CopyDirection::kDeviceToDevice},
                                                {"Memcpy DtoA", CopyDirection::kDeviceToDevice},
                                                {"Memcpy DtoD", CopyDirection::kDeviceToDevice},
                                                {"Memcpy HtoH", CopyDirection::kHostToHost},
                                                {"Memcpy PtoP", CopyDirection::kPeer}}};
  return kKinds[number < kKinds.size() ? number : 0];
}

std::string_view memory_name(std::uint64_t number) {
  constexpr std::array<std::string_view, 8> kNames = {"Unknown",       "Pageable",      "Pinned",
                                                      "Device",        "Array",         "Managed",
                                                      "Device Static", "Managed Static"};
  return kNames[number < kNames.size() ? number : 0];
}

HostMemory host_memory(std::uint64_t number) {
  if (number == 1) return HostMemory::kPageable;
  if (number == 2) return HostMemory::kPinned;
  return HostMemory::kUnknown;
}

std::string describe_copy(std::uint64_t direction, std::uint64_t from, std::uint64_t to,
                          trace::GpuOp& op) {
  const CopyKind kind = copy_kind(direction);
  op.kind = trace::GpuKind::kCopy;
  op.direction = kind.direction;
  if (kind.direction == CopyDirection::kHostToDevice) op.host_memory = host_memory(from);
  if (kind.direction == CopyDirection::kDeviceToHost) op.host_memory = host_memory(to);
  return fmt::format("{} ({} -> {})", kind.name, memory_name(from), memory_name(to));
}

}  // namespace rehearse::ingest
