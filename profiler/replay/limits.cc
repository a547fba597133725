#include "profiler/replay/limits.h"

#include <algorithm>
#include <utility>

namespace rehearse::replay {
namespace {

using trace::CopyDirection;
using trace::HostMemory;
using Kind = Recorded::Kind;

bool blocks(const Recording& r, HostIndex i) {
  const trace::HostOp& call = r.host(i);
  const std::string_view name = r.name(call);
  if (name == "Command Buffer Full") return true;
  if (call.kind != trace::HostKind::kRuntime && call.kind != trace::HostKind::kDriver) return false;
  if (name.find("Synchronize") != std::string_view::npos) return true;
  if (name.find("Memcpy") == std::string_view::npos || r.launched(i).empty()) return false;
  const trace::GpuOp& copy = r.gpu(r.launched(i).back());
  if (copy.direction == CopyDirection::kDeviceToHost)
    return copy.host_memory == HostMemory::kPageable || call.end() >= copy.end();
  return copy.direction == CopyDirection::kHostToDevice &&
         copy.host_memory != HostMemory::kPinned && copy.bytes.value_or(0) > kStagedBytes &&
         call.end() >= copy.start;
}

}  // namespace

Limits host_alone(const Recording& r, const StepOps& ops) {
  const Step& step = ops.step;
  Nanoseconds end(INT64_MIN);
  if (ops.of_host)
    for (const HostThread& thread : r.threads()) end = std::max(end, thread.last);
  else
    for (GpuIndex i = 0; i < r.rank().gpu_ops.size(); ++i)
      if (const auto call = r.launcher(i)) end = std::max(end, r.host(*call).start);
  end = std::min(end, step.end);
  const auto works = [&](auto waits) {
    Spans calls;
    for (std::size_t t = 0; t < r.threads().size(); ++t)
      if (waits(t))
        for (const HostIndex i : r.threads()[t].ops)
          if (blocks(r, i) && r.host(i).end() > step.start && r.host(i).start < end)
            calls.emplace_back(std::max(step.start, r.host(i).start),
                               std::min(end, r.host(i).end()));
    return (std::max(end, step.start) - step.start - covered_by(std::move(calls))).seconds();
  };
  return {works([](std::size_t) { return true; }),
          works([&](std::size_t t) { return t == step.thread; })};
}

Limits devices_alone(const Recording& r, const RankReplay& replay,
                     const program::RankProgram& program) {
  Spans ran;
  Nanoseconds busiest(0);
  for (const Stream& stream : r.streams()) {
    Nanoseconds busy(0);
    for (const GpuIndex i : stream.ops) {
      busy += r.gpu(i).duration;
      ran.emplace_back(r.gpu(i).start, r.gpu(i).end());
    }
    busiest = std::max(busiest, busy);
  }
  const auto count = [](std::size_t n) { return static_cast<double>(n); };
  const Constants& constants = replay.constants;
  Picoseconds left = Picoseconds::from(constants.queue_gap.value * count(ran.size()) +
                                       constants.launch.value * count(replay.host_waits + 1));
  Picoseconds before(0);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Kind kind = program.recorded[i].kind;
    const Picoseconds time = program.ops[i].duration.value_or(Picoseconds(0));
    if (kind == Kind::kWake || kind == Kind::kHandOff || kind == Kind::kUnexplained ||
        kind == Kind::kResidual)
      left += time;
    if (kind == Kind::kInitial) before = std::max(before, time);
  }
  return {busiest.seconds(), covered_by(std::move(ran)).seconds() + (left + before).seconds()};
}

}  // namespace rehearse::replay
