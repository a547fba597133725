#include "models/workload/lift_rank.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "models/workload/host_work.h"
#include "models/workload/lift_steps.h"
#include "sim/base/check.h"
#include "sim/base/statistics.h"
#include "sim/base/text.h"

namespace rehearse::workload::lifting {
namespace {

/// The relative distance from an op's median that 90 % of recorded times stay within, for
/// recordings of a single step, whose spread is unknown. It was measured over the recordings with
/// several steps that docs/concepts/lifting.md names.
constexpr double kSpread = 0.05;

/// The same unit in several steps: the k-th of its name and phase.
using Key = std::tuple<Phase, std::string_view, std::size_t>;

std::vector<Key> keys_of(const StepUnits& step) {
  std::map<std::pair<Phase, std::string_view>, std::size_t> count;
  std::vector<Key> keys;
  for (const Unit& unit : step.units)
    keys.push_back({unit.phase, unit.name, count[{unit.phase, unit.name}]++});
  return keys;
}

/// By unit of `step`: how much shorter and longer it was in 90 % of the steps.
struct Spread {
  double low, high;
};

std::vector<Spread> spreads(const std::vector<StepUnits>& steps, std::size_t of) {
  const std::vector<Key> keys = keys_of(steps[of]);
  std::map<Key, std::vector<Nanoseconds>> times;
  for (const StepUnits& step : steps) {
    // Only steps with the same work are evidence of its spread.
    if (step.units.size() != steps[of].units.size()) continue;
    const std::vector<Key> others = keys_of(step);
    for (std::size_t u = 0; u < others.size(); ++u) times[others[u]].push_back(step.units[u].time);
  }
  std::vector<Spread> found;
  for (std::size_t u = 0; u < keys.size(); ++u) {
    std::vector<Nanoseconds>& list = times[keys[u]];
    const Nanoseconds here = steps[of].units[u].time;
    if (list.size() < 3 || here == Nanoseconds{0}) {
      found.push_back({1 - kSpread, 1 + kSpread});
      continue;
    }
    std::sort(list.begin(), list.end());
    const std::size_t cut = list.size() / 20;  // 5 % at either end
    found.push_back(
        {std::min(1.0, list[cut] / here), std::max(1.0, list[list.size() - 1 - cut] / here)});
  }
  return found;
}

void widen(Op& op, const Spread& spread) {
  op.measured->low = op.measured->value * spread.low;
  op.measured->high = op.measured->value * spread.high;
}

/// Consecutive elementwise ops with the same division become one op of several kernels.
void append(std::vector<Op>& ops, Op op) {
  if (!ops.empty()) {
    Op& last = ops.back();
    if (last.kind == OpKind::kElementwise && op.kind == OpKind::kElementwise &&
        last.dtype == op.dtype && last.samples == op.samples && last.tensor == op.tensor &&
        last.core == op.core) {
      last.bytes += op.bytes;
      last.kernels += op.kernels;
      last.measured->value += op.measured->value;
      last.measured->low += op.measured->low;
      last.measured->high += op.measured->high;
      last.name = "elementwise";
      return;
    }
  }
  ops.push_back(op);
}

/// The operators of the optimizer, in order of launch, with the bytes of their operands. Kernels over
/// lists of tensors are often recorded without.
std::vector<Op> update_of(const StepUnits& step, const std::vector<Spread>& spread) {
  std::vector<Op> update;
  for (std::size_t u = 0; u < step.units.size(); ++u) {
    const Unit& unit = step.units[u];
    if (unit.phase != Phase::kOptimizer) continue;
    Op op{.name = unit.name, .kind = OpKind::kElementwise, .dtype = Dtype::kFp32};
    op.kernels = static_cast<double>(unit.device.size());
    for (const Operand& operand : unit.operands) op.bytes += Bytes::b(operand.bytes());
    const Seconds time = unit.time.seconds();
    op.measured = {time, time, time, Provenance::kRecorded};
    widen(op, spread[u]);
    update.push_back(op);
  }
  return update;
}

void set_divisors(const Shares& shares, Workload& workload) {
  if (shares.heads > 0)
    workload.divided_by_tensor.push_back({"heads", shares.heads});
  else
    workload.divided_by_tensor.push_back(
        {shares.columns > 0 ? "outputs of its narrowest linear"
                            : "parts of the recorded layers that tensor parallelism divides",
         std::max(1.0, shares.columns)});
}

/// The experts of this rank. They compute as many tokens as the experts of a token do, whichever
/// ranks these are on, if all ranks have equal numbers of tokens.
void set_experts(Workload& workload) {
  const double tokens = workload.samples * workload.tokens_per_sample;
  for (const Layer& layer : workload.layers)
    for (const Op& op : layer.forward) {
      if (!op.expert || op.kind != OpKind::kGemm) continue;
      workload.experts = std::max(workload.experts, static_cast<std::uint32_t>(op.batch));
      if (tokens > 0) workload.experts_per_token = op.batch * op.m / tokens;
    }
}

/// The rank's whole steps; partial ones where there are no others.
std::vector<replay::Step> usable(const replay::Steps& steps, std::vector<std::string>& notes) {
  std::vector<replay::Step> whole;
  for (const replay::Step& step : steps.steps)
    if (!step.partial) whole.push_back(step);
  if (!whole.empty()) return whole;
  notes.emplace_back("no complete step was recorded: the longest part of a step is used instead");
  return {*std::max_element(steps.steps.begin(), steps.steps.end(),
                            [](const replay::Step& a, const replay::Step& b) {
                              return a.end - a.start < b.end - b.start;
                            })};
}

std::optional<std::uint32_t> world_of(const trace::Rank& rank) {
  if (rank.info.world_size) return rank.info.world_size;
  std::uint32_t largest = 0;
  for (const trace::Collective& collective : rank.collectives)
    largest = std::max(largest, collective.group_size.value_or(0));
  return largest > 1 ? std::optional(largest) : std::nullopt;
}

Seconds idle_of(const Lifted& lifted, const std::vector<Op>& update) {
  double kernels = 0;
  for (const Op& op : update) kernels += op.kernels;
  for (const Layer& layer : lifted.workload.layers) {
    const auto count = [&](const std::vector<Op>& ops, double times) {
      for (const Op& op : ops) kernels += op.kernels * times;
    };
    const auto passes = static_cast<double>(lifted.microbatches);
    count(layer.forward, passes);
    count(layer.backward, passes);
    count(layer.recompute, passes);
  }
  const DeviceTime& device = lifted.device;
  const Seconds alone = device.communication > device.overlapped
                            ? (device.communication - device.overlapped).seconds()
                            : Seconds::s(0);
  const Seconds rest = lifted.step - device.layers.seconds() - alone;
  return kernels > 0 ? std::max(Seconds::s(0), rest) / kernels : Seconds::s(0);
}

/// The number of units whose recorded operands determine their computation.
std::size_t shaped(const StepUnits& step) {
  return static_cast<std::size_t>(
      std::count_if(step.units.begin(), step.units.end(), [](const Unit& unit) {
        return role_of(unit.name) != Role::kPlain &&
               std::any_of(unit.operands.begin(), unit.operands.end(),
                           [](const Operand& operand) { return operand.is_tensor(); });
      }));
}

/// The step that represents all. Among those that have device work, and shapes if any step has them
/// (an execution trace may cover one step), it is the one of median device time; with an even
/// number, the shorter of the two in the middle.
std::optional<std::size_t> choose_step(const std::vector<StepUnits>& steps) {
  std::size_t most = 0;
  for (const StepUnits& step : steps) most = std::max(most, shaped(step));
  std::vector<std::size_t> order;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (!steps[s].units.empty() && shaped(steps[s]) * 2 >= most) order.push_back(s);
  if (order.empty()) return std::nullopt;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return steps[a].device.busy < steps[b].device.busy;
  });
  return order[(order.size() - 1) / 2];
}

/// The larger of two periods: of the host's steps, and of the ends of their device work.
Seconds step_time(const std::vector<replay::Step>& steps, const std::vector<StepUnits>& units) {
  std::vector<Seconds> host, device;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    host.push_back((steps[s].end - steps[s].start).seconds());
    if (s > 0 && units[s].kernels > 0 && units[s - 1].kernels > 0 &&
        units[s].last > units[s - 1].last)
      device.push_back((units[s].last - units[s - 1].last).seconds());
    else if (steps.size() == 1)
      device.push_back((units[s].last - units[s].first).seconds());
  }
  return device.empty() ? median(host) : std::max(median(host), median(device));
}

}  // namespace

Result<LiftedRank> lift_rank(const trace::Trace& trace, std::size_t number,
                             const LiftOptions& options) {
  REHEARSE_CHECK(number < trace.ranks.size());
  const trace::Rank& rank = trace.ranks[number];
  if (!rank.info.timed)
    return fail(
        Diagnostic{.file = rank.info.source,
                   .problem = "has no times",
                   .expected = "a timed recording; an execution trace can be given in addition"});
  if (rank.gpu_ops.empty())
    return fail_in(rank.info.source, "contains no work of operators",
                   "a recording with device activities, or with operators on host "
                   "threads");
  const Recording recording(trace, number);
  const replay::Steps found = replay::find_steps(recording);

  LiftedRank result;
  Lifted& lifted = result.lifted;
  const std::vector<replay::Step> steps = usable(found, lifted.notes);
  std::vector<StepUnits> units;
  for (const replay::Step& step : steps) units.push_back(find_units(recording, step));
  const std::optional<std::size_t> chosen = choose_step(units);
  if (!chosen)
    return fail_in(rank.info.source, "has no step that launches a kernel",
                   "steps of training or inference");
  const std::size_t at = *chosen;
  const StepUnits& step = units[at];
  const std::vector<Spread> spread = spreads(units, at);

  lifted.step_name = steps[at].name;
  lifted.steps = steps.size();
  lifted.step = step_time(steps, units);
  lifted.device = step.device;
  lifted.kernels = step.kernels;
  lifted.microbatches = step.microbatches;
  const Seconds covered = (step.device.busy - step.device.overlapped).seconds();
  lifted.idle_per_kernel = std::max(Seconds::s(0), lifted.step - covered) / step.kernels;
  lifted.training = std::any_of(step.units.begin(), step.units.end(),
                                [](const Unit& unit) { return unit.phase == Phase::kBackward; });
  lifted.shapes = shaped(step) > 0;

  Workload& workload = lifted.workload;
  workload.name = rank.info.source;
  workload.samples = options.samples.value_or(find_samples(step.units));
  const OpMaker maker(recording, step, workload.names, workload.samples);
  const Layers layers = find_layers(recording, step);
  Shares shares = find_shares(step, maker);
  find_vocabulary(recording, step, maker, shares);
  result.traffic = traffic_of(recording, step, shares, maker);
  if (has_whole_experts(result.traffic)) leave_experts_whole(shares);
  for (const std::string& name : layers.names)
    workload.layers.push_back({.name = name, .forward = {}, .backward = {}});

  Nanoseconds without_shapes{0};
  for (std::size_t u = 0; u < step.units.size(); ++u) {
    const Unit& unit = step.units[u];
    if (unit.phase == Phase::kOptimizer) continue;
    REHEARSE_CHECK(layers.of_unit[u]);
    Layer& layer = workload.layers[*layers.of_unit[u]];
    std::vector<Op>& into = unit.phase == Phase::kForward    ? layer.forward
                            : unit.phase == Phase::kBackward ? layer.backward
                                                             : layer.recompute;
    for (Op& op : maker.ops(u)) {
      tag(op, unit, step, shares, maker);
      widen(op, spread[u]);
      if (op.kind == OpKind::kElementwise && op.bytes == Bytes::b(0)) without_shapes += unit.time;
      append(into, op);
    }
  }
  result.chunks = layers.chunks;
  fill_memory(step, layers, maker, shares, workload, lifted.notes);
  result.update = update_of(step, spread);
  workload.tokens_per_sample = find_tokens(step.units, workload.samples);
  set_divisors(shares, workload);
  set_experts(workload);

  lifted.notes.insert(
      lifted.notes.begin(),
      fmt::format("{} from {}; step '{}' of {}", counted(workload.layers.size(), "layer"),
                  lifting::to_string(layers.source), lifted.step_name,
                  counted(lifted.steps, "whole step")));
  if (lifted.microbatches > 1)
    lifted.notes.push_back(
        fmt::format("{} microbatches per step: times are means over them", lifted.microbatches));
  if (rank.devices.size() == 1 && rank.devices.front().name == kCore)
    lifted.notes.emplace_back(
        "no device was recorded: operators on host threads count as its work, one core per thread");
  if (!lifted.shapes)
    lifted.notes.emplace_back("no shapes: ops have only times");
  else if (without_shapes * 20 > step.device.layers)
    lifted.notes.push_back(fmt::format("{} % of the layers' time is in ops without shapes",
                                       significant(100 * (without_shapes / step.device.layers))));
  lifted.world_size = world_of(rank);
  lifted.idle_per_layer_kernel = idle_of(lifted, result.update);
  TRY(verify(workload));
  return result;
}

}  // namespace rehearse::workload::lifting
