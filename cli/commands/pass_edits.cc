#include "cli/commands/pass_edits.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/core.h>

#include "cli/commands/kernel_laws.h"
#include "models/compute/op_cost.h"
#include "models/workload/lift_ops.h"
#include "profiler/replay/edit.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using replay::GpuIndex;
using replay::HostIndex;
using replay::Recording;
using workload::Op;
using workload::lifting::OpMaker;
using workload::lifting::Phase;
using workload::lifting::StepUnits;
using Kind = program::Recorded::Kind;

std::string source_of(const ReplayJob& job) { return job.recordings.front().rank().info.source; }

tl::unexpected<Error> exchanges(const Recording& recording) {
  return fail_in(recording.rank().info.source, "ranks exchange data in the forward pass",
                 "a job file with `workload: {recording: …}`");
}

/// Sums of norms and flags, which do not belong to the forward pass.
constexpr std::uint64_t kSmallMessage = 4096;

/// Whether ranks exchange data in the forward pass, which depends on the size of the pass.
bool exchanges_forward(const Recording& recording, const StepUnits& step) {
  return std::any_of(step.messages.begin(), step.messages.end(), [&](const auto& message) {
    const trace::GpuOp& op = recording.gpu(message.op);
    const auto bytes =
        op.collective ? recording.rank().collectives[op.collective->index()].bytes_in : op.bytes;
    return message.phase == Phase::kForward && bytes.value_or(kSmallMessage) >= kSmallMessage;
  });
}

/// Multiplies the durations of device ops of a rank.
void scale_device(replay::RecordedProgram& program, std::uint32_t rank,
                  const std::map<GpuIndex, double>& factors) {
  program::RankProgram& of = program.programs[rank];
  for (program::OpIndex i = 0; i < of.ops.size(); ++i) {
    const program::Recorded& recorded = of.recorded[i];
    if (recorded.kind != Kind::kDevice || !recorded.row) continue;
    if (const auto found = factors.find(*recorded.row); found != factors.end())
      of.ops[i].duration = *of.ops[i].duration * found->second;
  }
}

bool is_host_work(const program::Recorded& recorded) {
  return (recorded.kind == Kind::kHost || recorded.kind == Kind::kCall) && recorded.row;
}

/// Whether a host op runs within a backward operator; `again`: as an operator of forward.
struct InBackward {
  bool yes = false, again = false;
};
InBackward in_backward(const Recording& recording, HostIndex op) {
  InBackward found;
  for (const HostIndex i : workload::lifting::chain_of(recording, op)) {
    const trace::HostOp& host = recording.host(i);
    if (workload::lifting::is_backward_node(recording, host))
      found = {true, false};
    else if (found.yes && workload::lifting::is_forward_node(host))
      found.again = true;
  }
  return found;
}

}  // namespace

Result<double> parse_count(std::string_view text) {
  constexpr std::uint32_t kMost = 1'000'000'000;
  const std::string_view number = trim(text);
  std::uint32_t count = 0;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (error != std::errc{} || rest != number.data() + number.size() || count < 1 || count > kMost)
    return fail(fmt::format("'{}' is no count", text),
                fmt::format("a whole number from 1 to {}", kMost));
  return count;
}

Result<replay::Selector> parse_range(std::string_view text) {
  replay::Selector range = TRY(replay::parse_selector(text));
  if (range.target != replay::Selector::Target::kRange)
    return fail(fmt::format("'{}' is no range", text), "range=PATTERN");
  return range;
}

Result<replay::RecordedProgram> resize_passes(const ReplayJob& job, replay::RecordedProgram program,
                                              PassExtent extent, double to, Bound bound,
                                              const Globals& globals) {
  std::size_t changed = 0, kept = 0;
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Recording& recording = job.recordings[rank];
    const std::vector<replay::StepOps>& recorded = program.replays[rank].steps;
    std::vector<StepUnits> steps;
    for (const replay::StepOps& of : recorded) {
      steps.push_back(workload::lifting::find_units(recording, of.step));
      if (exchanges_forward(recording, steps.back())) return exchanges(recording);
    }
    const compute::OpCost cost =
        TRY(cost_on(job, recording.rank(), "give the factor: --scale SELECTOR:FACTOR"));
    NamePool names;
    std::map<GpuIndex, double> factors;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const StepUnits& step = steps[s];
      const double samples = workload::lifting::find_samples(step.units);
      const double from = extent == PassExtent::kSamples
                              ? samples
                              : workload::lifting::find_tokens(step.units, samples);
      if (!(from > 0))
        return fail_in(recording.rank().info.source, "its samples have no tokens",
                       "a model with attention or looked-up embeddings, with shapes");
      const OpMaker maker(recording, step, names, samples);
      for (std::size_t u = 0; u < step.units.size(); ++u) {
        const auto& unit = step.units[u];
        if (unit.phase == Phase::kOptimizer) continue;
        Seconds was = Seconds::s(0), is = Seconds::s(0);
        bool known = true;
        for (Op op : maker.ops(u)) {
          known = known && workload::bytes_of(op) > Bytes::b(0);
          was += op.measured->value;
          if (extent == PassExtent::kSamples) {
            workload::divide(op, op.samples, from / to);
          } else {
            Result<Op> resized = workload::with_tokens(op, from, to);
            if (!resized) {
              resized.error().diagnostics.front().file = recording.rank().info.source;
              return forward(resized);
            }
            op = *std::move(resized);
          }
          is += at(cost.time(op), bound);
        }
        ++(known ? changed : kept);
        if (known && was > Seconds::s(0))
          for (const GpuIndex i : unit.device) factors[i] = is / was;
      }
      for (GpuIndex i = 0; i < recording.rank().gpu_ops.size(); ++i) {
        const trace::GpuOp& op = recording.gpu(i);
        const auto call = recording.launcher(i);
        if (call && op.direction == trace::CopyDirection::kHostToDevice &&
            recording.host(*call).start >= recorded[s].step.start &&
            recording.host(*call).start < recorded[s].step.end)
          factors[i] = bound == Bound::kLow ? 1 : to / from;
      }
    }
    scale_device(program, rank, factors);
  }
  if (changed == 0)
    return fail_in(source_of(job), "has no shapes of its kernels",
                   "a recording with record_shapes=True, or the execution trace of the same run "
                   "in addition");
  if (kept > 0 && bound == Bound::kValue)
    globals.warn(fmt::format("{} of {} operators keep their time: their shapes are not recorded",
                             kept, kept + changed));
  return program;
}

Result<replay::RecordedProgram> accumulate(const ReplayJob& job, replay::RecordedProgram program,
                                           double passes) {
  bool any = false;
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Recording& recording = job.recordings[rank];
    const replay::Ranges optimizer(recording, "Optimizer*", false);
    std::map<GpuIndex, double> factors;
    std::map<HostIndex, double> of_operator;
    for (const replay::StepOps& recorded : program.replays[rank].steps) {
      const StepUnits step = workload::lifting::find_units(recording, recorded.step);
      if (exchanges_forward(recording, step)) return exchanges(recording);
      const double share = static_cast<double>(step.microbatches) / passes;
      for (const auto& unit : step.units)
        if (unit.phase == Phase::kOptimizer) {
          any = true;
          of_operator[unit.op] = share;
          for (const GpuIndex i : unit.device) factors[i] = share;
        }
      for (const auto& message : step.messages)
        if (message.phase != Phase::kForward) factors[message.op] = share;
      // All of a range of the optimizer, not only its operators with kernels.
      for (const replay::HostThread& thread : recording.threads())
        for (const HostIndex i : thread.ops)
          if (recording.host(i).start >= recorded.step.start &&
              recording.host(i).start < recorded.step.end && optimizer.of(i) == i)
            of_operator[i] = share;
    }
    scale_device(program, rank, factors);
    program::RankProgram& of = program.programs[rank];
    for (program::OpIndex i = 0; i < of.ops.size(); ++i) {
      if (!is_host_work(of.recorded[i])) continue;
      for (std::optional<HostIndex> op = of.recorded[i].row; op; op = recording.parent(*op))
        if (const auto found = of_operator.find(*op); found != of_operator.end()) {
          of.ops[i].duration = *of.ops[i].duration * found->second;
          break;
        }
    }
  }
  if (!any)
    return fail_in(source_of(job), "has no update of parameters after a backward pass",
                   "a recording of training");
  return program;
}

Result<replay::RecordedProgram> recompute_range(const ReplayJob& job,
                                                replay::RecordedProgram program,
                                                const replay::Selector& range) {
  TRY(replay::select_some(job.recordings, program, range));
  struct Instance {
    Picoseconds host{0}, device{0};
    std::size_t kernels = 0;
    std::optional<GpuIndex> first;  ///< kernel of backward
  };
  bool any = false;
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Recording& recording = job.recordings[rank];
    const replay::Ranges named(recording, range.pattern, false),
        linked(recording, range.pattern, true);
    program::RankProgram& of = program.programs[rank];
    std::map<HostIndex, Instance> instances;
    const auto launched_before = [&](GpuIndex a, GpuIndex b) {
      return recording.host(*recording.launcher(a)).start <
             recording.host(*recording.launcher(b)).start;
    };
    for (program::OpIndex i = 0; i < of.ops.size(); ++i) {
      const program::Recorded& recorded = of.recorded[i];
      const bool device = recorded.kind == Kind::kDevice && recorded.row;
      if (!device && !is_host_work(recorded)) continue;
      const auto host = device ? recording.launcher(*recorded.row) : recorded.row;
      const auto in = linked.of(host);
      if (!in) continue;
      const InBackward backward = in_backward(recording, *host);
      if (backward.again)
        return fail(fmt::format("'{}' runs again already", range.text),
                    "layers without checkpoints");
      Instance& instance = instances[*in];
      if (named.of(host) == in && !backward.yes) {
        if (of.ops[i].task == program::Task::kCollective)
          return fail(fmt::format("'{}' has collectives, which would run again", range.text),
                      "a job file with `workload: {recording: …, recompute_layers: [PATTERN]}`");
        (device ? instance.device : instance.host) += *of.ops[i].duration;
        instance.kernels += device ? 1 : 0;
      } else if (device && of.ops[i].task == program::Task::kCompute &&
                 (!instance.first || launched_before(*recorded.row, *instance.first))) {
        instance.first = *recorded.row;
      }
    }
    const Picoseconds gap = Picoseconds::from(program.replays[rank].constants.queue_gap.value);
    std::map<HostIndex, Picoseconds> of_call;
    for (const auto& [number, instance] : instances) {
      if (!instance.first || instance.kernels == 0) continue;
      any = true;
      // Its kernels come before the first of backward, and the host launches them all before the
      // others of backward.
      *of.ops[program.replays[rank].device_first[*instance.first]].duration +=
          instance.device + gap * static_cast<double>(instance.kernels);
      of_call.insert_or_assign(*recording.launcher(*instance.first), instance.host);
    }
    for (program::OpIndex i = 0; i < of.ops.size(); ++i)
      if (is_host_work(of.recorded[i]))
        if (const auto call = of_call.extract(*of.recorded[i].row); !call.empty())
          *of.ops[i].duration += call.mapped();
  }
  if (!any)
    return fail(fmt::format("'{}' has no kernels in both forward and backward", range.text),
                "a range of a recording of training, with sequence numbers of operators");
  return program;
}

Result<replay::RecordedProgram> keep_range(const ReplayJob& job, replay::RecordedProgram program,
                                           const replay::Selector& range) {
  TRY(replay::select_some(job.recordings, program, range));
  replay::DeviceOps gone(job.recordings.size());
  bool any = false;
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Recording& recording = job.recordings[rank];
    const replay::Ranges linked(recording, range.pattern, true);
    for (GpuIndex i = 0; i < recording.rank().gpu_ops.size(); ++i) {
      const auto call = recording.launcher(i);
      if (call && linked.of(call) && in_backward(recording, *call).again) gone[rank].insert(i);
    }
    any = any || !gone[rank].empty();
  }
  if (!any)
    return fail(fmt::format("backward of '{}' runs nothing again", range.text),
                "a recording with checkpoints");
  replay::take_away(job.recordings, program, gone, true);
  return program;
}

}  // namespace rehearse::cli
