#include "profiler/ingest/capture_collectives.h"

#include <algorithm>

#include <fmt/core.h>

#include "profiler/trace/collective_names.h"

namespace rehearse::ingest {
namespace {

using namespace trace;
using capture::CollectiveRecord, capture::CommunicatorRecord, capture::RecordsBlock,
    capture::TableId;

// Before 2.28, NCCL does not tell when a kernel was launched, but the collectives of a kernel start
// within this time after its launch.
constexpr Nanoseconds kShortlyAfter{20'000'000};

}  // namespace

Collective nccl_collective(CollectiveKind kind, std::string_view name, std::uint64_t bytes,
                           std::optional<std::uint32_t> group_size) {
  Collective collective{.kind = kind, .group_size = group_size};
  const auto of_all = [&]() -> std::optional<std::uint64_t> {
    std::uint64_t all = 0;
    if (!group_size || __builtin_mul_overflow(bytes, std::uint64_t{*group_size}, &all))
      return std::nullopt;
    return all;
  };
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBroadcast: collective.bytes_in = collective.bytes_out = bytes; break;
    case CollectiveKind::kAllGather:
      collective.bytes_in = bytes;
      collective.bytes_out = of_all();
      break;
    case CollectiveKind::kReduceScatter:
      collective.bytes_in = of_all();
      collective.bytes_out = bytes;
      break;
    case CollectiveKind::kAllToAll: collective.bytes_in = collective.bytes_out = of_all(); break;
    case CollectiveKind::kSendRecv:
      (name.find("Recv") == std::string_view::npos ? collective.bytes_in : collective.bytes_out) =
          bytes;
      break;
    case CollectiveKind::kReduce: collective.bytes_in = bytes; break;
    case CollectiveKind::kBarrier: break;
  }
  return collective;
}

bool CaptureCollectives::read(const RecordsBlock& block) {
  switch (block.table) {
    case TableId::kCommunicator:
      for (std::size_t i = 0; i < block.count; ++i) read(block.at<CommunicatorRecord>(i));
      return true;
    case TableId::kCollective:
      for (std::size_t i = 0; i < block.count; ++i) read(block.at<CollectiveRecord>(i));
      return true;
    case TableId::kCollectiveKernel:
      return true;  // for queries of the file: a trace has the kernel as a whole
    default: return false;
  }
}

void CaptureCollectives::read(const CommunicatorRecord& record) {
  has_records_ = true;
  if (record.ranks == 0 || record.ranks > UINT32_MAX || record.rank >= record.ranks) return;
  group_sizes_[record.communicator] = static_cast<std::uint32_t>(record.ranks);
  communicators_[record.communicator].push_back(record);
}

void CaptureCollectives::read(const CollectiveRecord& record) {
  has_records_ = true;
  const auto function = text(record.function);
  const auto kind =
      function ? collective_from_framework(recorder_.names()[*function]) : std::nullopt;
  const auto start = lookup_.time(record.start);
  const auto end = record.end == 0 ? start : lookup_.time(record.end);
  if (!kind || !start || !end || record.thread > UINT32_MAX)
    return recorder_.problem(ProblemKind::kMissingField);
  Asked asked{.record = record, .kind = *kind, .function = *function, .start = *start, .end = *end};
  if (record.launch_end != 0) {
    asked.launch_start = lookup_.time(record.launch_start);
    asked.launch_end = lookup_.time(record.launch_end);
  }
  asked_.push_back(asked);
}

std::optional<std::uint32_t> CaptureCollectives::group_size(std::uint64_t communicator) const {
  const auto at = group_sizes_.find(communicator);
  return at == group_sizes_.end() ? std::nullopt : std::optional(at->second);
}

NameId CaptureCollectives::group_name(std::uint64_t communicator) {
  return recorder_.name(fmt::format("{:#018x}", communicator));
}

bool CaptureCollectives::hold(const GpuOp& kernel) {
  if (!has_records_ || kernel.kind != GpuKind::kKernel || !kernel.correlation ||
      !is_communication_kernel(recorder_.names()[kernel.name]))
    return false;
  held_.push_back(kernel);
  return true;
}

/// Those whose call is known, in the order of the calls; the others are added as they are.
std::vector<CaptureCollectives::Held> CaptureCollectives::called_kernels() {
  std::vector<Held> kernels;
  for (const GpuOp& kernel : held_) {
    if (const auto called = recorder_.call_start(*kernel.correlation))
      kernels.push_back({kernel, *called, {}});
    else
      recorder_.add(kernel);
  }
  std::ranges::stable_sort(kernels, {}, &Held::called);
  return kernels;
}

void CaptureCollectives::tie(std::vector<Held>& kernels, std::vector<const Asked*>& left) {
  const auto fits = [this](const Held& held, const Asked& asked) {
    const auto kind = collective_from_kernel(recorder_.names()[held.kernel.name]);
    // A kernel may hold several kinds, but then its name tells none; an all-to-all is made of sends
    // and receives.
    return !kind || *kind == asked.kind ||
           (*kind == CollectiveKind::kSendRecv && asked.kind == CollectiveKind::kAllToAll);
  };
  const auto first_from = [&](Nanoseconds time) {
    return std::lower_bound(kernels.begin(), kernels.end(), time,
                            [](const Held& held, Nanoseconds at) { return held.called < at; });
  };
  for (const Asked& asked : asked_) {
    std::vector<Held*> candidates;
    if (asked.launch_start && asked.launch_end) {
      for (auto at = first_from(*asked.launch_start);
           at != kernels.end() && at->called <= *asked.launch_end; ++at)
        if (fits(*at, asked)) candidates.push_back(&*at);
    } else if (asked.record.captured == 0) {
      const auto next = first_from(asked.start);
      if (next != kernels.begin() && fits(*std::prev(next), asked) &&
          asked.start - std::prev(next)->called <= kShortlyAfter)
        candidates.push_back(&*std::prev(next));
    }
    // Threads that launch at one moment: which kernel is whose is not known.
    if (candidates.size() == 1)
      candidates.front()->parts.push_back(&asked);
    else
      left.push_back(&asked);
  }
}

/// Describes a kernel by the collectives in it.
void CaptureCollectives::describe(Held& held) {
  const auto bytes_of = [&](CollectiveKind kind) {
    std::uint64_t bytes = 0;
    for (const Asked* part : held.parts)
      if (part->kind == kind && __builtin_add_overflow(bytes, part->record.bytes, &bytes))
        bytes = UINT64_MAX;
    return bytes;
  };
  const Asked* lead = held.parts.front();
  for (const Asked* part : held.parts)
    if (bytes_of(part->kind) > bytes_of(lead->kind)) lead = part;

  Collective whole{.kind = lead->kind};
  for (const Asked* part : held.parts) {
    if (part->kind != lead->kind) continue;
    const Collective one =
        nccl_collective(part->kind, recorder_.names()[part->function], part->record.bytes,
                        group_size(part->record.communicator));
    const auto add = [](std::optional<std::uint64_t>& to, std::optional<std::uint64_t> more) {
      if (!more) return;
      std::uint64_t sum = 0;
      if (__builtin_add_overflow(to.value_or(0), *more, &sum)) sum = UINT64_MAX;
      to = sum;
    };
    add(whole.bytes_in, one.bytes_in);
    add(whole.bytes_out, one.bytes_out);
  }
  const CollectiveRecord& record = lead->record;
  whole.group_size = group_size(record.communicator);
  if (record.communicator != 0) whole.group = group_name(record.communicator);
  whole.dtype = text(record.datatype);
  whole.algorithm = text(record.algorithm);
  whole.protocol = text(record.protocol);
  if (record.channels != 0 && record.channels <= UINT32_MAX)
    whole.channels = static_cast<std::uint32_t>(record.channels);
  held.kernel.collective = recorder_.collective(whole);
  if (record.sequence != 0) held.kernel.collective_number = record.sequence - 1;
}

void CaptureCollectives::add_range(const Asked& asked) {
  const CollectiveRecord& record = asked.record;
  Collective collective = nccl_collective(asked.kind, recorder_.names()[asked.function],
                                          record.bytes, group_size(record.communicator));
  if (record.communicator != 0) collective.group = group_name(record.communicator);
  collective.dtype = text(record.datatype);
  collective.algorithm = text(record.algorithm);
  collective.protocol = text(record.protocol);
  recorder_.add(
      HostOp{.name = recorder_.name(fmt::format("nccl {}", recorder_.names()[asked.function])),
             .thread = lookup_.thread(static_cast<std::uint32_t>(record.thread)),
             .kind = HostKind::kAnnotation,
             .start = asked.start,
             .duration = asked.end - asked.start,
             .collective = recorder_.collective(collective),
             .payload = record.bytes});
}

/// A process has one rank of the job unless it drives several devices.
void CaptureCollectives::set_rank() {
  RankInfo& info = recorder_.info();
  const std::vector<CommunicatorRecord>* largest = nullptr;
  for (const auto& [communicator, members] : communicators_)
    if (!largest || members.front().ranks > largest->front().ranks) largest = &members;
  if (info.rank || !largest) return;
  const CommunicatorRecord& first = largest->front();
  for (const CommunicatorRecord& member : *largest)
    if (member.rank != first.rank) return;
  info.rank = static_cast<std::uint32_t>(first.rank);
  info.world_size = static_cast<std::uint32_t>(first.ranks);
}

void CaptureCollectives::finish() {
  set_rank();
  std::vector<Held> kernels = called_kernels();
  std::vector<const Asked*> left;
  tie(kernels, left);
  for (Held& held : kernels) {
    if (!held.parts.empty()) describe(held);
    recorder_.add(held.kernel);
  }
  for (const Asked* asked : left) add_range(*asked);
}

}  // namespace rehearse::ingest
