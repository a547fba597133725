#include "cli/commands/pass_edits.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/core.h>

#include "cli/commands/kernel_laws.h"
#include "cli/commands/recorded_work.h"
#include "models/compute/op_cost.h"
#include "models/workload/lift_ops.h"
#include "models/workload/lift_plan.h"
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
using RecordedKind = program::Recorded::Kind;

std::string source_of(const ReplayJob& job) { return job.recordings.front().rank().info.source; }

using workload::lifting::ActivationMessages;

Result<ActivationMessages> activations_of(const Recording& recording, const StepUnits& step) {
  NamePool names;
  const OpMaker maker(recording, step, names, workload::lifting::find_samples(step.units));
  return workload::lifting::activation_messages(recording, step, maker);
}

/// Messages that hold activations, with that many times the bytes.
Status resize_messages(const Work& work, const std::set<GpuIndex>& messages, std::uint32_t rank,
                       double times, const MessageLaw& law, Bound bound,
                       replay::RecordedProgram& program) {
  for (const GpuIndex i : messages) {
    program::ProgramOp& op = program.programs[rank].ops[work.last(program, rank, i)];
    const std::uint32_t group = program.groups_of[rank][op.group];
    if (op.collective == CollectiveKind::kSendRecv && program.groups[group].members.size() < 2)
      return fail_in(work[rank].rank().info.source,
                     "its messages between stages have no partner in the given ranks, so that they "
                     "contain the wait for it",
                     "the ranks of all stages, of one run; or a job file with "
                     "`workload: {recording: …}`");
    op.duration = law.with_bytes(group, op, times, bound);
    op.bytes = op.bytes * times;
  }
  return {};
}

/// Ranges of loading that start in the step.
std::vector<HostIndex> loading_in(const Recording& recording, const replay::Step& step) {
  std::vector<HostIndex> found;
  for (const replay::HostThread& thread : recording.threads())
    for (const HostIndex i : thread.ops)
      if (recording.host(i).start >= step.start && recording.host(i).start < step.end &&
          recording.name(recording.host(i)).starts_with("enumerate(DataLoader)"))
        found.push_back(i);
  return found;
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
    return fail(fmt::format("'{}' is not a count", text),
                fmt::format("a whole number from 1 to {}", kMost));
  return count;
}

Result<replay::Selector> parse_range(std::string_view text) {
  replay::Selector range = TRY(replay::parse_selector(text));
  if (range.target != replay::Selector::Target::kRange)
    return fail(fmt::format("'{}' is not a range", text), "range=PATTERN");
  return range;
}

Result<replay::RecordedProgram> resize_passes(const ReplayJob& job, replay::RecordedProgram program,
                                              PassExtent extent, double to, Bound bound,
                                              const Globals& globals) {
  std::size_t changed = 0, kept = 0;
  const MessageLaw law(job.recorded.graph.program);
  const Work work(job);
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Recording& recording = work[rank];
    const std::vector<replay::StepOps>& recorded = program.replays[rank].steps;
    std::vector<StepUnits> steps;
    for (const replay::StepOps& of : recorded)
      steps.push_back(workload::lifting::find_units(recording, of.step));
    const compute::OpCost cost =
        TRY(cost_on(job, recording.rank(), "give the factor: --scale SELECTOR:FACTOR"));
    NamePool names;
    std::map<GpuIndex, double> factors;
    std::map<HostIndex, double> loads;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const StepUnits& step = steps[s];
      const double samples = workload::lifting::find_samples(step.units);
      const OpMaker maker(recording, step, names, samples);
      const ActivationMessages messages =
          TRY(workload::lifting::activation_messages(recording, step, maker));
      // A rank has a share of the tokens of each sample.
      const double from =
          extent == PassExtent::kSamples
              ? samples
              : workload::lifting::find_tokens(step.units, samples) * messages.context;
      if (!(from > 0))
        return fail_in(recording.rank().info.source, "its samples have no tokens",
                       "a model with attention or looked-up embeddings, with shapes");
      TRY(resize_messages(work, messages.ops, rank, to / from, law, bound, program));
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
            Result<Op> resized =
                workload::with_tokens(op, from / messages.context, to / messages.context);
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
      if (extent == PassExtent::kSamples)
        for (const HostIndex i : loading_in(recording, recorded[s].step))
          loads[i] = bound == Bound::kLow ? std::min(1.0, to / from) : to / from;
    }
    work.scale_device(program, rank, factors);
    work.scale(program, rank, loads);
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

Result<std::vector<GpuIndex>> sums_of_gradients(const Recording& recording, const StepUnits& step) {
  const ActivationMessages activations = TRY(activations_of(recording, step));
  std::vector<GpuIndex> sums;
  for (const auto& message : step.messages)
    if (message.phase != Phase::kForward && !activations.ops.contains(message.op))
      sums.push_back(message.op);
  return sums;
}

bool adds_up(const program::ProgramOp& op) {
  return op.task == program::Task::kCollective && (op.collective == CollectiveKind::kAllReduce ||
                                                   op.collective == CollectiveKind::kReduceScatter);
}

double share_of_update(const ReplayJob& job, double passes) {
  const std::vector<replay::StepOps>& steps = job.recorded.graph.program.replays.front().steps;
  if (steps.empty()) return 1 / passes;
  const Work work(job);
  return static_cast<double>(
             workload::lifting::find_units(work[0], steps.front().step).microbatches) /
         passes;
}

Result<replay::RecordedProgram> accumulate(const ReplayJob& job, replay::RecordedProgram program,
                                           double passes) {
  bool any = false;
  const Work work(job);
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Recording& recording = work[rank];
    const replay::Ranges optimizer(recording, "Optimizer*", false);
    std::map<GpuIndex, double> factors;
    std::map<HostIndex, double> of_operator;
    for (const replay::StepOps& recorded : program.replays[rank].steps) {
      const StepUnits step = workload::lifting::find_units(recording, recorded.step);
      const double share = static_cast<double>(step.microbatches) / passes;
      for (const auto& unit : step.units)
        if (unit.phase == Phase::kOptimizer) {
          any = true;
          of_operator[unit.op] = share;
          if (!work.on_cores(rank))
            for (const GpuIndex i : unit.device) factors[i] = share;
        }
      for (const GpuIndex sum : TRY(sums_of_gradients(recording, step))) factors[sum] = share;
      // All of a range of the optimizer, not only its operators with kernels.
      for (const replay::HostThread& thread : recording.threads())
        for (const HostIndex i : thread.ops)
          if (recording.host(i).start >= recorded.step.start &&
              recording.host(i).start < recorded.step.end && optimizer.of(i) == i)
            of_operator[i] = share;
    }
    work.scale_device(program, rank, factors);
    work.scale(program, rank, of_operator);
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
    std::optional<GpuIndex> first;              ///< kernel of backward
    std::optional<program::OpIndex> on_thread;  ///< without a device: the first work of backward
  };
  bool any = false;
  const Work work(job);
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Recording& recording = job.recordings[rank];
    std::set<GpuIndex> activations;
    for (const replay::StepOps& recorded : program.replays[rank].steps)
      activations.merge(
          TRY(activations_of(work[rank], workload::lifting::find_units(work[rank], recorded.step)))
              .ops);
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
      const bool device = recorded.kind == RecordedKind::kDevice && recorded.row;
      if ((!device && !is_host_work(recorded)) || replay::is_gone(program, {rank, i})) continue;
      const auto host = device ? recording.launcher(*recorded.row) : recorded.row;
      const auto in = linked.of(host);
      if (!in) continue;
      const InBackward backward = in_backward(recording, *host);
      if (backward.again)
        return fail(fmt::format("'{}' is already recomputed", range.text),
                    "layers without checkpoints");
      Instance& instance = instances[*in];
      if (named.of(host) == in && !backward.yes) {
        if (of.ops[i].task == program::Task::kCollective &&
            (!device || !activations.contains(*recorded.row)))
          return fail(
              fmt::format("'{}' contains collectives of weights, and recomputation may repeat them",
                          range.text),
              "a job file with `workload: {recording: …, recompute_layers: [PATTERN]}`");
        (device ? instance.device : instance.host) += *of.ops[i].duration;
        instance.kernels += device ? 1 : 0;
      } else if (device && of.ops[i].task == program::Task::kCompute &&
                 (!instance.first || launched_before(*recorded.row, *instance.first))) {
        instance.first = *recorded.row;
      } else if (work.on_cores(rank) && backward.yes && !instance.on_thread) {
        instance.on_thread = i;
      }
    }
    const Picoseconds gap = Picoseconds::from(program.replays[rank].constants.queue_gap.value);
    std::map<HostIndex, Picoseconds> of_call;
    for (const auto& [number, instance] : instances) {
      if (instance.on_thread && instance.host > Picoseconds(0)) {
        any = true;
        *of.ops[*instance.on_thread].duration += instance.host;
      }
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
    return fail(fmt::format("'{}' has no work in both forward and backward", range.text),
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
      if (call && linked.of(call) && in_backward(recording, *call).again &&
          !replay::is_gone(program, {rank, program.replays[rank].device_first[i]}))
        gone[rank].insert(i);
    }
    any = any || !gone[rank].empty();
    if (!job.recordings[rank].streams().empty()) continue;
    program::RankProgram& of = program.programs[rank];
    for (program::OpIndex i = 0; i < of.ops.size(); ++i)
      if (is_host_work(of.recorded[i]) && linked.of(of.recorded[i].row) &&
          in_backward(recording, *of.recorded[i].row).again) {
        any = true;
        of.ops[i].duration = Picoseconds(0);
      }
  }
  if (!any)
    return fail(fmt::format("the backward pass of '{}' recomputes nothing", range.text),
                "a recording with checkpoints");
  replay::take_away(job.recordings, program, gone, true);
  return program;
}

}  // namespace rehearse::cli
