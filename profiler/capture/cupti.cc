#include "profiler/capture/cupti.h"

#include <string_view>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/capture/cupti_decode.h"
#include "profiler/capture/cupti_library.h"
#include "profiler/capture/facts.h"
#include "profiler/capture/options.h"
#include "profiler/capture/recording.h"
#include "profiler/capture/steps.h"
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

/// The name without prefix and version: cudaLaunchKernel for CUPTI's cudaLaunchKernel_ptsz_v7000.
std::string_view plain_call_name(const char* name) {
  // The runtime's version follows the suffix for the default stream; the driver's precedes it.
  return unversioned(without_end(without_end(unversioned(clip(name)), "_ptsz"), "_ptds"));
}

/// Whether the call starts work on a device, waits for it, or allocates device memory. Other calls
/// are so frequent and short that recording them would cost more time than they take.
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

/// Whether CUPTI's records must be fetched before the call, because it may discard them.
bool ends_records(std::string_view plain_name) {
  for (const std::string_view call : {"cuCtxDestroy", "cuDevicePrimaryCtxReset", "cudaDeviceReset"})
    if (plain_name == call) return true;
  return false;
}

// CUPTI returns a buffer only when every record in it is complete, so a killed process loses up to
// a buffer: some 2000 kernels.
constexpr std::size_t kBufferBytes = 512 << 10;
constexpr std::size_t kSpareBuffers = 64;
constexpr std::uint64_t kAskEvery = 1000000000;  // ns between two requests for finished records
// The time for which the end of the process waits for the last records, in case a GPU hangs.
constexpr std::uint64_t kDevicePatience = 5000000000;
constexpr std::uint32_t kMaxCallbacks = 2048;  // numbers of calls; CUDA 13.0 has under 800

CuptiLibrary library;
void* subscriber = nullptr;
pid_t owner = 0;
Futex closing{0};
Futex closed{0};

/// Buffers that CUPTI has filled and may reuse. They are zeroed, and CUPTI is told so; otherwise it
/// clears them on the program's threads.
class SpareBuffers {
 public:
  std::uint8_t* take() {
    for (std::atomic<std::uint8_t*>& slot : slots_)
      if (slot.load(std::memory_order_relaxed))
        if (std::uint8_t* buffer = slot.exchange(nullptr, std::memory_order_acquire)) return buffer;
    return static_cast<std::uint8_t*>(reserve_memory(kBufferBytes));
  }
  void give(std::uint8_t* buffer, std::size_t used) {
    std::memset(buffer, 0, used);
    for (std::atomic<std::uint8_t*>& slot : slots_) {
      std::uint8_t* none = nullptr;
      if (slot.compare_exchange_strong(none, buffer, std::memory_order_release)) return;
    }
    ::munmap(buffer, kBufferBytes);
  }

 private:
  std::atomic<std::uint8_t*> slots_[kSpareBuffers] = {};
};
SpareBuffers spare_buffers;

/// By call number, in one word: 0 unknown, 1 not recorded, else its name's text number plus 2^32.
std::atomic<std::uint64_t> known_calls[2][kMaxCallbacks];
constexpr std::uint64_t kNotRecorded = 1;
constexpr std::uint64_t kRecorded = std::uint64_t{1} << 32;

/// CUPTI's name of a call; null if there is no call with this number.
const char* callback_name(std::uint32_t domain, std::uint32_t callback) {
  const char* name = nullptr;
  if (library.callback_name(domain, callback, &name) != cupti::kSuccess) return nullptr;
  return name && ::strncmp(name, "cu", 2) == 0 ? name : nullptr;
}

/// The number of the text that names the call; 0 if it is not to be recorded.
std::uint32_t call_name(ThreadState& thread, std::uint32_t domain, std::uint32_t callback) {
  if (callback >= kMaxCallbacks) return 0;
  std::atomic<std::uint64_t>& known = known_calls[domain == cupti::kDriverApi][callback];
  const std::uint64_t seen = known.load(std::memory_order_relaxed);
  if (seen == kNotRecorded) return 0;
  if (seen != 0) return static_cast<std::uint32_t>(seen);
  const char* name = callback_name(domain, callback);
  if (!name || !is_recorded_call(plain_call_name(name))) {
    known.store(kNotRecorded, std::memory_order_relaxed);
    return 0;
  }
  const Text* text = intern(plain_call_name(name), true);
  if (!text) return text_number(thread, plain_call_name(name));
  known.store(kRecorded | text->number, std::memory_order_relaxed);
  return text->number;
}

/// "GPU-" or "MIG-" and the bytes in the format of NVIDIA's tools.
std::string_view uuid_text(const unsigned char* bytes, bool mig, char (&into)[48]) {
  int n = ::snprintf(into, sizeof into, "%s", mig ? "MIG-" : "GPU-");
  for (int i = 0; i < 16; ++i)
    n += ::snprintf(into + n, sizeof into - static_cast<std::size_t>(n), "%s%02x",
                    i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
  return {into, static_cast<std::size_t>(n)};
}

void take_device(ThreadState& thread, const unsigned char* r) {
  DeviceRecord device = cupti::device_record(r, library.version);
  const char* name = cupti::device::name(r);
  device.name = text_number(thread, clip(name));
  char uuid[48];
  device.uuid = text_number(
      thread, uuid_text(cupti::uuid_of_device(r, library.version), device.gpu_instance != 0, uuid));
  append(thread, device);
  if (library.version >= cupti::kVersion13_0) ::free(const_cast<char*>(name));
}

void take(ThreadState& thread, const unsigned char* r) {
  switch (const std::uint32_t kind = cupti::kind(r)) {
    case cupti::kConcurrentKernel: {
      KernelRecord kernel = cupti::kernel_record(r, library.version);
      kernel.name = text_number(thread, clip(cupti::kernel::name(r)));
      append(thread, kernel);
      return;
    }
    case cupti::kMemcpy:
    case cupti::kMemcpyPeer: append(thread, cupti::copy_record(r, library.version)); return;
    case cupti::kMemset: append(thread, cupti::set_record(r, library.version)); return;
    case cupti::kRuntime:
    case cupti::kDriver: {
      CallRecord call = cupti::call_record(r);
      call.name = call_name(thread, kind == cupti::kDriver ? cupti::kDriverApi : cupti::kRuntimeApi,
                            cupti::call::callback(r));
      if (call.name != 0) append(thread, call);
      return;
    }
    case cupti::kSynchronization: append(thread, cupti::sync_record(r, library.version)); return;
    case cupti::kCudaEvent: append(thread, cupti::event_record(r, library.version)); return;
    case cupti::kGraphTrace: append(thread, cupti::graph_launch_record(r)); return;
    case cupti::kMemory2: append(thread, cupti::memory_record(r)); return;
    case cupti::kJit: append(thread, cupti::jit_record(r)); return;
    case cupti::kOverhead:
      append(thread, cupti::overhead_record(r));
      if (library.version >= cupti::kVersion13_0) ::free(cupti::overhead::data(r));
      return;
    case cupti::kDevice: take_device(thread, r); return;
    case cupti::kContext: append(thread, cupti::context_record(r)); return;
    default: return;
  }
}

void buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
  // Before CUDA 12.9, CUPTI crashes if it is refused a buffer; without memory there is no other
  // choice.
  *buffer = spare_buffers.take();
  *bytes = *buffer ? kBufferBytes : 0;
  *records = 0;  // as many as fit
}

void buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t,
                      std::size_t valid_bytes) {
  if (!buffer) return;
  if (const Callback callback; callback) {
    std::uint8_t* record = nullptr;
    while (library.next_record(buffer, valid_bytes, &record) == cupti::kSuccess)
      take(callback.thread(), record);
  }
  spare_buffers.give(buffer, valid_bytes);
}

/// Runs before a call that destroys the device's state, and with it records.
void before_call(void*, std::uint32_t, std::uint32_t, const void* data) {
  if (data && static_cast<const cupti::ApiCallbackData*>(data)->site == 0 && owner == ::getpid())
    library.flush_all(cupti::kFlushForced);
}

/// Calls visit(domain, number, name) for each call that CUPTI knows.
template <class Visit>
void each_call(Visit visit) {
  for (const std::uint32_t domain : {cupti::kRuntimeApi, cupti::kDriverApi})
    for (std::uint32_t callback = 1; callback < kMaxCallbacks; ++callback)
      if (const char* name = callback_name(domain, callback)) visit(domain, callback, name);
}

/// The toolkit that contains a version of CUPTI, as text.
std::string_view toolkit_of(std::uint32_t version, char (&into)[32]) {
  const unsigned toolkit = toolkit_version(version);
  int n = 0;
  if (toolkit != 0)
    n = ::snprintf(into, sizeof into, "CUDA %u.%u", toolkit / 1000, toolkit % 1000 / 10);
  else
    n = ::snprintf(into, sizeof into, "version %u", version);
  return {into, static_cast<std::size_t>(n)};
}

std::string_view driver_text(char (&into)[32]) {
  const int version = driver_version();
  const int n = ::snprintf(into, sizeof into, "CUDA %d.%d", version / 1000, version % 1000 / 10);
  return version == 0 ? std::string_view("an unknown CUDA")
                      : std::string_view(into, static_cast<std::size_t>(n));
}

void say_refused(cupti::Result result, std::string_view other) {
  char toolkit[32], driver[32];
  const std::string_view ours = toolkit_of(library.version, toolkit);
  switch (result) {
    case cupti::kMultipleSubscribers:
      return trouble({"another profiler", other.empty() ? "" : " (", other,
                      other.empty() ? "" : ")",
                      " uses CUPTI: kernels are not recorded; run without it"});
    case cupti::kNotInitialized:
      return trouble({"CUPTI of ", ours, " (", library.path,
                      ") is newer than the driver, which has ", driver_text(driver),
                      ": kernels are not recorded; name an older libcupti in ", kCuptiVariable});
    case cupti::kInsufficientPrivileges:
      return trouble(
          {"CUPTI lacks privileges here: kernels are not recorded; see 'rehearse doctor'"});
    default: {
      char number[16];
      const int n = ::snprintf(number, sizeof number, "%d", static_cast<int>(result));
      return trouble({"CUPTI of ",
                      ours,
                      " (",
                      library.path,
                      ") does not start, error ",
                      {number, static_cast<std::size_t>(n)},
                      ": kernels are not recorded; see 'rehearse doctor'"});
    }
  }
}

bool subscribe() {
  char other[cupti::kOldNameBytes + 1] = "";
  cupti::SubscriberParams params = {
      .size = sizeof params, .name = "rehearse", .old_name = other, .old_name_bytes = sizeof other};
  const cupti::Result result =
      library.subscribe_v2 ? library.subscribe_v2(&subscriber, before_call, nullptr, &params)
                           : library.subscribe(&subscriber, before_call, nullptr);
  if (result == cupti::kSuccess) return true;
  other[sizeof other - 1] = '\0';
  say_refused(result, other);
  return false;
}

/// Enables only the recorded calls if CUPTI can select them (since CUDA 12.5); else all calls, and
/// take() drops the rest.
void switch_calls(bool on) {
  if (library.enable_runtime_api && library.enable_driver_api) {
    bool all = true;
    each_call([&](std::uint32_t domain, std::uint32_t callback, const char* name) {
      if (!is_recorded_call(plain_call_name(name))) return;
      const auto enable =
          domain == cupti::kDriverApi ? library.enable_driver_api : library.enable_runtime_api;
      all = enable(callback, on ? 1 : 0) == cupti::kSuccess && all;
    });
    if (all) return;
  }
  for (const cupti::Kind kind : {cupti::kRuntime, cupti::kDriver})
    on ? library.enable(kind) : library.disable(kind);
}

/// Enables the records that explain the numbers in others, and callbacks to fetch records before
/// they are lost.
void enable_surroundings() {
  library.enable(cupti::kDevice);
  library.enable(cupti::kContext);
  each_call([](std::uint32_t domain, std::uint32_t callback, const char* name) {
    if (ends_records(plain_call_name(name)))
      library.enable_callback(1, subscriber, domain, callback);
  });
}

// In addition to kernels, which are enabled first, and calls.
constexpr cupti::Kind kKinds[] = {cupti::kMemcpy,          cupti::kMemcpyPeer, cupti::kMemset,
                                  cupti::kSynchronization, cupti::kCudaEvent,  cupti::kOverhead};

/// Called when the recorded steps begin: at once, unless the options name some.
void enable_work() {
  if (const cupti::Result result = library.enable(cupti::kConcurrentKernel);
      result != cupti::kSuccess)
    return say_refused(result, "");
  for (const cupti::Kind kind : kKinds) library.enable(kind);
  if (library.enable_all_sync_records) library.enable_all_sync_records(0);
  if (options().graph == Options::Graph::kLaunch) library.enable(cupti::kGraphTrace);
  if (options().memory) library.enable(cupti::kMemory2);
  if (options().jit) library.enable(cupti::kJit);
  switch_calls(true);
}

/// Called when they have ended. CUPTI stays attached, because detaching it is known to hang.
void disable_work() {
  for (const cupti::Kind kind : kKinds) library.disable(kind);
  for (const cupti::Kind kind :
       {cupti::kConcurrentKernel, cupti::kGraphTrace, cupti::kMemory2, cupti::kJit})
    library.disable(kind);
  switch_calls(false);
}

/// Counts the records for which CUPTI had no room as lost.
void count_dropped() {
  std::size_t dropped = 0;
  if (library.dropped(nullptr, 0, &dropped) == cupti::kSuccess && dropped > 0) count_lost(dropped);
}

/// Requests finished records from CUPTI, once a second and at the end.
void* run_collector(void*) {
  ::pthread_setname_np(::pthread_self(), "rehearse-cupti");
  for (bool last = false; !last;) {
    futex_wait(closing, 0, kAskEvery);
    last = closing.load(std::memory_order_acquire) != 0;
    library.flush_all(last ? cupti::kFlushForced : 0);
    count_dropped();
  }
  leave_recording();
  closed.store(1, std::memory_order_release);
  futex_wake(closed);
  return nullptr;
}

/// Called at the end of the process, while the driver still works.
void stop_device_records() {
  if (owner != ::getpid() || closed.load(std::memory_order_acquire) != 0) return;
  closing.store(1, std::memory_order_seq_cst);
  futex_wake(closing);
  const std::uint64_t begin = clock_ns(CLOCK_MONOTONIC);
  while (closed.load(std::memory_order_acquire) == 0) {
    const std::uint64_t waited = clock_ns(CLOCK_MONOTONIC) - begin;
    if (waited >= kDevicePatience)
      return trouble({"the last kernels were not delivered within 5 s of the end"});
    futex_wait(closed, 0, kDevicePatience - waited);
  }
}

}  // namespace

void start_device_records() {
  static std::atomic<bool> begun{false};
  if (!options().device || begun.exchange(true) || !attach()) return;
  char text[32];
  note("driver.cuda", driver_text(text));
  if (!load_cupti(library))
    return trouble(
        {"CUPTI was not found: kernels are not recorded; install the CUDA toolkit, or name "
         "libcupti in ",
         kCuptiVariable});
  note("cupti.path", library.path);
  note("cupti.version", toolkit_of(library.version, text));
  if (!subscribe()) return;
  owner = ::getpid();
  if (library.set_thread_id_type) library.set_thread_id_type(cupti::kSystemThreadId);
  std::uint8_t zeroed = 1;
  std::size_t bytes = sizeof zeroed;
  library.set_attribute(cupti::kZeroedOutBuffer, &bytes, &zeroed);
  if (const cupti::Result result = library.register_callbacks(buffer_requested, buffer_completed);
      result != cupti::kSuccess)
    return say_refused(result, "");
  enable_surroundings();
  on_window(enable_work, disable_work);
  if (!start_thread(run_collector, nullptr))
    trouble({"no thread to collect kernels: the last of them may be missing"});
  else
    ::atexit(stop_device_records);
}

}  // namespace rehearse::capture
