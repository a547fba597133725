#include "profiler/capture/nvtx.h"

#include <algorithm>
#include <string_view>

#include "profiler/capture/nvtx_abi.h"
#include "profiler/capture/nvtx_payload.h"
#include "profiler/capture/recording.h"
#include "profiler/capture/texts.h"

namespace rehearse::capture {
namespace {

using nvtx::DomainHandle;
using nvtx::EventAttributes;
using nvtx::PayloadData;
using nvtx::RangeId;
using nvtx::StringHandle;

// The number of the name of NCCL's domain, once it exists.
std::atomic<std::uint32_t> domain_of_nccl{0};

std::uint32_t domain_number(DomainHandle domain) {
  const Text* text = as_text(domain);
  return text ? text->number : 0;
}

std::uint32_t number_of(ThreadState& thread, const char* message) {
  return text_number(thread, clip(message));
}
std::uint32_t number_of(ThreadState& thread, const wchar_t* message) {
  char utf8[kMaxTextBytes];
  return text_number(thread, narrow(message, utf8));
}
std::uint32_t number_of(ThreadState& thread, std::int32_t type, nvtx::Message message) {
  switch (type) {
    case nvtx::kMessageAscii: return number_of(thread, message.ascii);
    case nvtx::kMessageWide: return number_of(thread, message.wide);
    case nvtx::kMessageRegistered: {
      const Text* text = as_text(message.registered);
      if (text) thread.step = text->step;
      return text ? text->number : 0;
    }
    default: return 0;
  }
}

void note_communicator(ThreadState& thread, const Communicator& made) {
  if (made.ranks == 0) return;
  append(thread, {.time = realtime_ns(),
                  .span = made.rank,
                  .payload = made.ranks,
                  .group = made.group,
                  .kind = RowKind::kCommunicator});
}

void read_payload(ThreadState& thread, const EventAttributes& event, Row& row) {
  switch (event.payload_type) {
    case nvtx::kPayloadUint64:
    case nvtx::kPayloadInt64:
    case nvtx::kPayloadDouble: row.payload = event.payload.u64; break;
    case nvtx::kPayloadUint32:
    case nvtx::kPayloadFloat: row.payload = event.payload.u32; break;
    case nvtx::kPayloadInt32:
      row.payload = static_cast<std::uint64_t>(std::int64_t{event.payload.i32});
      break;
    case nvtx::kPayloadExtended:
      if (event.reserved > 0)
        note_communicator(thread,
                          read_payloads(reinterpret_cast<const PayloadData*>(event.payload.u64),
                                        static_cast<std::size_t>(event.reserved), row.domain,
                                        domain_of_nccl.load(std::memory_order_relaxed), row));
      return;
    default: return;
  }
  row.payload_kind = static_cast<PayloadKind>(event.payload_type);
}

// Fills a row from any of the forms that NVTX has for its content. `row` already has its kind and
// its domain.
void fill(ThreadState& thread, Row& row, const EventAttributes* event) {
  if (!event || event->size < sizeof(EventAttributes)) return;
  row.text = number_of(thread, event->message_type, event->message);
  row.category = event->category;
  read_payload(thread, *event, row);
}
template <class Char>
void fill(ThreadState& thread, Row& row, const Char* message) {
  row.text = number_of(thread, message);
}
void fill(ThreadState& thread, Row& row, const PayloadData* payloads, std::size_t count) {
  row.text = text_number(thread, payload_message(payloads, count, row.domain));
  note_communicator(thread, read_payloads(payloads, count, row.domain,
                                          domain_of_nccl.load(std::memory_order_relaxed), row));
}

template <class... What>
int push_range(DomainHandle domain, What... what) {
  const Callback callback;
  if (!callback) return nvtx::kNoPushPopTracking;
  ThreadState& thread = callback.thread();
  return push(thread, domain_number(domain), [&](Row& row) { fill(thread, row, what...); });
}

template <class... What>
void mark(DomainHandle domain, What... what) {
  const Callback callback;
  if (!callback) return;
  Row row{.domain = domain_number(domain), .kind = RowKind::kMark};
  fill(callback.thread(), row, what...);
  row.time = realtime_ns();
  append(callback.thread(), row);
}

/// The number of a range says by which thread it was started, so that threads need no common count.
/// 0, which no range has, tells range_end that the start was lost or left out; a step that was left
/// out has to be known at its end all the same.
constexpr RangeId kLeftOut = RangeId{1} << 63;

template <class... What>
RangeId start_range(DomainHandle domain, What... what) {
  const Callback callback;
  if (!callback) return 0;
  ThreadState& thread = callback.thread();
  Row row{.domain = domain_number(domain), .kind = RowKind::kStart};
  fill(thread, row, what...);
  row.span = std::uint64_t{thread.thread} << 32 | ++thread.started;
  row.time = realtime_ns();
  const bool step = may_be_step(thread, row.domain) && open_step(thread.step, row);
  const bool added = append(thread, row);
  if (!step) return added ? row.span : 0;
  const RangeId id = added ? row.span : row.span | kLeftOut;
  started_step.store(id, std::memory_order_relaxed);
  return id;
}

void end_range(RangeId id) {
  const Callback callback;
  if (!callback || id == 0) return;
  const std::uint64_t now = realtime_ns();
  if (id == started_step.load(std::memory_order_relaxed)) {
    started_step.store(0, std::memory_order_relaxed);
    close_step(now);
  }
  if ((id & kLeftOut) == 0)
    append(callback.thread(), {.time = now, .span = id, .kind = RowKind::kEnd});
}

int pop_range(DomainHandle domain) {
  const Callback callback;
  if (!callback) return nvtx::kNoPushPopTracking;
  return pop(callback.thread(), domain_number(domain), [](Row&) {});
}

template <class Char>
void name_category(DomainHandle domain, std::uint32_t category, const Char* name) {
  const Callback callback;
  if (!callback) return;
  Row row{.time = realtime_ns(),
          .domain = domain_number(domain),
          .category = category,
          .kind = RowKind::kCategoryName};
  fill(callback.thread(), row, name);
  append(callback.thread(), row);
}

template <class Char>
void name_thread(std::uint32_t thread, const Char* name) {
  const Callback callback;
  if (!callback) return;
  append(callback.thread(), {.span = thread, .text = number_of(callback.thread(), name)},
         SlotKind::kThreadName);
}

DomainHandle create_domain(std::string_view name) {
  const Text* text = intern(name, true);
  if (text && name == kStepDomain) step_domain.store(text->number, std::memory_order_relaxed);
  if (text && name == "NCCL") domain_of_nccl.store(text->number, std::memory_order_relaxed);
  return reinterpret_cast<DomainHandle>(text);
}

StringHandle register_string(std::string_view content) {
  return reinterpret_cast<StringHandle>(intern(content, true));
}

// The functions that NVTX calls. Their types are C's, and none of them throws.

void mark_ex(const EventAttributes* event) { mark(nullptr, event); }
void mark_a(const char* message) { mark(nullptr, message); }
void mark_w(const wchar_t* message) { mark(nullptr, message); }
RangeId range_start_ex(const EventAttributes* event) { return start_range(nullptr, event); }
RangeId range_start_a(const char* message) { return start_range(nullptr, message); }
RangeId range_start_w(const wchar_t* message) { return start_range(nullptr, message); }
void range_end(RangeId id) { end_range(id); }
int range_push_ex(const EventAttributes* event) { return push_range(nullptr, event); }
int range_push_a(const char* message) { return push_range(nullptr, message); }
int range_push_w(const wchar_t* message) { return push_range(nullptr, message); }
int range_pop() { return pop_range(nullptr); }
void name_category_a(std::uint32_t category, const char* name) {
  name_category(nullptr, category, name);
}
void name_category_w(std::uint32_t category, const wchar_t* name) {
  name_category(nullptr, category, name);
}
void name_os_thread_a(std::uint32_t thread, const char* name) { name_thread(thread, name); }
void name_os_thread_w(std::uint32_t thread, const wchar_t* name) { name_thread(thread, name); }

void domain_mark_ex(DomainHandle domain, const EventAttributes* event) { mark(domain, event); }
RangeId domain_range_start_ex(DomainHandle domain, const EventAttributes* event) {
  return start_range(domain, event);
}
void domain_range_end(DomainHandle, RangeId id) { end_range(id); }
int domain_range_push_ex(DomainHandle domain, const EventAttributes* event) {
  return push_range(domain, event);
}
int domain_range_pop(DomainHandle domain) { return pop_range(domain); }
void domain_name_category_a(DomainHandle domain, std::uint32_t category, const char* name) {
  name_category(domain, category, name);
}
void domain_name_category_w(DomainHandle domain, std::uint32_t category, const wchar_t* name) {
  name_category(domain, category, name);
}
StringHandle domain_register_string_a(DomainHandle, const char* content) {
  return register_string(clip(content));
}
StringHandle domain_register_string_w(DomainHandle, const wchar_t* content) {
  char utf8[kMaxTextBytes];
  return register_string(narrow(content, utf8));
}
DomainHandle domain_create_a(const char* name) { return create_domain(clip(name)); }
DomainHandle domain_create_w(const wchar_t* name) {
  char utf8[kMaxTextBytes];
  return create_domain(narrow(name, utf8));
}

std::uint64_t schema_register(DomainHandle domain, const nvtx::SchemaAttributes* attributes) {
  return register_schema(domain_number(domain), attributes);
}
void mark_payload(DomainHandle domain, const PayloadData* payloads, std::size_t count) {
  mark(domain, payloads, count);
}
int range_push_payload(DomainHandle domain, const PayloadData* payloads, std::size_t count) {
  return push_range(domain, payloads, count);
}
int range_pop_payload(DomainHandle domain, const PayloadData* payloads, std::size_t count) {
  const Callback callback;
  if (!callback) return nvtx::kNoPushPopTracking;
  Communicator made;
  const int level = pop(callback.thread(), domain_number(domain), [&](Row& row) {
    made = read_payloads(payloads, count, row.domain,
                         domain_of_nccl.load(std::memory_order_relaxed), row);
  });
  note_communicator(callback.thread(), made);
  return level;
}
RangeId range_start_payload(DomainHandle domain, const PayloadData* payloads, std::size_t count) {
  return start_range(domain, payloads, count);
}
void range_end_payload(DomainHandle, RangeId id, const PayloadData*, std::size_t) { end_range(id); }

/// Stores functions in those slots that a client's table has.
class Table {
 public:
  Table(const nvtx::CallbackExports& exports, nvtx::Module module) {
    if (exports.module_table(module, &slots_, &count_) == 0) count_ = 0;
  }
  template <class Callback>
  void set(unsigned slot, Callback* callback) {
    if (slot < count_ && slots_ && slots_[slot])
      *slots_[slot] = reinterpret_cast<nvtx::Function>(callback);
  }

 private:
  nvtx::FunctionTable slots_ = nullptr;
  unsigned count_ = 0;
};

}  // namespace

int initialize_nvtx(nvtx::GetExportTable get_export_table) {
  if (!get_export_table || !attach()) return 0;
  const auto* exports =
      static_cast<const nvtx::CallbackExports*>(get_export_table(nvtx::kExportCallbacks));
  if (!exports || exports->struct_size < sizeof *exports) return 0;
  const auto* version =
      static_cast<const nvtx::VersionExports*>(get_export_table(nvtx::kExportVersion));
  if (version && version->struct_size >= sizeof *version && version->set_tool_version)
    version->set_tool_version(3);

  Table core(*exports, nvtx::kModuleCore);
  core.set(nvtx::kMarkEx, mark_ex);
  core.set(nvtx::kMarkA, mark_a);
  core.set(nvtx::kMarkW, mark_w);
  core.set(nvtx::kRangeStartEx, range_start_ex);
  core.set(nvtx::kRangeStartA, range_start_a);
  core.set(nvtx::kRangeStartW, range_start_w);
  core.set(nvtx::kRangeEnd, range_end);
  core.set(nvtx::kRangePushEx, range_push_ex);
  core.set(nvtx::kRangePushA, range_push_a);
  core.set(nvtx::kRangePushW, range_push_w);
  core.set(nvtx::kRangePop, range_pop);
  core.set(nvtx::kNameCategoryA, name_category_a);
  core.set(nvtx::kNameCategoryW, name_category_w);
  core.set(nvtx::kNameOsThreadA, name_os_thread_a);
  core.set(nvtx::kNameOsThreadW, name_os_thread_w);

  Table core2(*exports, nvtx::kModuleCore2);
  core2.set(nvtx::kDomainMarkEx, domain_mark_ex);
  core2.set(nvtx::kDomainRangeStartEx, domain_range_start_ex);
  core2.set(nvtx::kDomainRangeEnd, domain_range_end);
  core2.set(nvtx::kDomainRangePushEx, domain_range_push_ex);
  core2.set(nvtx::kDomainRangePop, domain_range_pop);
  core2.set(nvtx::kDomainNameCategoryA, domain_name_category_a);
  core2.set(nvtx::kDomainNameCategoryW, domain_name_category_w);
  core2.set(nvtx::kDomainRegisterStringA, domain_register_string_a);
  core2.set(nvtx::kDomainRegisterStringW, domain_register_string_w);
  core2.set(nvtx::kDomainCreateA, domain_create_a);
  core2.set(nvtx::kDomainCreateW, domain_create_w);
  return 1;
}

int initialize_nvtx_extension(nvtx::ExtensionModule* module) {
  if (!module || !attach()) return 0;
  if (module->module != nvtx::kPayloadModule || module->segments_count == 0 || !module->segments)
    return 1;
  const nvtx::ExtensionSegment& segment = module->segments[0];
  const auto set = [&](unsigned slot, auto* callback) {
    if (slot < segment.slots && segment.functions)
      segment.functions[slot] = reinterpret_cast<std::intptr_t>(callback);
  };
  if (module->compatibility >= nvtx::kPayloadOldest &&
      module->compatibility <= nvtx::kPayloadNewest)
    set(nvtx::kSchemaRegister, schema_register);
  set(nvtx::kMarkPayload, mark_payload);
  set(nvtx::kRangePushPayload, range_push_payload);
  set(nvtx::kRangePopPayload, range_pop_payload);
  set(nvtx::kRangeStartPayload, range_start_payload);
  set(nvtx::kRangeEndPayload, range_end_payload);
  return 1;
}

int push_named(const char* domain, const char* name) {
  return push_range(create_domain(clip(domain)), name);
}

int pop_named(const char* domain, const char* name) {
  const Callback callback;
  if (!callback) return nvtx::kNoPushPopTracking;
  return pop(callback.thread(), domain_number(create_domain(clip(domain))), [&](Row& row) {
    if (name) row.text = number_of(callback.thread(), name);
  });
}

double ns_per_range() {
  constexpr int kRounds = 400;
  constexpr int kPairs = 200;
  const std::size_t bytes = sizeof(ThreadState) + sizeof(Chunk);
  void* memory = reserve_memory(bytes);
  if (!memory) return 0;
  auto& state = *static_cast<ThreadState*>(memory);
  auto& chunk = *reinterpret_cast<Chunk*>(static_cast<char*>(memory) + sizeof(ThreadState));
  state.chunk.store(&chunk, std::memory_order_relaxed);
  ThreadState* const before = this_thread_state;
  this_thread_state = &state;
  std::uint64_t took[kRounds];
  for (std::uint64_t& round : took) {
    const std::uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    for (int pair = 0; pair < kPairs; ++pair) {
      range_push_a("rehearse: cost of a range");
      range_pop();
    }
    round = clock_ns(CLOCK_MONOTONIC) - begin;
    chunk.used.store(0, std::memory_order_relaxed);
  }
  this_thread_state = before;
  ::munmap(memory, bytes);
  std::nth_element(took, took + kRounds / 2, took + kRounds);
  const auto median = took[kRounds / 2];
  return static_cast<double>(median) / kPairs;
}

}  // namespace rehearse::capture
