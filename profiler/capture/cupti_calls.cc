#include "profiler/capture/cupti_calls.h"

#include "profiler/capture/texts.h"

namespace rehearse::capture {
namespace {

std::string_view without_end(std::string_view name, std::string_view end) {
  if (name.ends_with(end)) name.remove_suffix(end.size());
  return name;
}

/// Removes a version such as "_v7000".
std::string_view unversioned(std::string_view name) {
  std::string_view left = name;
  while (!left.empty() && left.back() >= '0' && left.back() <= '9') left.remove_suffix(1);
  return left.size() < name.size() && left.ends_with("_v") ? without_end(left, "_v") : name;
}

}  // namespace

std::string_view plain_call_name(const char* name) {
  // The runtime's version follows the suffix for the default stream; the driver's precedes it.
  return unversioned(without_end(without_end(unversioned(clip(name)), "_ptsz"), "_ptds"));
}

bool is_recorded_call(std::string_view plain_name) {
  constexpr std::string_view kRecorded[] = {"CtxSynchronize",
                                            "DeviceSynchronize",
                                            "EventRecord",
                                            "EventSynchronize",
                                            "Free",
                                            "GraphInstantiate",
                                            "GraphLaunch",
                                            "HostAlloc",
                                            "Launch",
                                            "Malloc",
                                            "MemAlloc",
                                            "MemFree",
                                            "MemHostAlloc",
                                            "MemPrefetch",
                                            "Memcpy",
                                            "Memset",
                                            "StreamBeginCapture",
                                            "StreamEndCapture",
                                            "StreamSynchronize",
                                            "StreamWait",
                                            "StreamWriteValue",
                                            "ThreadSynchronize"};
  std::string_view call = plain_name;
  if (!call.starts_with("cu")) return false;
  call.remove_prefix(call.starts_with("cuda") ? 4 : 2);
  for (const std::string_view recorded : kRecorded)
    if (call.starts_with(recorded)) return true;
  return false;
}

bool ends_records(std::string_view plain_name) {
  for (const std::string_view call : {"cuCtxDestroy", "cuDevicePrimaryCtxReset", "cudaDeviceReset"})
    if (plain_name == call) return true;
  return false;
}

}  // namespace rehearse::capture
