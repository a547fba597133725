#include "profiler/ingest/capture_device.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

#include "profiler/ingest/device_calls.h"
#include "profiler/trace/collective_names.h"

namespace rehearse::ingest {
namespace {

using namespace trace;
using namespace capture;

/// CUPTI numbers calls from 1.
std::optional<std::uint32_t> correlation(std::uint64_t number) {
  if (number == 0) return std::nullopt;
  return static_cast<std::uint32_t>(number);  // of 64 bits: wraps as those of 32 do
}

std::uint32_t clamped(std::uint64_t number) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX));
}

/// By CUpti_ActivityOverheadKind, in the words of other recorders. What the driver does for the
/// program's sake, recorded or not, is no work of the profiler.
struct OverheadKind {
  std::uint64_t number;
  std::string_view name;
  bool of_profiler;
};
constexpr auto kOverheads = std::to_array<OverheadKind>({
    {1, "Driver Compiler", false},
    {std::uint64_t{1} << 16, "Buffer Flush", true},
    {std::uint64_t{2} << 16, "Instrumentation", true},
    {std::uint64_t{3} << 16, "Resource", true},
    {std::uint64_t{4} << 16, "Runtime Triggered Module Loading", false},
    {std::uint64_t{5} << 16, "Lazy Function Loading", false},
    {std::uint64_t{6} << 16, "Command Buffer Full", false},
    {std::uint64_t{7} << 16, "Activity Buffer Request", true},
    {std::uint64_t{8} << 16, "UVM Activity Init", true},
});

}  // namespace

template <class Record>
bool CaptureDevice::read_all(const RecordsBlock& block) {
  for (std::size_t i = 0; i < block.count; ++i) read(block.at<Record>(i));
  return true;
}

bool CaptureDevice::read(const RecordsBlock& block) {
  switch (block.table) {
    case TableId::kKernel: return read_all<KernelRecord>(block);
    case TableId::kCopy: return read_all<CopyRecord>(block);
    case TableId::kSet: return read_all<SetRecord>(block);
    case TableId::kCall: return read_all<CallRecord>(block);
    case TableId::kSync: return read_all<SyncRecord>(block);
    case TableId::kEvent: return read_all<EventRecord>(block);
    case TableId::kGraphLaunch: return read_all<GraphLaunchRecord>(block);
    case TableId::kMemory: return read_all<MemoryRecord>(block);
    case TableId::kJit: return read_all<JitRecord>(block);
    case TableId::kOverhead: return read_all<OverheadRecord>(block);
    case TableId::kDevice: return read_all<DeviceRecord>(block);
    case TableId::kContext: return read_all<ContextRecord>(block);
    case TableId::kFact: return read_all<FactRecord>(block);
    case TableId::kKeptStep:  // for people: the step itself is rows
      return true;
    default: return false;
  }
}

std::optional<CaptureDevice::Span> CaptureDevice::span(std::uint64_t start, std::uint64_t end,
                                                       bool may_be_empty) {
  constexpr std::uint64_t kLongestSpan = std::uint64_t{30} * 86400 * 1000000000;
  const bool lost = start == 0 || end < start || (end == start && !may_be_empty);
  const auto from = clock_.at(start), to = clock_.at(end);
  if (lost || !from || !to || end - start > kLongestSpan) {
    recorder_.problem(lost ? ProblemKind::kLostTiming : ProblemKind::kAbsurdNumber);
    return std::nullopt;
  }
  return Span{*from, *to - *from};
}

/// Contexts number their streams each for itself. The first to use a number keeps it.
std::optional<std::uint32_t> CaptureDevice::stream(std::uint64_t device, std::uint64_t context,
                                                   std::uint64_t number) {
  if (number >= UINT32_MAX) return std::nullopt;
  const auto [known, is_new] =
      streams_.try_emplace({device, context, number}, static_cast<std::uint32_t>(number));
  if (!is_new) return known->second;
  constexpr std::uint64_t kOthers = 100000;  // beyond the numbers that contexts give
  std::uint64_t free = number;
  while (!context_of_stream_.try_emplace({device, free}, context).second) free += kOthers;
  known->second = clamped(free);
  return known->second;
}

std::optional<CollectiveId> CaptureDevice::collective_of(NameId kernel) {
  const auto [at, is_new] = collectives_.try_emplace(kernel);
  if (is_new)
    if (const auto kind = collective_from_kernel(recorder_.names()[kernel]))
      at->second = recorder_.collective({.kind = *kind});
  return at->second;
}

template <class Record>
void CaptureDevice::add(const Record& record, GpuOp op) {
  op.correlation = correlation(record.correlation);
  if (record.start == 0 || record.end <= record.start) return recorder_.lost_timing(op.correlation);
  const std::optional<Span> when = span(record.start, record.end, false);
  if (!when) return;
  device_of_context_.try_emplace(record.context, record.device);
  const auto on = stream(record.device, record.context, record.stream);
  if (!on || record.device > UINT16_MAX) return recorder_.problem(ProblemKind::kAbsurdNumber);
  op.device = static_cast<std::uint16_t>(record.device);
  op.stream = *on;
  op.start = when->start;
  op.duration = when->duration;
  if (!nccl_.hold(op)) recorder_.add(op);
}

void CaptureDevice::read(const KernelRecord& record) {
  const auto name = texts_.name(record.name);
  if (!name) return recorder_.problem(ProblemKind::kMissingField);
  GpuOp op{
      .name = *name, .kind = GpuKind::kKernel, .start = Nanoseconds(0), .duration = Nanoseconds(0)};
  op.launch_shape = recorder_.launch_shape(
      {.grid = {clamped(record.grid_x), clamped(record.grid_y), clamped(record.grid_z)},
       .block = {clamped(record.block_x), clamped(record.block_y), clamped(record.block_z)},
       .registers = clamped(record.registers),
       .shared_bytes =
           clamped(clamped(record.static_shared) + std::uint64_t{clamped(record.dynamic_shared)})});
  op.collective = collective_of(*name);
  add(record, op);
}

void CaptureDevice::read(const CopyRecord& record) {
  GpuOp op{.name = NameId(0),
           .kind = GpuKind::kCopy,
           .start = Nanoseconds(0),
           .duration = Nanoseconds(0),
           .bytes = record.bytes};
  op.name = recorder_.name(describe_copy(record.direction, record.from, record.to, op));
  add(record, op);
}

void CaptureDevice::read(const SetRecord& record) {
  add(record, {.name = recorder_.name(fmt::format("Memset ({})", memory_name(record.memory))),
               .kind = GpuKind::kSet,
               .start = Nanoseconds(0),
               .duration = Nanoseconds(0),
               .bytes = record.bytes});
}

/// One row covers everything that the graph did.
void CaptureDevice::read(const GraphLaunchRecord& record) {
  add(record, {.name = recorder_.name(fmt::format("CUDA graph {}", record.graph)),
               .kind = GpuKind::kKernel,
               .start = Nanoseconds(0),
               .duration = Nanoseconds(0)});
}

void CaptureDevice::read(const CallRecord& record) {
  const auto name = texts_.name(record.name);
  if (!name || record.thread > UINT32_MAX) return recorder_.problem(ProblemKind::kMissingField);
  const std::optional<Span> when = span(record.start, record.end, true);
  if (!when) return;
  HostOp op{.name = *name,
            .thread = texts_.thread(static_cast<std::uint32_t>(record.thread)),
            .kind = record.driver != 0 ? HostKind::kDriver : HostKind::kRuntime,
            .start = when->start,
            .duration = when->duration,
            .correlation = correlation(record.correlation)};
  const auto [known, is_new] = launches_.try_emplace(*name);
  if (is_new) known->second = starts_device_work(recorder_.names()[*name]);
  const bool launches = known->second && record.result == 0;
  if (op.kind == HostKind::kDriver && op.correlation) return young_calls_.push_back({op, launches});
  if (op.correlation) runtime_[*op.correlation] = true;
  recorder_.add(op, launches);
}

/// A call of the driver in a call of the runtime bears its correlation: one call, not two.
void CaptureDevice::settle(std::vector<DriverCall>& calls) {
  for (const DriverCall& call : calls)
    if (!runtime_[*call.op.correlation]) recorder_.add(call.op, call.launches);
  calls.clear();
}

void CaptureDevice::read(const EventRecord& record) {
  const Event event{record.context, record.stream, correlation(record.correlation)};
  if (record.instant != 0)
    instants_.insert_or_assign(record.instant, event);
  else if (record.event != 0)
    events_[{record.context, record.event}].push_back(event);
}

void CaptureDevice::read(const SyncRecord& record) { young_syncs_.push_back(record); }

void CaptureDevice::settle(std::vector<SyncRecord>& syncs) {
  for (const SyncRecord& record : syncs) {
    const std::optional<Span> when = span(record.start, record.end, true);
    if (!when) continue;
    add({.kind = SyncKind::kDevice,
         .start = when->start,
         .duration = when->duration,
         .correlation = correlation(record.correlation)},
        record);
  }
  syncs.clear();
}

void CaptureDevice::add(Sync sync, const SyncRecord& record) {
  constexpr std::array kKinds = {SyncKind::kEvent, SyncKind::kStreamWaitEvent, SyncKind::kStream,
                                 SyncKind::kDevice};
  if (record.type < 1 || record.type > kKinds.size())
    return recorder_.problem(ProblemKind::kUnknownCategory);
  sync.kind = kKinds[record.type - 1];
  const auto stream_of = [&](std::uint64_t context,
                             std::uint64_t number) -> std::optional<std::uint32_t> {
    if (number == 0) return std::nullopt;
    const auto device = device_of_context_.find(context);
    return stream(device == device_of_context_.end() ? 0 : device->second, context, number);
  };
  if (sync.kind == SyncKind::kStream || sync.kind == SyncKind::kStreamWaitEvent)
    sync.stream = stream_of(record.context, record.stream);
  if (sync.kind == SyncKind::kEvent || sync.kind == SyncKind::kStreamWaitEvent) {
    const Event* event = nullptr;
    if (record.event_instant != 0) {
      if (const auto at = instants_.find(record.event_instant); at != instants_.end())
        event = &at->second;
    } else if (const auto at = events_.find({record.context, record.event}); at != events_.end()) {
      // The latest earlier recording of the event, by the order of the calls: the event does not
      // name it.
      for (const Event& candidate : at->second)
        if (const auto id =
                sync.correlation.value_or(UINT32_MAX) - candidate.correlation.value_or(0);
            id <= UINT32_MAX / 2 &&
            (!event ||
             candidate.correlation.value_or(0) - event->correlation.value_or(0) <= UINT32_MAX / 2))
          event = &candidate;
    }
    if (event) {
      sync.source_stream = stream_of(event->context, event->stream);
      sync.event_correlation = event->correlation;
    }
  }
  recorder_.add(sync);
}

void CaptureDevice::read(const OverheadRecord& record) {
  const std::optional<Span> when = span(record.start, record.end, true);
  if (!when || record.thread > UINT32_MAX) return;
  const auto known = std::ranges::find(kOverheads, record.kind, &OverheadKind::number);
  const bool is_known = known != kOverheads.end();
  recorder_.add({.name = recorder_.name(is_known ? known->name : "profiler overhead"),
                 .thread = texts_.thread(static_cast<std::uint32_t>(record.thread)),
                 .kind = is_known && !known->of_profiler ? HostKind::kDriver : HostKind::kOverhead,
                 .start = when->start,
                 .duration = when->duration});
}

void CaptureDevice::read(const DeviceRecord& record) {
  if (record.device > UINT32_MAX) return recorder_.problem(ProblemKind::kAbsurdNumber);
  if (!devices_.insert(record.device).second) return;
  const auto name = texts_.name(record.name);
  const auto known = [](std::uint64_t number) {
    return number == 0 ? std::nullopt : std::optional(clamped(number));
  };
  Device device{.ordinal = static_cast<std::uint32_t>(record.device),
                .name = name ? std::string(recorder_.names()[*name]) : "",
                .multiprocessors = known(record.multiprocessors),
                .compute_major = known(record.compute_major)};
  if (device.compute_major) device.compute_minor = clamped(record.compute_minor);
  if (record.memory_bytes != 0) device.memory = Bytes::b(static_cast<double>(record.memory_bytes));
  recorder_.device(std::move(device));
  const std::string prefix = fmt::format("device.{}.", record.device);
  if (const CaptureText* uuid = texts_.find(record.uuid))
    fact(prefix + "uuid", std::string(recorder_.names()[uuid->name]));
  if (record.gpu_instance != 0)
    fact(prefix + "mig",
         fmt::format("gpu instance {}, compute instance {}", record.gpu_instance - 1,
                     record.compute_instance == 0 ? std::string("?")
                                                  : std::to_string(record.compute_instance - 1)));
}

void CaptureDevice::read(const ContextRecord& record) {
  device_of_context_.insert_or_assign(record.context, record.device);
}

void CaptureDevice::read(const MemoryRecord& record) {
  constexpr std::uint64_t kTaken = 1, kGivenBack = 2;
  const auto time = clock_.at(record.time);
  if (!time || record.bytes > INT64_MAX) return recorder_.problem(ProblemKind::kAbsurdNumber);
  if (record.operation == kTaken) {
    taken_[record.address] = record.bytes;
    memory_[record.device].push_back({*time, static_cast<std::int64_t>(record.bytes)});
  } else if (record.operation == kGivenBack) {
    const auto taken = taken_.find(record.address);
    if (taken == taken_.end()) return;  // taken before the recording
    memory_[record.device].push_back({*time, -static_cast<std::int64_t>(taken->second)});
    taken_.erase(taken);
  }
}

void CaptureDevice::read(const JitRecord& record) {
  const std::optional<Span> when = span(record.start, record.end, true);
  if (!when) return;
  ++compilations_;
  compiling_ += when->duration;
}

void CaptureDevice::read(const FactRecord& record) {
  const CaptureText *key = texts_.find(record.key), *value = texts_.find(record.value);
  if (!key) return recorder_.problem(ProblemKind::kMissingField);
  const std::string word(recorder_.names()[key->name]);
  const std::string said(value ? recorder_.names()[value->name] : std::string_view());
  if (word == "trouble")
    recorder_.problem(ProblemKind::kNotRecorded,
                      fmt::format("{}: {}", recorder_.info().source, said), 1);
  if (word.ends_with("dropped")) {
    std::uint64_t count = 0;
    std::from_chars(said.data(), said.data() + said.size(), count);
    recorder_.problem(ProblemKind::kDroppedRecords,
                      fmt::format("{}: {}: {}", recorder_.info().source, word, said), count);
  }
  fact(word, said);
}

/// A repeated key, such as a count that grew, replaces the earlier value.
void CaptureDevice::fact(std::string key, std::string value) {
  std::vector<Fact>& facts = recorder_.info().facts;
  const auto at = key == "trouble" ? facts.end() : std::ranges::find(facts, key, &Fact::key);
  if (at != facts.end())
    at->value = std::move(value);
  else
    facts.push_back({std::move(key), std::move(value)});
}

/// The most that was taken at one time, of what was taken while recording.
void CaptureDevice::report_memory() {
  for (auto& [device, allocations] : memory_) {
    std::ranges::stable_sort(allocations, {}, &Allocation::time);
    std::int64_t now = 0, peak = 0;
    for (const Allocation& allocation : allocations) {
      if (__builtin_add_overflow(now, allocation.bytes, &now))
        return recorder_.problem(ProblemKind::kAbsurdNumber);
      peak = std::max(peak, now);
    }
    fact(fmt::format("memory.{}.peak", device), fmt::format("{} B", peak));
  }
}

void CaptureDevice::turn() {
  settle(old_calls_);
  std::swap(old_calls_, young_calls_);
  settle(old_syncs_);
  std::swap(old_syncs_, young_syncs_);
}

void CaptureDevice::finish() {
  for (int i = 0; i < 2; ++i) turn();
  report_memory();
  if (compilations_ > 0)
    fact("jit", fmt::format("{} compilations, {:.3f} s", compilations_, compiling_.seconds().s()));
}

}  // namespace rehearse::ingest
