#include "profiler/ingest/nsys_rows.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "profiler/ingest/device_calls.h"
#include "profiler/trace/collective_names.h"
#include "sim/base/utf8.h"

namespace rehearse::ingest::nsys {
namespace {

using namespace sqlite;
using namespace trace;

// Values of ENUM_NSYS_EVENT_TYPE, ENUM_CUDA_MEMCPY_OPER, ENUM_CUDA_MEM_KIND, ENUM_CUPTI_SYNC_TYPE.
enum NvtxEvent : std::int64_t {
  kCategoryName = 33,
  kThreadName = 39,
  kPushPopRange = 59,
  kStartEndRange = 60,
  kDomainCreate = 75,
  kDomainDestroy = 76,
};

constexpr std::int64_t kFirstMigration = 11;  // pages of unified memory, moved by the driver

/// Exports number kinds of memory from 0 pageable on, CUPTI from 1.
std::uint64_t memory_kind(std::optional<std::int64_t> kind) {
  return !kind || *kind < 0 || *kind >= INT64_MAX ? 0 : static_cast<std::uint64_t>(*kind) + 1;
}

/// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel"; but "cuMemcpyHtoDAsync_v2" is a name of its own.
std::string_view without_version(std::string_view call) {
  const std::size_t at = call.rfind("_v");
  if (at == std::string_view::npos || call.size() < at + 6) return call;
  const bool digits = call.find_first_not_of("0123456789", at + 2) == std::string_view::npos;
  return digits ? call.substr(0, at) : call;
}

/// "cuLaunchKernel", not "cudaLaunchKernel".
bool is_driver_call(std::string_view call) {
  return call.starts_with("cu") && call.size() > 2 && call[2] >= 'A' && call[2] <= 'Z';
}

constexpr auto kCallColumns = std::to_array<std::string_view>(
    {"start", "end", "globalTid", "correlationId", "nameId", "returnValue"});
constexpr auto kRangeColumns = std::to_array<std::string_view>(
    {"start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid", "domainId",
     "uint64Value", "uint32Value", "int64Value", "int32Value"});
constexpr auto kOverheadColumns =
    std::to_array<std::string_view>({"start", "end", "globalTid", "nameId"});
constexpr auto kKernelColumns = std::to_array<std::string_view>(
    {"start", "end", "deviceId", "streamId", "correlationId", "demangledName", "shortName", "gridX",
     "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
     "dynamicSharedMemory"});
constexpr auto kCopyColumns =
    std::to_array<std::string_view>({"start", "end", "deviceId", "streamId", "correlationId",
                                     "bytes", "copyKind", "srcKind", "dstKind"});
constexpr auto kSetColumns = std::to_array<std::string_view>(
    {"start", "end", "deviceId", "streamId", "correlationId", "bytes", "memKind"});
constexpr auto kGraphColumns = std::to_array<std::string_view>(
    {"start", "end", "deviceId", "streamId", "correlationId", "graphId"});
constexpr auto kEventColumns =
    std::to_array<std::string_view>({"eventSyncId", "streamId", "correlationId"});
constexpr auto kSyncColumns = std::to_array<std::string_view>(
    {"start", "end", "syncType", "streamId", "correlationId", "eventSyncId"});

constexpr auto kTableReaders = std::to_array<TableReader>({
    {kRuntimeCalls, kCallColumns, &ProcessRows::read_call},
    {kDriverCalls, kCallColumns, &ProcessRows::read_call},
    {kRanges, kRangeColumns, &ProcessRows::read_range},
    {kOverhead, kOverheadColumns, &ProcessRows::read_overhead},
    {kCuptiOverhead, kOverheadColumns, &ProcessRows::read_overhead},
    {kKernels, kKernelColumns, &ProcessRows::read_kernel},
    {kCopies, kCopyColumns, &ProcessRows::read_copy},
    {kSets, kSetColumns, &ProcessRows::read_set},
    {kGraphs, kGraphColumns, &ProcessRows::read_graph},
    {kEvents, kEventColumns, &ProcessRows::read_event},
    {kSyncs, kSyncColumns, &ProcessRows::read_sync},
});

}  // namespace

std::span<const TableReader> table_readers() { return kTableReaders; }

void ProcessRows::read_domains() {
  if (!tables_.has(kRanges, "domainId") || !tables_.has(kRanges, "eventType")) return;
  constexpr std::array<std::string_view, 3> kColumns = {"domainId", "text", "textId"};
  Query query(db_,
              fmt::format("{} WHERE eventType = {} AND {} = {}", tables_.select(kRanges, kColumns),
                          static_cast<int>(kDomainCreate), tables_.process_of(kRanges), process_));
  while (query.next()) {
    const auto domain = number(query, 0);
    const auto text_id = number(query, 2);
    const std::string text = !query.is_null(1) ? std::string(query.text(1))
                             : text_id         ? string_at(*text_id).value_or("")
                                               : "";
    if (domain && text == "NCCL") nccl_domains_.insert(*domain);
  }
}

std::optional<ProcessRows::Times> ProcessRows::times(const Query& row) {
  const auto start = number(row, 0);
  const auto end = number(row, 1);
  // CUPTI writes two zeros where it lost the times.
  if (!start || !end || (start == 0 && end == 0)) {
    recorder_.problem(ProblemKind::kMissingField);
    return std::nullopt;
  }
  std::int64_t duration = 0;
  if (__builtin_sub_overflow(*end, *start, &duration)) {
    recorder_.problem(ProblemKind::kAbsurdNumber);
    return std::nullopt;
  }
  return Times{Nanoseconds(*start), Nanoseconds(duration)};
}

std::optional<ThreadId> ProcessRows::thread(std::optional<std::int64_t> global_id) {
  if (!global_id) return std::nullopt;
  const auto found = threads_.find(*global_id);
  if (found != threads_.end()) return found->second;
  const ThreadId id =
      recorder_.thread(std::to_string(process_), std::to_string(*global_id & 0xFFFFFF));
  threads_.emplace(*global_id, id);
  return id;
}

std::string ProcessRows::sound(std::string_view text) {
  std::uint64_t replaced = 0;
  std::string result = sound_text(text, replaced);
  if (replaced > 0) recorder_.problem(ProblemKind::kInvalidText, replaced);
  return result;
}

std::optional<std::string> ProcessRows::string_at(std::int64_t id) {
  if (!tables_.has("StringIds", "id") || !tables_.has("StringIds", "value")) return std::nullopt;
  Query query(db_, fmt::format("SELECT value FROM StringIds WHERE id = {}", id));
  if (!query.next()) return std::nullopt;
  return sound(query.text(0));
}

std::optional<NameId> ProcessRows::name(std::optional<std::int64_t> id) {
  if (!id) return std::nullopt;
  const auto [at, is_new] = names_.try_emplace(*id);
  if (is_new)
    if (const std::optional<std::string> text = string_at(*id)) at->second = recorder_.name(*text);
  return at->second;
}

enum DeviceColumn : int { kStart, kEnd, kDevice, kStream, kCorrelation, kOwnColumns };

void ProcessRows::add_device_op(const Query& row, GpuOp op) {
  const std::optional<Times> when = times(row);
  if (!when) return;
  const auto device = unsigned_number<std::uint16_t>(row, kDevice);
  const auto stream = unsigned_number<std::uint32_t>(row, kStream);
  if (!device || !stream) return recorder_.problem(ProblemKind::kMissingField);
  op.device = *device;
  op.stream = *stream;
  op.start = when->start;
  op.duration = when->duration;
  op.correlation = id_number(row, kCorrelation);
  recorder_.add(op);
}

void ProcessRows::read_kernel(const Query& row) {
  enum : int {
    kDemangled = kOwnColumns,
    kShort,
    kGrid,
    kBlock = kGrid + 3,
    kRegisters = kBlock + 3
  };
  std::optional<NameId> kernel = name(number(row, kDemangled));
  if (!kernel) kernel = name(number(row, kShort));
  if (!kernel) return recorder_.problem(ProblemKind::kMissingField);
  GpuOp op{.name = *kernel,
           .kind = GpuKind::kKernel,
           .start = Nanoseconds(0),
           .duration = Nanoseconds(0)};
  LaunchShape shape{};
  bool whole = true;
  for (int axis = 0; axis < 3; ++axis) {
    const auto grid = unsigned_number<std::uint32_t>(row, kGrid + axis);
    const auto block = unsigned_number<std::uint32_t>(row, kBlock + axis);
    whole = whole && grid && block;
    shape.grid[axis] = grid.value_or(0);
    shape.block[axis] = block.value_or(0);
  }
  if (whole) {
    shape.registers = unsigned_number<std::uint32_t>(row, kRegisters).value_or(0);
    const std::uint64_t shared =
        std::uint64_t{unsigned_number<std::uint32_t>(row, kRegisters + 1).value_or(0)} +
        unsigned_number<std::uint32_t>(row, kRegisters + 2).value_or(0);
    shape.shared_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(shared, UINT32_MAX));
    op.launch_shape = recorder_.launch_shape(shape);
  }
  if (const auto collective = collective_from_kernel(recorder_.names()[*kernel]))
    op.collective = recorder_.collective({.kind = *collective});
  add_device_op(row, op);
}

void ProcessRows::read_copy(const Query& row) {
  enum : int { kBytes = kOwnColumns, kKind, kSource, kTarget };
  const std::int64_t kind = number(row, kKind).value_or(0);
  if (kind >= kFirstMigration) return recorder_.problem(ProblemKind::kIgnoredCategory);
  GpuOp op{.name = NameId(0),
           .kind = GpuKind::kCopy,
           .start = Nanoseconds(0),
           .duration = Nanoseconds(0),
           .bytes = unsigned_number<std::uint64_t>(row, kBytes)};
  op.name = recorder_.name(describe_copy(kind < 0 ? 0 : static_cast<std::uint64_t>(kind),
                                         memory_kind(number(row, kSource)),
                                         memory_kind(number(row, kTarget)), op));
  add_device_op(row, op);
}

void ProcessRows::read_set(const Query& row) {
  enum : int { kBytes = kOwnColumns, kMemory };
  add_device_op(row, {.name = recorder_.name(fmt::format(
                          "Memset ({})", memory_name(memory_kind(number(row, kMemory))))),
                      .kind = GpuKind::kSet,
                      .start = Nanoseconds(0),
                      .duration = Nanoseconds(0),
                      .bytes = unsigned_number<std::uint64_t>(row, kBytes)});
}

/// A CUDA graph recorded as a whole: one row covers all its kernels.
void ProcessRows::read_graph(const Query& row) {
  const auto graph = number(row, kOwnColumns);
  add_device_op(row, {.name = recorder_.name(graph ? fmt::format("CUDA graph {}", *graph)
                                                   : std::string("CUDA graph")),
                      .kind = GpuKind::kKernel,
                      .start = Nanoseconds(0),
                      .duration = Nanoseconds(0)});
}

void ProcessRows::read_call(const Query& row) {
  enum : int { kThread = 2, kCallCorrelation, kName, kReturnValue };
  const auto on = thread(number(row, kThread));
  const auto id = number(row, kName);
  if (!on || !id) return recorder_.problem(ProblemKind::kMissingField);
  const auto [at, is_new] = calls_.try_emplace(*id);
  std::optional<Call>& call = at->second;
  if (is_new)
    if (const std::optional<std::string> text = string_at(*id)) {
      const std::string_view function = without_version(*text);
      call = Call{recorder_.name(function),
                  is_driver_call(function) ? HostKind::kDriver : HostKind::kRuntime,
                  starts_device_work(function)};
    }
  if (!call) return recorder_.problem(ProblemKind::kMissingField);
  const std::optional<Times> when = times(row);
  if (!when) return;
  const bool failed = number(row, kReturnValue).value_or(0) != 0;
  recorder_.add({.name = call->name,
                 .thread = *on,
                 .kind = call->kind,
                 .start = when->start,
                 .duration = when->duration,
                 .correlation = id_number(row, kCallCorrelation)},
                call->launches && !failed);
}

void ProcessRows::read_event(const Query& row) {
  if (const auto id = number(row, 0))
    events_[*id] = {unsigned_number<std::uint32_t>(row, 1), id_number(row, 2)};
}

void ProcessRows::read_sync(const Query& row) {
  enum : int { kType = 2, kSyncStream, kCallCorrelation, kEvent };
  constexpr std::array kKinds = {SyncKind::kEvent, SyncKind::kStreamWaitEvent, SyncKind::kStream,
                                 SyncKind::kDevice};
  const auto type = number(row, kType);
  if (!type) return recorder_.problem(ProblemKind::kMissingField);
  if (*type < 1 || *type > static_cast<std::int64_t>(kKinds.size()))
    return recorder_.problem(ProblemKind::kUnknownCategory);
  const std::optional<Times> when = times(row);
  if (!when) return;
  Sync sync{.kind = kKinds[static_cast<std::size_t>(*type - 1)],
            .start = when->start,
            .duration = when->duration,
            .correlation = id_number(row, kCallCorrelation)};
  constexpr std::uint32_t kNoStream = UINT32_MAX;
  const auto stream = unsigned_number<std::uint32_t>(row, kSyncStream);
  if ((sync.kind == SyncKind::kStream || sync.kind == SyncKind::kStreamWaitEvent) &&
      stream != kNoStream)
    sync.stream = stream;
  if (const auto id = number(row, kEvent); id && sync.kind != SyncKind::kDevice)
    if (const auto event = events_.find(*id); event != events_.end()) {
      sync.source_stream = event->second.stream;
      sync.event_correlation = event->second.correlation;
    }
  recorder_.add(sync);
}

void ProcessRows::read_overhead(const Query& row) {
  enum : int { kThread = 2, kName };
  const auto on = thread(number(row, kThread));
  if (!on) return recorder_.problem(ProblemKind::kMissingField);
  const std::optional<Times> when = times(row);
  if (!when) return;
  const auto named = name(number(row, kName));
  recorder_.add({.name = named ? *named : recorder_.name("profiler overhead"),
                 .thread = *on,
                 .kind = HostKind::kOverhead,
                 .start = when->start,
                 .duration = when->duration});
}

/// The collective of a range that NCCL itself made; a range of the user may have any name.
std::optional<CollectiveId> ProcessRows::collective_of(std::string_view range,
                                                       std::optional<std::int64_t> domain) {
  const bool of_nccl = range.starts_with("nccl") || (domain && nccl_domains_.contains(*domain));
  const auto kind = of_nccl ? collective_from_framework(range) : std::nullopt;
  if (!kind) return std::nullopt;
  return recorder_.collective({.kind = *kind});
}

void ProcessRows::read_range(const Query& row) {
  enum : int { kType = 2, kText, kTextId, kThread, kEndThread, kDomain, kPayload };
  const auto type = number(row, kType);
  if (!type) return recorder_.problem(ProblemKind::kMissingField);
  switch (*type) {
    case kCategoryName:
    case kThreadName:
    case kDomainCreate:
    case kDomainDestroy: return;  // names, no activity
    case kPushPopRange:
    case kStartEndRange: break;
    default: return recorder_.problem(ProblemKind::kIgnoredCategory);
  }
  // A range that one thread opens and another closes is no part of either thread's work.
  if (const auto end_thread = number(row, kEndThread); *type == kStartEndRange && end_thread &&
                                                       *end_thread != 0 &&
                                                       end_thread != number(row, kThread))
    return recorder_.problem(ProblemKind::kIgnoredCategory);
  if (row.is_null(kEnd)) return recorder_.problem(ProblemKind::kUnbalancedRange);
  const auto on = thread(number(row, kThread));
  const std::optional<NameId> named = row.text(kText).empty()
                                          ? name(number(row, kTextId))
                                          : std::optional(recorder_.name(sound(row.text(kText))));
  if (!on || !named) return recorder_.problem(ProblemKind::kMissingField);
  const std::optional<Times> when = times(row);
  if (!when) return;
  HostOp op{.name = *named,
            .thread = *on,
            .kind = HostKind::kAnnotation,
            .start = when->start,
            .duration = when->duration};
  if (const auto bits = number(row, kPayload)) {
    op.payload = static_cast<std::uint64_t>(*bits);  // SQLite has no unsigned integers
  } else {
    for (int column = kPayload + 1; column < kPayload + 4 && !op.payload; ++column)
      op.payload = unsigned_number<std::uint64_t>(row, column);
  }
  op.collective = collective_of(recorder_.names()[*named], number(row, kDomain));
  recorder_.add(op);
}

}  // namespace rehearse::ingest::nsys
