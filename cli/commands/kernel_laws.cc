#include "cli/commands/kernel_laws.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>

#include "cli/calibrate/op_timings.h"
#include "cli/config/recorded_workload.h"
#include "models/comm/fit_pieces.h"
#include "models/compute/device_facts.h"
#include "models/workload/lift_ops.h"
#include "profiler/replay/fewer_launches.h"
#include "sim/base/statistics.h"
#include "sim/base/text.h"

namespace rehearse::cli {

namespace {

using compute::OpCost, workload::Dtype, workload::Op, workload::OpKind, workload::lifting::Operand,
    workload::lifting::Phase;

/// A recorded operator, and its operations for one pass of the step.
struct Operator {
  std::vector<Op> ops;
  std::vector<Operand> operands;
  double kernels;           ///< in a pass
  double cast_weights = 0;  ///< elements that another format casts: weights, or their gradient
  bool known = false;       ///< whether shapes give the extents of all operations
};

/// The operators of one rank, in their order, and the one of each kernel.
class Operators {
 public:
  Operators(const replay::Recording& recording, const std::vector<replay::StepOps>& steps) {
    for (const replay::StepOps& step : steps) {
      const workload::lifting::StepUnits found =
          workload::lifting::find_units(recording, step.step);
      const workload::lifting::OpMaker maker(recording, found, names_,
                                             workload::lifting::find_samples(found.units));
      for (std::size_t u = 0; u < found.units.size(); ++u) {
        const workload::lifting::Unit& unit = found.units[u];
        for (const replay::GpuIndex i : unit.device) of_kernel_.emplace(i, all_.size());
        all_.push_back({.ops = maker.ops(u),
                        .operands = unit.operands,
                        .kernels = static_cast<double>(unit.device.size()) /
                                   static_cast<double>(found.microbatches)});
        Operator& made = all_.back();
        const auto of = unit.phase == Phase::kForward ? std::optional(u) : unit.forward;
        const bool gradient =
            std::ranges::any_of(made.ops, [](const Op& op) { return op.weight_gradient; });
        if (of && (unit.phase == Phase::kForward || gradient))
          for (const Operand& weight : maker.weights(*of)) made.cast_weights += weight.elements();
        made.known = std::ranges::all_of(
            made.ops, [](const Op& op) { return workload::bytes_of(op) > Bytes::b(0); });
      }
    }
  }

  std::optional<std::size_t> of(replay::GpuIndex kernel) const {
    const auto found = of_kernel_.find(kernel);
    return found == of_kernel_.end() ? std::nullopt : std::optional(found->second);
  }
  const Operator& operator[](std::size_t number) const { return all_[number]; }

 private:
  NamePool names_;
  std::vector<Operator> all_;
  std::unordered_map<replay::GpuIndex, std::size_t> of_kernel_;
};

tl::unexpected<Error> needs_gpu(const trace::Rank& rank, std::string_view instead) {
  return fail(
      Diagnostic{.file = rank.info.source,
                 .problem = "does not name its GPU, so that laws of its kernels are unknown",
                 .expected = "a recording on a GPU of `rehearse catalog gpus`",
                 .nearest = std::string(instead)});
}

/// The time of operations in another number format, relative to their recorded time.
double in_format(const OpCost& cost, const std::vector<Op>& ops, Dtype format, Bound bound) {
  Seconds was = Seconds::s(0), is = Seconds::s(0);
  for (Op op : ops) {
    was += op.measured->value;
    workload::set_format(op, format);
    is += at(cost.time(op), bound);
  }
  return was > Seconds::s(0) ? is / was : 1;
}

double elements_of_input(const Operator& of) {
  for (const Operand& operand : of.operands)
    if (operand.is_floating() && operand.is_tensor()) return operand.elements();
  return 0;
}

double largest_bytes(const Operator& of) {
  double most = 0;
  for (const Operand& operand : of.operands) most = std::max(most, operand.bytes());
  return most;
}

/// Bytes of the result of `first`, if its extents are those of an operand of `next`: both the write
/// and the read fall away.
double saved_between(const Operator& first, const Operator& next) {
  const double result = largest_bytes(first);
  const bool reads = std::ranges::any_of(
      next.operands, [&](const Operand& operand) { return operand.bytes() == result; });
  return reads ? 2 * result : 0;
}

bool is_product(const Op& op) {
  return op.kind == OpKind::kGemm || op.kind == OpKind::kConvolution ||
         op.kind == OpKind::kAttention;
}

/// Fused attention in place of its batched products; nothing if there are fewer than two. The
/// smallest extent of a product is the size of a head. Backward has four products.
std::optional<Op> attention_of(const std::vector<Op>& ops) {
  std::vector<Op> products;
  for (const Op& op : ops)
    if (op.kind == OpKind::kGemm && op.batch > 1) products.push_back(op);
  if (products.size() < 2) return std::nullopt;
  Op fused = products.front();
  double extents[] = {fused.m, fused.n, fused.k};
  std::ranges::sort(extents);
  fused.kind = OpKind::kAttention;
  fused.k = extents[0];
  fused.m = fused.n = extents[2];
  if (extents[1] != extents[2]) fused.m = extents[1];
  if (products.size() >= 4) {
    fused.batch *= 2;
    fused.effort = 1.45;
  }
  return fused;
}

/// The time of a run of kernels as one kernel. `times` are theirs.
Result<Seconds> fused_time(const ReplayJob& job, const trace::Rank& rank,
                           const Operators& operators, const replay::KernelRun& run,
                           const std::vector<Seconds>& times, Bound bound) {
  Seconds all = Seconds::s(0), longest = Seconds::s(0), products = Seconds::s(0);
  std::vector<std::size_t> of;  // the operators, in their order
  bool known = true;
  for (std::size_t k = 0; k < run.kernels.size(); ++k) {
    all += times[k];
    longest = std::max(longest, times[k]);
    const auto found = operators.of(run.kernels[k]);
    known = known && found && operators[*found].known;
    if (!known) continue;
    if (of.empty() || of.back() != *found) of.push_back(*found);
    if (is_product(operators[*found].ops.front())) products += times[k];
  }
  if (known) {
    std::vector<Op> ops;
    for (const std::size_t o : of)
      ops.insert(ops.end(), operators[o].ops.begin(), operators[o].ops.end());
    if (const std::optional<Op> attention = attention_of(ops)) {
      const OpCost cost = TRY(cost_on(job, rank, "give the time: --fuse SELECTOR:DURATION"));
      Seconds parts = Seconds::s(0);
      for (const Op& op : ops) parts += cost.predicted(op).value;
      const Estimate<Seconds> fused = cost.predicted(*attention);
      return all * (at(fused, bound) / parts);
    }
  }
  const Seconds least = std::max(longest, products);
  if (bound == Bound::kLow) return least;
  if (bound == Bound::kHigh) return all;
  if (!known) return Seconds::s(std::sqrt(least.s() * all.s()));
  double moved = 0, saved = 0;
  for (std::size_t k = 0; k < of.size(); ++k) {
    if (!is_product(operators[of[k]].ops.front()))
      for (const Op& op : operators[of[k]].ops) moved += workload::bytes_of(op).b();
    if (k > 0) saved += saved_between(operators[of[k - 1]], operators[of[k]]);
  }
  if (!(moved > 0)) return all;
  return std::clamp(products + (all - products) * std::max(0.0, 1 - saved / moved), least, all);
}

}  // namespace

Result<OpCost> cost_on(const ReplayJob& job, const trace::Rank& rank, std::string_view instead) {
  const std::string device = device_of(rank);
  if (device.empty()) return needs_gpu(rank, instead);
  OpCost cost = TRY(OpCost::on(device, {}));
  std::vector<std::string> notes;
  MeasuredByDevice measured = measured_ops_of(job.trace->timings, notes);
  const auto of_device = measured.find(device);
  return of_device == measured.end() ? cost : cost.with(std::move(of_device->second));
}

Seconds at(const Estimate<Seconds>& time, Bound bound) {
  if (bound == Bound::kLow) return time.low;
  return bound == Bound::kHigh ? time.high : time.value;
}

Result<InFormat> parse_format_edit(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return fail(fmt::format("'{}' has no FORMAT", text), "SELECTOR:FORMAT, such as kernel:bf16");
  replay::Selector what = TRY(replay::parse_selector(text.substr(0, colon)));
  const std::string_view name = trim(text.substr(colon + 1));
  const auto* const found = std::ranges::find(workload::kDtypeNames, name);
  if (found == std::end(workload::kDtypeNames))
    return fail(fmt::format("unknown number format '{}'", name),
                suggest(name, workload::kDtypeNames));
  return InFormat{std::move(what), static_cast<Dtype>(found - std::begin(workload::kDtypeNames))};
}

Result<replay::RecordedProgram> in_format(const ReplayJob& job, replay::RecordedProgram program,
                                          const std::vector<InFormat>& edits, Bound bound,
                                          const Globals& globals) {
  std::vector<std::map<program::OpIndex, Dtype>> formats(job.recordings.size());  // by rank, kernel
  for (const InFormat& edit : edits)
    for (const replay::RankOp& op : TRY(replay::select_some(job.recordings, program, edit.what))) {
      const program::RankProgram& of = program.programs[op.rank];
      if (of.recorded[op.op].kind == program::Recorded::Kind::kDevice &&
          of.ops[op.op].task == program::Task::kCompute)
        formats[op.rank].insert_or_assign(op.op, edit.format);
    }
  std::size_t changed = 0, kept = 0;
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const replay::Recording& recording = job.recordings[rank];
    const Operators operators(recording, program.replays[rank].steps);
    if (formats[rank].empty()) continue;
    const std::vector<program::Recorded>& recorded = program.programs[rank].recorded;
    std::map<std::size_t, Dtype> chosen;  // by operator
    for (const auto& [op, format] : formats[rank])
      if (const auto of = operators.of(*recorded[op].row)) chosen.insert_or_assign(*of, format);
    const OpCost cost =
        TRY(cost_on(job, recording.rank(), "give the factor: --scale SELECTOR:FACTOR"));
    const cluster::Gpu& gpu = *TRY(cluster::find_gpu(device_of(recording.rank())));
    for (const InFormat& edit : edits)
      if (!compute::trains_in(gpu, edit.format))
        return fail(fmt::format("{} has no matrix units for {}", gpu.name, to_string(edit.format)),
                    gpu.bf16_tensor ? "bf16" : "fp16");
    for (const auto& [op, format] : formats[rank]) {
      const auto number = operators.of(*recorded[op].row);
      if (!number || !operators[*number].known) {
        ++kept;
        continue;
      }
      ++changed;
      const Operator& of = operators[*number];
      double casts = of.cast_weights;
      // The law of products in FP8 has the quantisation of their inputs.
      const bool quantised = format == Dtype::kFp8 && (of.ops.front().kind == OpKind::kGemm ||
                                                       of.ops.front().kind == OpKind::kConvolution);
      const auto before = *number > 0 ? chosen.find(*number - 1) : chosen.end();
      if (!quantised && (before == chosen.end() || before->second != format))
        casts += elements_of_input(of);
      const double bytes = workload::bytes_of(format) + workload::bytes_of(of.ops.front().dtype);
      const Op cast{.name = "cast", .kind = OpKind::kElementwise, .bytes = Bytes::b(casts * bytes)};
      const double count = bound == Bound::kLow ? 0 : bound == Bound::kHigh ? 2 : 1;
      std::optional<Picoseconds>& time = program.programs[rank].ops[op].duration;
      Seconds changed_time = time->seconds() * in_format(cost, of.ops, format, bound);
      const bool stored_alike = bytes == 2 * workload::bytes_of(Dtype::kTf32);  // and FP32
      if (casts > 0 && format != of.ops.front().dtype && !stored_alike)
        changed_time += cost.predicted(cast).value * (count / of.kernels);
      time = Picoseconds::from(changed_time);
    }
  }
  if (changed == 0)
    return fail_in(job.recordings.front().rank().info.source,
                   fmt::format("has no shapes of the kernels of '{}'", edits.front().what.text),
                   "a recording with record_shapes=True, or the execution trace of the same run "
                   "in addition");
  if (kept > 0 && bound == Bound::kValue)
    globals.warn(fmt::format(
        "{} of {} kernels keep their time in another number format: their shapes are not recorded",
        kept, kept + changed));
  return program;
}

Result<replay::RecordedProgram> fuse_kernels(const ReplayJob& job, replay::RecordedProgram program,
                                             const replay::MaybeTimed& edit, Bound bound) {
  const auto runs = TRY(replay::find_runs(job.recordings, program, edit.what));
  std::vector<Picoseconds> fused;
  std::optional<Operators> operators;
  std::optional<std::uint32_t> of;
  for (const replay::KernelRun& run : runs) {
    if (edit.time) {
      fused.push_back(Picoseconds::from(*edit.time));
      continue;
    }
    const replay::Recording& recording = job.recordings[run.rank];
    const replay::RankReplay& replay = program.replays[run.rank];
    if (of != run.rank) operators.emplace(recording, replay.steps);
    of = run.rank;
    std::vector<Seconds> times;
    for (const replay::GpuIndex i : run.kernels)
      times.push_back(program.programs[run.rank].ops[replay.device_first[i]].duration->seconds());
    const Seconds time = TRY(fused_time(job, recording.rank(), *operators, run, times, bound));
    fused.push_back(Picoseconds::from(time));
  }
  return replay::fuse(job.recordings, std::move(program), runs, fused);
}

MessageLaw::MessageLaw(const replay::RecordedProgram& recorded) {
  std::map<std::pair<std::uint32_t, CollectiveKind>, std::map<double, std::vector<Seconds>>> times;
  for (std::size_t rank = 0; rank < recorded.ranks(); ++rank)
    for (const program::ProgramOp& op : recorded.programs[rank].ops)
      if (op.task == program::Task::kCollective && op.sized && op.duration)
        times[{recorded.groups_of[rank][op.group], op.collective}][op.bytes.b()].push_back(
            op.duration->seconds());
  for (const auto& [of, sizes] : times) {
    std::vector<comm::MeasuredRow> rows;
    for (const auto& [bytes, all] : sizes)
      rows.push_back({of.second, recorded.groups[of.first].ranks(), Bytes::b(bytes), median(all)});
    const auto shortest = std::ranges::min_element(rows, {}, &comm::MeasuredRow::time);
    Fixed fixed{.most = Picoseconds::from(shortest->time)};
    if (rows.size() > 1)
      fixed.value = std::min(fixed.most, Picoseconds::from(comm::pieces::fit_affine(rows).call));
    fixed_.emplace(of, fixed);
  }
}

Picoseconds MessageLaw::with_bytes(std::uint32_t group, const program::ProgramOp& op, double times,
                                   Bound bound) const {
  const Picoseconds recorded = *op.duration;
  const auto found = fixed_.find({group, op.collective});
  Fixed fixed{.most = recorded};
  if (found != fixed_.end()) fixed = found->second;
  const auto at = [&](Picoseconds constant) {
    constant = std::min(constant, recorded);
    return constant + (recorded - constant) * times;
  };
  if (bound == Bound::kValue) return at(fixed.value);
  return (bound == Bound::kHigh) == (times > 1) ? at(Picoseconds(0)) : at(fixed.most);
}

}  // namespace rehearse::cli
