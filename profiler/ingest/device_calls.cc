#include "profiler/ingest/device_calls.h"

namespace rehearse::ingest {

bool starts_device_work(std::string_view call) {
  for (const std::string_view part : {"LaunchKernel", "LaunchCooperative", "GraphLaunch", "Memcpy",
                                      "Memset", "LaunchHostFunc", "ModuleLaunch"})
    if (call.find(part) != std::string_view::npos) return true;
  return false;
}

}  // namespace rehearse::ingest
