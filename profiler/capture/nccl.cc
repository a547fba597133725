#include "profiler/capture/nccl.h"

#include <string_view>

#include <string.h>

#include "profiler/capture/options.h"
#include "profiler/capture/recording.h"
#include "profiler/capture/texts.h"

namespace rehearse::capture {
namespace {

using nccl::Result;

// Handles and contexts are the number of a slot plus one, and in the upper bits the number of the
// slot's use. 0, which is not a handle, means "none" to NCCL.
constexpr unsigned kSlotBits = 14;
constexpr std::uint64_t kSlots = (std::uint64_t{1} << kSlotBits) - 1;
constexpr std::uint64_t kNoSlot = kSlots;  ///< instead of a slot: nothing is kept of it
constexpr std::uint64_t kContexts = 1024;
constexpr std::uint64_t kCalls = 4096;

std::uint64_t number_of(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }
void* as_handle(std::uint64_t slot, std::uint64_t use) {
  return reinterpret_cast<void*>(use << kSlotBits | (slot + 1));
}

/// Slots that are taken and returned without a lock. Each has the number of its use, which is odd
/// while it is taken.
template <class Content, std::uint64_t kSize>
class Slots {
 public:
  static_assert(kSize <= kSlots);
  struct Slot {
    std::atomic<std::uint64_t> use;
    Content content;
  };

  /// Null if there is no memory or all slots are taken.
  Slot* take(void*& handle) {
    Slot* slots = memory();
    if (!slots) return nullptr;
    // Starts where the last search ended: the slots from there on were returned longest ago.
    const std::uint64_t begin = next_.load(std::memory_order_relaxed);
    for (std::uint64_t i = 0; i < kSize; ++i) {
      const std::uint64_t at = (begin + i) % kSize;
      std::uint64_t use = slots[at].use.load(std::memory_order_relaxed);
      if (use % 2 != 0 || !slots[at].use.compare_exchange_strong(use, use + 1)) continue;
      next_.store((at + 1) % kSize, std::memory_order_relaxed);
      handle = as_handle(at, use + 1);
      return &slots[at];
    }
    return nullptr;
  }

  /// The slot of a handle; null if the handle is no longer valid.
  Slot* find(const void* handle) { return find_within(handle, 0); }

  /// The same, also for a short while after the slot was returned. Data read there is valid only if
  /// the slot is found again after reading.
  Slot* find_given(const void* handle) { return find_within(handle, 1); }

  /// Returns a slot. False if another thread did so.
  bool give(const void* handle) {
    Slot* slot = find(handle);
    std::uint64_t use = number_of(handle) >> kSlotBits;
    return slot && slot->use.compare_exchange_strong(use, use + 1);
  }

  /// Calls visit(handle, content) for the slots that are taken.
  template <class Visit>
  void each(Visit visit) {
    Slot* slots = slots_.load(std::memory_order_acquire);
    for (std::uint64_t i = 0; slots && i < kSize; ++i) {
      const std::uint64_t use = slots[i].use.load(std::memory_order_acquire);
      if (use % 2 != 0) visit(as_handle(i, use), slots[i].content);
    }
  }

 private:
  /// The slot of a handle that was used at most so many times since.
  Slot* find_within(const void* handle, std::uint64_t uses) {
    const std::uint64_t at = (number_of(handle) & kSlots) - 1;
    Slot* slots = slots_.load(std::memory_order_acquire);
    if (!slots || at >= kSize) return nullptr;
    const std::uint64_t use = number_of(handle) >> kSlotBits;
    return slots[at].use.load(std::memory_order_acquire) - use <= uses ? &slots[at] : nullptr;
  }

  Slot* memory() {
    Slot* slots = slots_.load(std::memory_order_acquire);
    if (slots) return slots;
    auto* fresh = static_cast<Slot*>(reserve_memory(kSize * sizeof(Slot)));
    if (!fresh || slots_.compare_exchange_strong(slots, fresh)) return fresh;
    ::munmap(fresh, kSize * sizeof(Slot));
    return slots;
  }

  std::atomic<Slot*> slots_{nullptr};
  std::atomic<std::uint64_t> next_{0};
};

/// A communicator of this process. One thread at a time launches for it.
struct Context {
  std::uint64_t communicator;
  std::atomic<std::uint64_t> launch_start, launch_end, launch_thread;
};

/// An event between its start and its stop.
struct Event {
  std::uint64_t type;
  /// Its handle; 0 until the event has one, so that nobody who ends another context ends this event.
  std::atomic<std::uint64_t> context;
  CollectiveRecord collective;
  std::atomic<std::uint64_t> call;  ///< of the collective, or the one that a channel belongs to
  std::uint64_t channel;
  std::uint64_t gpu_start;
  std::atomic<std::uint64_t> gpu_end;
};

/// A call of the program. It is looked up after the call returned, when a group ends. So these
/// entries are overwritten in turn, and carry their number for identification.
struct Call {
  std::atomic<std::uint64_t> number;  ///< 0 while it is written
  std::atomic<std::uint64_t> time, stream, captured, datatype;
};

Slots<Context, kContexts> contexts;
Slots<Event, 8192> events;
Call calls[kCalls];
std::atomic<std::uint64_t> call_numbers{0};
std::atomic<std::uint64_t> collective_numbers{0};

/// Handles of calls have kNoSlot instead of a slot.
void* call_handle(std::uint64_t number) { return as_handle(kNoSlot - 1, number); }
void* untracked_handle() { return call_handle(0); }

std::uint64_t plus_one(int number) {
  return number < 0 ? 0 : static_cast<std::uint64_t>(number) + 1;
}

/// NCCL's name of a type without the common prefix: "ncclBfloat16" is "Bfloat16".
std::string_view type_name(const char* name) {
  std::string_view text = clip(name);
  if (text.starts_with("nccl")) text.remove_prefix(4);
  return text;
}

/// Bytes of an element; 0 for an unknown type. The types are those of nccl.h, by the names in
/// NCCL's messages.
std::uint64_t type_bytes(std::string_view name) {
  struct Type {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr Type kTypes[] = {{"Int8", 1},    {"Uint8", 1},    {"Float8e4m3", 1}, {"Float8e5m2", 1},
                             {"Float16", 2}, {"Bfloat16", 2}, {"Int32", 4},      {"Uint32", 4},
                             {"Float32", 4}, {"Int64", 8},    {"Uint64", 8},     {"Float64", 8}};
  for (const Type& type : kTypes)
    if (type.name == name) return type.bytes;
  return 0;
}

std::uint64_t bytes_of(std::uint64_t count, std::string_view datatype) {
  std::uint64_t bytes = 0;
  return __builtin_mul_overflow(count, type_bytes(datatype), &bytes) ? 0 : bytes;
}

/// Records the communicator and returns which events are requested.
Result initialize(int version, void** context, int* mask, const char* name,
                  std::uint64_t communicator, int nodes, int ranks, int rank) {
  using namespace nccl;
  if (!context || !mask || !attach()) return kSystemError;
  *mask = static_cast<int>(kCollective | kSendReceive | kGroupCall | kCollectiveCall |
                           kSendReceiveCall | kKernelLaunch);
  if (options().channels && version > 3) *mask |= static_cast<int>(kKernelChannel);
  *context = untracked_handle();
  if (auto* slot = contexts.take(*context)) {
    slot->content.communicator = communicator;
    slot->content.launch_end.store(0, std::memory_order_relaxed);
  }
  const Callback callback;
  if (!callback) return kSuccess;
  const auto number = [](int value) {
    return value < 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(value);
  };
  append(callback.thread(), CommunicatorRecord{.name = text_number(callback.thread(), clip(name)),
                                               .communicator = communicator,
                                               .ranks = number(ranks),
                                               .rank = number(rank),
                                               .nodes = number(nodes)});
  return kSuccess;
}

/// The data of a collective, or of a send or receive, from any version of the interface.
struct Asked {
  std::uint64_t communicator = 0;
  nccl::Collective what = {};
  bool has_sequence = false;
};

Asked read_collective(int version, const unsigned char* detail) {
  Asked asked{.has_sequence = true};
  if (version == 3) {
    nccl::Collective3 from;
    std::memcpy(&from, detail, sizeof from);
    asked.communicator = from.communicator;
    asked.what = from.what;
  } else {
    std::memcpy(&asked.what, detail, sizeof asked.what);
  }
  return asked;
}

Asked read_send_receive(int version, const unsigned char* detail) {
  Asked asked;
  nccl::SendReceive from = {};
  if (version == 3) {
    nccl::SendReceive3 older;
    std::memcpy(&older, detail, sizeof older);
    asked.communicator = older.communicator;
    from = {.function = older.function,
            .buffer = older.buffer,
            .datatype = older.datatype,
            .count = older.count,
            .peer = older.peer,
            .channels = 0};
  } else {
    std::memcpy(&from, detail, sizeof from);
  }
  asked.what.function = from.function;
  asked.what.count = from.count;
  asked.what.root = from.peer;
  asked.what.datatype = from.datatype;
  asked.what.channels = from.channels;
  return asked;
}

/// Adds the data of the call that an event belongs to. NCCL converts the elements of some
/// collectives into bytes before it reports them; the call has the type that the program named.
void add_call(const void* parent, CollectiveRecord& record) {
  const std::uint64_t number = number_of(parent) >> kSlotBits;
  if (number == 0 || (number_of(parent) & kSlots) != kNoSlot) return;
  Call& call = calls[number % kCalls];
  if (call.number.load(std::memory_order_acquire) != number) return;
  const std::uint64_t time = call.time.load(std::memory_order_relaxed);
  const std::uint64_t stream = call.stream.load(std::memory_order_relaxed);
  const std::uint64_t captured = call.captured.load(std::memory_order_relaxed);
  const std::uint64_t datatype = call.datatype.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (call.number.load(std::memory_order_relaxed) != number) return;
  record.asked = time;
  record.stream = stream;
  record.captured = captured;
  const auto text = static_cast<std::uint32_t>(datatype),
             bytes = static_cast<std::uint32_t>(datatype >> 32);
  if (bytes == 0 || record.bytes % bytes != 0) return;
  record.datatype = text;
  record.count = record.bytes / bytes;
}

void start_collective(ThreadState& thread, const void* context, const void* parent,
                      const Asked& asked, void** handle, std::uint64_t type) {
  auto* slot = events.take(*handle);
  if (!slot) return count_lost(thread);
  Event& event = slot->content;
  event.type = type;
  event.context.store(number_of(context), std::memory_order_relaxed);
  const std::string_view datatype = type_name(asked.what.datatype);
  event.collective = {.function = text_number(thread, clip(asked.what.function)),
                      .datatype = text_number(thread, datatype),
                      .algorithm = text_number(thread, clip(asked.what.algorithm)),
                      .protocol = text_number(thread, clip(asked.what.protocol)),
                      .start = realtime_ns(),
                      .end = 0,
                      .thread = thread.thread,
                      .communicator = asked.communicator,
                      .sequence = asked.has_sequence ? asked.what.sequence + 1 : 0,
                      .count = asked.what.count,
                      .bytes = bytes_of(asked.what.count, datatype),
                      .peer = plus_one(asked.what.root),
                      .channels = asked.what.channels,
                      .warps = asked.what.warps,
                      .call = collective_numbers.fetch_add(1, std::memory_order_relaxed) + 1,
                      .launch_start = 0,
                      .launch_end = 0,
                      .asked = 0,
                      .stream = 0,
                      .captured = 0};
  event.call.store(event.collective.call, std::memory_order_relaxed);
  add_call(parent, event.collective);
  if (const auto* of = contexts.find(context)) {
    const Context& communicator = of->content;
    if (event.collective.communicator == 0)
      event.collective.communicator = communicator.communicator;
    // A communicator's kernel is launched first; then NCCL reports its contents.
    if (communicator.launch_thread.load(std::memory_order_relaxed) == thread.thread) {
      event.collective.launch_end = communicator.launch_end.load(std::memory_order_relaxed);
      if (event.collective.launch_end != 0)
        event.collective.launch_start = communicator.launch_start.load(std::memory_order_relaxed);
    }
  }
}

/// Records a call of the program. The members after `stream` and `captured` differ by the kind of
/// call.
template <class CallDetail>
void* note_call(ThreadState& thread, const unsigned char* detail) {
  CallDetail what;
  std::memcpy(&what, detail, sizeof what);
  const std::string_view datatype = type_name(what.datatype);
  const std::uint32_t text = text_number(thread, datatype);
  const std::uint64_t number = call_numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  Call& call = calls[number % kCalls];
  call.number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  call.time.store(realtime_ns(), std::memory_order_relaxed);
  call.stream.store(reinterpret_cast<std::uint64_t>(what.stream), std::memory_order_relaxed);
  call.captured.store(what.captured, std::memory_order_relaxed);
  call.datatype.store(text == kLostText ? 0 : type_bytes(datatype) << 32 | text,
                      std::memory_order_relaxed);
  call.number.store(number, std::memory_order_release);
  return call_handle(number);
}

void start_launch(ThreadState& thread, void* context, void** handle) {
  auto* of = contexts.find(context);
  auto* slot = of ? events.take(*handle) : nullptr;
  if (!slot) return;
  slot->content.type = nccl::kKernelLaunch;
  slot->content.context.store(number_of(context), std::memory_order_relaxed);
  of->content.launch_end.store(0, std::memory_order_relaxed);
  of->content.launch_thread.store(thread.thread, std::memory_order_relaxed);
  of->content.launch_start.store(realtime_ns(), std::memory_order_relaxed);
}

void start_channel(ThreadState& thread, const void* context, const void* parent,
                   const unsigned char* detail, void** handle) {
  // NCCL considers the collective finished once its kernel is launched; its channels come after
  // that.
  std::uint64_t call = 0;
  if (auto* of = events.find_given(parent)) {
    call = of->content.call.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (events.find_given(parent) != of) call = 0;
  }
  auto* slot = events.take(*handle);
  if (!slot) return count_lost(thread);
  nccl::KernelChannel what;
  std::memcpy(&what, detail, sizeof what);
  Event& event = slot->content;
  event.type = nccl::kKernelChannel;
  event.context.store(number_of(context), std::memory_order_relaxed);
  event.call.store(call, std::memory_order_relaxed);
  event.channel = what.channel;
  event.gpu_start = what.time;
  event.gpu_end.store(0, std::memory_order_relaxed);
}

void start_event(int version, void* context, void** handle, const void* event) {
  if (!handle) return;
  *handle = untracked_handle();
  const Callback callback;
  if (!callback || !event) return;
  ThreadState& thread = callback.thread();
  nccl::EventHead5 head;  // the parent is at the same place in all versions
  std::memcpy(&head, event, sizeof head);
  if (version < 5) head.type &= 0xFF;
  const unsigned char* detail = static_cast<const unsigned char*>(event) + nccl::kDetailAt;
  switch (head.type) {
    case nccl::kCollective:
      return start_collective(thread, context, head.parent, read_collective(version, detail),
                              handle, head.type);
    case nccl::kSendReceive:
      return start_collective(thread, context, head.parent, read_send_receive(version, detail),
                              handle, head.type);
    case nccl::kKernelChannel:
      if (version > 3) start_channel(thread, context, head.parent, detail, handle);
      return;
    case nccl::kCollectiveCall: *handle = note_call<nccl::CollectiveCall>(thread, detail); return;
    case nccl::kSendReceiveCall: *handle = note_call<nccl::SendReceiveCall>(thread, detail); return;
    case nccl::kKernelLaunch: return start_launch(thread, context, handle);
    default: return;
  }
}

/// False if another thread did so.
bool forget(const void* handle, Event& event) {
  event.context.store(0, std::memory_order_relaxed);
  return events.give(handle);
}

/// Records the data of an event and forgets the event. `stopped`: it ended in order.
void end_event(ThreadState& thread, void* handle, Event& event, bool stopped) {
  const std::uint64_t type = event.type, context = event.context.load(std::memory_order_relaxed);
  CollectiveRecord collective = event.collective;
  const CollectiveKernelRecord kernel = {.call = event.call.load(std::memory_order_relaxed),
                                         .channel = event.channel,
                                         .gpu_start = event.gpu_start,
                                         .gpu_end = event.gpu_end.load(std::memory_order_relaxed)};
  if (!forget(handle, event)) return;
  if (type == nccl::kCollective || type == nccl::kSendReceive) {
    if (stopped) collective.end = realtime_ns();
    append(thread, collective);
  } else if (type == nccl::kKernelChannel && kernel.gpu_end != 0) {
    append(thread, kernel);
  } else if (type == nccl::kKernelLaunch && stopped) {
    if (auto* of = contexts.find(reinterpret_cast<void*>(context)))
      of->content.launch_end.store(realtime_ns(), std::memory_order_relaxed);
  }
}

}  // namespace

Result nccl_init_v3(void** context, int* mask) {
  return initialize(3, context, mask, nullptr, 0, 0, 0, 0);
}
Result nccl_init_v4(void** context, int* mask, const char* name, std::uint64_t communicator,
                    int nodes, int ranks, int rank, nccl::Logger) {
  return initialize(4, context, mask, name, communicator, nodes, ranks, rank);
}
Result nccl_init_v5(void** context, std::uint64_t communicator, int* mask, const char* name,
                    int nodes, int ranks, int rank, nccl::Logger) {
  return initialize(5, context, mask, name, communicator, nodes, ranks, rank);
}

Result nccl_start_v3(void* context, void** handle, void* event) {
  start_event(3, context, handle, event);
  return nccl::kSuccess;
}
Result nccl_start_v4(void* context, void** handle, void* event) {
  start_event(4, context, handle, event);
  return nccl::kSuccess;
}
Result nccl_start_v5(void* context, void** handle, void* event) {
  start_event(5, context, handle, event);
  return nccl::kSuccess;
}

Result nccl_stop(void* handle) {
  auto* slot = events.find(handle);
  if (!slot) return nccl::kSuccess;
  if (const Callback callback; callback)
    end_event(callback.thread(), handle, slot->content, true);
  else
    forget(handle, slot->content);
  return nccl::kSuccess;
}

Result nccl_record_state(void* handle, int state, void* arguments) {
  if (state != nccl::kKernelChannelStop || !arguments) return nccl::kSuccess;
  nccl::KernelChannelStop what;
  std::memcpy(&what, arguments, sizeof what);
  auto* slot = events.find(handle);
  if (slot && slot->content.type == nccl::kKernelChannel)
    slot->content.gpu_end.store(what.time, std::memory_order_relaxed);
  return nccl::kSuccess;
}

Result nccl_finalize(void* context) {
  const Callback callback;
  events.each([&](void* handle, Event& event) {
    if (event.context.load(std::memory_order_relaxed) != number_of(context)) return;
    if (callback)
      end_event(callback.thread(), handle, event, false);
    else
      forget(handle, event);
  });
  contexts.give(context);
  return nccl::kSuccess;
}

}  // namespace rehearse::capture
