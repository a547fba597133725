#include "profiler/capture/nvml.h"

#include <algorithm>
#include <string_view>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/capture/facts.h"
#include "profiler/capture/nvml_abi.h"
#include "profiler/capture/options.h"
#include "profiler/capture/recording.h"
#include "profiler/capture/texts.h"

namespace rehearse::capture {
namespace {

using nvml::Device;
using nvml::kTextBytes;
using nvml::Result;

constexpr char kLibrary[] = "libnvidia-ml.so.1";
constexpr std::size_t kMaxBoards = 32;
constexpr std::size_t kMaxParts = 128;
// The energy counter takes milliseconds to read and moves every tenth of a second; temperature and
// memory clock change slowly.
constexpr std::uint64_t kSeldom = 2000000000;          ///< ns
constexpr std::uint64_t kSamplerPatience = 500000000;  ///< ns to wait for the thread to end
constexpr unsigned kFailures = 3;  ///< in a row, and a question is asked no more

struct Board {
  Device device;
  bool used;
  char uuid[kTextBytes];
  std::uint64_t seldom_read;  ///< when last
  // Failures in a row of each question.
  unsigned instant, average, energy, core_clock, memory_clock, temperature, reasons;
};

/// A device that a process can use: a board, or an instance of one.
struct Part {
  std::size_t board;
  Device instance;  ///< null: the whole board
  char uuid[kTextBytes];
};

struct Sampler {
  nvml::Functions nvml;
  void* library;
  Board boards[kMaxBoards];
  Part parts[kMaxParts];
  std::size_t board_count, part_count;
  char visible[4096];
  bool all_visible;
  bool initialized;
  pid_t owner;
  Futex stopping, stopped;
};

std::atomic<Sampler*> running{nullptr};

template <class Function>
bool look_up(void* loaded, Function& into, const char* name, const char* older = nullptr) {
  void* found = ::dlsym(loaded, name);
  if (!found && older) found = ::dlsym(loaded, older);
  into = reinterpret_cast<Function>(found);
  return found != nullptr;
}

bool find_functions(void* loaded, nvml::Functions& f) {
  look_up(loaded, f.shutdown, "nvmlShutdown");
  look_up(loaded, f.driver_version, "nvmlSystemGetDriverVersion");
  look_up(loaded, f.name, "nvmlDeviceGetName");
  look_up(loaded, f.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  look_up(loaded, f.energy, "nvmlDeviceGetTotalEnergyConsumption");
  look_up(loaded, f.power, "nvmlDeviceGetPowerUsage");
  look_up(loaded, f.fields, "nvmlDeviceGetFieldValues");
  look_up(loaded, f.clock, "nvmlDeviceGetClockInfo");
  look_up(loaded, f.temperature, "nvmlDeviceGetTemperature");
  look_up(loaded, f.reasons, "nvmlDeviceGetCurrentClocksEventReasons",
          "nvmlDeviceGetCurrentClocksThrottleReasons");
  look_up(loaded, f.mig_mode, "nvmlDeviceGetMigMode");
  look_up(loaded, f.max_instances, "nvmlDeviceGetMaxMigDeviceCount");
  look_up(loaded, f.instance, "nvmlDeviceGetMigDeviceHandleByIndex");
  look_up(loaded, f.gpu_instance, "nvmlDeviceGetGpuInstanceId");
  look_up(loaded, f.compute_instance, "nvmlDeviceGetComputeInstanceId");
  look_up(loaded, f.attributes, "nvmlDeviceGetAttributes_v2");
  return look_up(loaded, f.init, "nvmlInit_v2", "nvmlInit") &&
         look_up(loaded, f.count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount") &&
         look_up(loaded, f.by_index, "nvmlDeviceGetHandleByIndex_v2",
                 "nvmlDeviceGetHandleByIndex") &&
         look_up(loaded, f.uuid, "nvmlDeviceGetUUID");
}

void note_failure(std::string_view what, Result result) {
  char text[160];
  ::snprintf(text, sizeof text, "%.*s gave NVML's error %d; no power is recorded",
             static_cast<int>(what.size()), what.data(), result);
  note("nvml", text);
}

bool has_instances(const nvml::Functions& f, Device board) {
  unsigned now = 0, pending = 0;
  return f.mig_mode && f.max_instances && f.instance &&
         f.mig_mode(board, &now, &pending) == nvml::kSuccess && now != 0;
}

/// Every board and every instance, whether visible or not.
void find_parts(Sampler& s) {
  const nvml::Functions& f = s.nvml;
  unsigned boards = 0;
  if (f.count(&boards) != nvml::kSuccess) return;
  for (unsigned i = 0; i < boards && s.board_count < kMaxBoards; ++i) {
    Board& board = s.boards[s.board_count];
    // A board that does not answer still counts for CUDA's ordinals.
    if (f.by_index(i, &board.device) != nvml::kSuccess ||
        f.uuid(board.device, board.uuid, kTextBytes) != nvml::kSuccess) {
      board.device = nullptr;
      board.uuid[0] = '\0';
    }
    const std::size_t number = s.board_count++;
    const auto add = [&](Device instance, const char* uuid) {
      if (s.part_count == kMaxParts) return;
      Part& part = s.parts[s.part_count++];
      part.board = number;
      part.instance = instance;
      ::memcpy(part.uuid, uuid, kTextBytes);
    };
    unsigned instances = 0;
    if (board.device && has_instances(f, board.device) &&
        f.max_instances(board.device, &instances) == nvml::kSuccess) {
      for (unsigned k = 0; k < instances; ++k) {
        Device instance = nullptr;
        char uuid[kTextBytes] = {};
        if (f.instance(board.device, k, &instance) == nvml::kSuccess &&
            f.uuid(instance, uuid, kTextBytes) == nvml::kSuccess)
          add(instance, uuid);
      }
    } else {
      add(nullptr, board.uuid);
    }
  }
}

/// Whether CUDA_VISIBLE_DEVICES lets the process use a part: by the ordinal of its board, or by its
/// UUID or the begin of it.
bool is_visible(const Sampler& s, const Part& part) {
  if (s.all_visible) return true;
  const char* at = s.visible;
  for (;;) {
    const std::size_t n = ::strcspn(at, ",");
    char word[kTextBytes] = {};
    ::memcpy(word, at, std::min(n, sizeof word - 1));
    const bool is_ordinal = word[0] >= '0' && word[0] <= '9';
    if (is_ordinal && ::strtoul(word, nullptr, 10) == part.board) return true;
    if (!is_ordinal && word[0] != '\0' && word[0] != '-' &&
        ::strncmp(word, part.uuid, ::strlen(word)) == 0)
      return true;
    if (word[0] == '-' || at[n] == '\0') return false;  // CUDA stops at the first that is none
    at += n + 1;
  }
}

std::uint64_t multiprocessors(const Sampler& s, const Part& part) {
  nvml::Attributes attributes = {};
  if (!part.instance || !s.nvml.attributes ||
      s.nvml.attributes(part.instance, &attributes) != nvml::kSuccess)
    return 0;
  return attributes.multiprocessors;
}

void note_part(Sampler& s, const Part& part) {
  const nvml::Functions& f = s.nvml;
  const Board& board = s.boards[part.board];
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < s.part_count; ++i)
    if (s.parts[i].board == part.board) all += multiprocessors(s, s.parts[i]);
  char name[kTextBytes] = {};
  unsigned limit = 0, gpu_instance = 0, compute_instance = 0;
  if (f.name && f.name(board.device, name, kTextBytes) != nvml::kSuccess) name[0] = '\0';
  if (f.power_limit && f.power_limit(board.device, &limit) != nvml::kSuccess) limit = 0;
  const auto plus_one = [&](Result (*ask)(Device, unsigned*), unsigned& number) {
    return part.instance && ask && ask(part.instance, &number) == nvml::kSuccess
               ? std::uint64_t{number} + 1
               : 0;
  };
  const std::uint64_t gpu = plus_one(f.gpu_instance, gpu_instance);
  const std::uint64_t compute = plus_one(f.compute_instance, compute_instance);
  const Callback callback;
  if (!callback) return;
  ThreadState& thread = callback.thread();
  append(thread, BoardRecord{.uuid = text_number(thread, clip(board.uuid)),
                             .name = text_number(thread, clip(name)),
                             .instance = part.instance ? text_number(thread, clip(part.uuid)) : 0,
                             .index = part.board,
                             .multiprocessors = multiprocessors(s, part),
                             .all_multiprocessors = all,
                             .gpu_instance = gpu,
                             .compute_instance = compute,
                             .power_limit = limit});
}

/// Makes a query unless it failed too often; counts failures.
template <class Ask>
bool ask(unsigned& failures, Ask question) {
  if (failures >= kFailures) return false;
  const Result result = question();
  if (result == nvml::kSuccess) {
    failures = 0;
    return true;
  }
  const bool for_good =
      result == nvml::kNotSupported || result == nvml::kNoPermission || result == nvml::kGpuIsLost;
  failures = for_good ? kFailures : failures + 1;
  return false;
}

/// Reads a field, whose type differs between drivers.
bool read_field(const nvml::FieldValue& field, std::uint64_t& into) {
  switch (field.type) {
    case nvml::kDouble:
      if (!(field.value.as_double >= 0 && field.value.as_double < 1e12)) return false;
      into = static_cast<std::uint64_t>(field.value.as_double);
      return true;
    case nvml::kU32: into = field.value.as_u32; return true;
    case nvml::kLong:
    case nvml::kU64: into = field.value.as_u64; return true;
    case nvml::kI64:
      into = static_cast<std::uint64_t>(field.value.as_i64);
      return field.value.as_i64 >= 0;
    case nvml::kI32:
      into = static_cast<std::uint64_t>(field.value.as_i32);
      return field.value.as_i32 >= 0;
    case nvml::kU16: into = field.value.as_u16; return true;
    default: return false;
  }
}

/// The board's current power, or its mean over the last second if the board does not report that.
bool read_power(const nvml::Functions& f, Board& board, std::uint64_t& milliwatts) {
  if (f.fields && ask(board.instant, [&] {
        nvml::FieldValue field = {};
        field.field = nvml::kPowerInstant;
        const Result result = f.fields(board.device, 1, &field);
        if (result != nvml::kSuccess) return result;
        if (field.result != nvml::kSuccess) return field.result;
        return read_field(field, milliwatts) ? nvml::kSuccess : nvml::kNotSupported;
      }))
    return true;
  unsigned average = 0;
  if (!f.power || !ask(board.average, [&] { return f.power(board.device, &average); }))
    return false;
  milliwatts = average;
  return true;
}

/// One reading. False when the board answers no question about power any more.
bool read_board(const nvml::Functions& f, Board& board, bool last) {
  PowerRecord record = {};
  record.time = realtime_ns();
  bool any = read_power(f, board, record.power);
  // The instant of the reading lies between before and after the call.
  record.time += (realtime_ns() - record.time) / 2;
  unsigned value = 0;
  unsigned long long wide = 0;
  if (f.clock &&
      ask(board.core_clock, [&] { return f.clock(board.device, nvml::kClockCore, &value); }))
    record.core_clock = std::uint64_t{value} * 1000000;
  if (f.reasons && ask(board.reasons, [&] { return f.reasons(board.device, &wide); }))
    record.clock_reasons = wide;
  const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
  if (last || board.seldom_read == 0 || now - board.seldom_read >= kSeldom) {
    board.seldom_read = now;
    if (f.energy && ask(board.energy, [&] { return f.energy(board.device, &wide); })) {
      record.energy = wide;
      any = true;
    }
    if (f.clock &&
        ask(board.memory_clock, [&] { return f.clock(board.device, nvml::kClockMemory, &value); }))
      record.memory_clock = std::uint64_t{value} * 1000000;
    if (f.temperature && ask(board.temperature,
                             [&] { return f.temperature(board.device, nvml::kSensorGpu, &value); }))
      record.temperature = value;
  }
  if (const Callback callback; any && callback) {
    record.uuid = text_number(callback.thread(), clip(board.uuid));
    append(callback.thread(), record);
  }
  const auto gone = [](const void* function, unsigned failures) {
    return !function || failures >= kFailures;
  };
  return !(gone(reinterpret_cast<const void*>(f.fields), board.instant) &&
           gone(reinterpret_cast<const void*>(f.power), board.average) &&
           gone(reinterpret_cast<const void*>(f.energy), board.energy));
}

bool prepare(Sampler& s) {
  s.library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!s.library) {
    note("nvml", "libnvidia-ml.so.1 was not found; no power is recorded");
    return false;
  }
  if (!find_functions(s.library, s.nvml)) {
    note("nvml", "libnvidia-ml.so.1 lacks a function; no power is recorded");
    return false;
  }
  if (const Result result = s.nvml.init(); result != nvml::kSuccess) {
    note_failure("nvmlInit", result);
    return false;
  }
  s.initialized = true;
  char version[kTextBytes] = {};
  if (s.nvml.driver_version && s.nvml.driver_version(version, kTextBytes) == nvml::kSuccess)
    note("driver", clip(version));
  find_parts(s);
  std::size_t used = 0;
  for (std::size_t i = 0; i < s.part_count; ++i) {
    const Part& part = s.parts[i];
    if (!s.boards[part.board].device || !is_visible(s, part)) continue;
    note_part(s, part);
    s.boards[part.board].used = true;
    ++used;
  }
  if (used == 0) note("nvml", "no board is visible; no power is recorded");
  return used > 0;
}

void* run_sampler(void* argument) {
  auto& s = *static_cast<Sampler*>(argument);
  ::pthread_setname_np(::pthread_self(), "rehearse power");
  if (prepare(s)) {
    const auto period = static_cast<std::uint64_t>(1e9 / options().power);
    std::uint64_t next = clock_ns(CLOCK_MONOTONIC);
    for (bool last = false; !last;) {
      last = s.stopping.load(std::memory_order_acquire) != 0;
      bool any = false;
      for (std::size_t i = 0; i < s.board_count; ++i) {
        Board& board = s.boards[i];
        if (!board.used) continue;
        board.used = read_board(s.nvml, board, last);
        any = any || board.used;
        if (!board.used) note("nvml", "a board does not report its power");
      }
      if (!any) break;
      next += period;
      const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
      if (next <= now) next = now + period;  // reading takes longer than the period
      if (!last && s.stopping.load(std::memory_order_acquire) == 0)
        futex_wait(s.stopping, 0, next - now);
    }
  }
  // Counted: the program may use NVML, too.
  if (s.initialized && s.nvml.shutdown) s.nvml.shutdown();
  leave_recording();
  s.stopped.store(1, std::memory_order_release);
  futex_wake(s.stopped);
  return nullptr;
}

}  // namespace

void start_power() {
  if (!options().device || options().power <= 0 || running.load(std::memory_order_acquire) ||
      !attach())
    return;
  auto* sampler = static_cast<Sampler*>(reserve_memory(sizeof(Sampler)));
  if (!sampler) return;
  const char* visible = ::getenv("CUDA_VISIBLE_DEVICES");
  sampler->all_visible = !visible;
  if (visible) ::strncpy(sampler->visible, visible, sizeof sampler->visible - 1);
  sampler->owner = ::getpid();
  Sampler* none = nullptr;
  if (!running.compare_exchange_strong(none, sampler)) {
    ::munmap(sampler, sizeof(Sampler));
    return;
  }
  if (!start_thread(run_sampler, sampler)) {
    sampler->stopped.store(1, std::memory_order_release);
    return;
  }
  // Before NVML's own end of the process.
  ::atexit(stop_power);
}

void stop_power() {
  Sampler* sampler = running.load(std::memory_order_acquire);
  if (!sampler || sampler->owner != ::getpid()) return;
  sampler->stopping.store(1, std::memory_order_seq_cst);
  futex_wake(sampler->stopping);
  const std::uint64_t begin = clock_ns(CLOCK_MONOTONIC);
  while (sampler->stopped.load(std::memory_order_acquire) == 0) {
    const std::uint64_t waited = clock_ns(CLOCK_MONOTONIC) - begin;
    if (waited >= kSamplerPatience) return;
    futex_wait(sampler->stopped, 0, kSamplerPatience - waited);
  }
}

}  // namespace rehearse::capture
