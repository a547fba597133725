#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "cli/commands/step_result.h"
#include "cli/output/value.h"
#include "sim/cluster/cluster.h"
#include "strategies/layer_run.h"
#include "strategies/step/devices.h"
#include "strategies/step/step.h"

namespace rehearse::cli {
namespace {

using workload::Layer, workload::Op;

/// Ops of one name, kind and phase, of all ranks on a kind of device.
struct Sum {
  double time = 0, flops = 0, bytes = 0, calls = 0;
  Provenance provenance = Provenance::kRecorded;
};
using Key = std::tuple<std::string_view, workload::OpKind, std::string_view>;  // name, kind, phase
using Sums = std::map<Key, Sum>;

void add_phase(Sums& sums, const std::vector<Op>& ops, std::string_view phase, double times,
               const step::OpPrice& price) {
  for (const Op& op : ops) {
    if (op.communicates() || op.host) continue;
    const Estimate<Seconds> time = price.estimate(op);
    Sum& sum = sums[{op.name, op.kind, phase}];
    sum.time += time.value.s() * times;
    // The device computes half of the operations that published utilisations count for causal
    // attention. With all of them, an op that runs at 0.55 of the peak would be above the roof.
    sum.flops += flops_of(op).flop() * (op.causal ? 0.5 : 1) * times;
    sum.bytes += bytes_of(op).b() * times;
    sum.calls += times;
    sum.provenance = std::max(sum.provenance, time.provenance);
  }
}

void add_stage(Sums& sums, const workload::Stage& stage, double ranks, const step::OpPrice& price) {
  std::vector<double> passes(stage.chunks.size(), 0);
  for (const workload::Slot& slot : stage.order)
    if (slot.pass == workload::Pass::kForward) passes[slot.chunk] += 1;
  for (std::size_t c = 0; c < stage.chunks.size(); ++c)
    for (const Layer& layer : stage.chunks[c].layers) {
      const double times = layer.count * ranks;
      add_phase(sums, layer.forward, "forward", passes[c] * times, price);
      add_phase(sums, layer.backward, "backward", passes[c] * times, price);
      add_phase(sums, layer.recompute, "recompute", passes[c] * times, price);
      add_phase(sums, layer.step, "optimizer", times, price);
    }
}

Json ops_json(const Sums& sums, double ranks) {
  std::vector<Sums::const_iterator> order;
  for (auto sum = sums.begin(); sum != sums.end(); ++sum) order.push_back(sum);
  std::ranges::stable_sort(order, [](auto a, auto b) { return a->second.time > b->second.time; });
  Json ops = Json::array();
  for (const auto& entry : order) {
    const auto& [name, kind, phase] = entry->first;
    const Sum& sum = entry->second;
    ops.push_back({{"name", name},
                   {"kind", to_string(kind)},
                   {"phase", phase},
                   {"time_s", sum.time / ranks},
                   {"flops", sum.flops / ranks},
                   {"bytes", sum.bytes / ranks},
                   {"calls", sum.calls / ranks},
                   {"provenance", to_string(sum.provenance)}});
  }
  return ops;
}

/// Returns `devices`: per kind its `name`, `peak` (FLOP/s of the job's arithmetic), `memory_rate`
/// (B/s) and `ops`. Each op has its name, kind and phase, `time_s`, `flops`, `bytes` and `calls`
/// per rank and step, and `provenance`; the largest share of time comes first. FLOPs count only
/// matrix operations: 0 for others. Null if the ranks' prices are no longer available.
Json roofline_of(const step::Spec& spec, const cluster::Cluster& cluster, const step::Step& step) {
  const Result<step::Devices> devices = step::Devices::of(step.layout, cluster, spec);
  if (!devices) return {};
  Json list = Json::array();
  for (std::uint32_t k = 0; k < devices->kinds().size(); ++k) {
    const step::DeviceKind& kind = devices->kinds()[k];
    if (kind.gpu == nullptr) continue;
    Sums sums;
    for (const workload::Stage& stage : step.layout.stages)
      for (const step::Devices::Share& share : devices->under(stage))
        if (share.kind == k) add_stage(sums, stage, share.ranks, kind.price);
    const compute::DeviceFacts facts = compute::facts_of(*kind.gpu);
    const compute::Arithmetic arithmetic = compute::arithmetic_of(facts, spec.training.dtype);
    list.push_back({{"name", kind.name},
                    {"ranks", kind.ranks},
                    {"arithmetic", to_string(arithmetic)},
                    {"peak", peak_of(facts, spec.training.dtype).flop_per_s()},
                    {"memory_rate", facts.memory_rate.bytes_per_s()},
                    {"ops", ops_json(sums, kind.ranks)}});
  }
  return {{"devices", std::move(list)}};
}

using memory::Moment, memory::Parts;

constexpr std::size_t kMostMoments = 600;  // of a curve: more than a page has columns for

/// By slot of the stage's order, and for its end: the computing before it.
std::vector<double> computing_before(const workload::Stage& stage, const strategies::Price& price,
                                     const strategies::HostTimes& host) {
  const strategies::Split split = strategies::split_of(stage);
  std::vector<std::array<double, strategies::kPasses>> of_chunk(stage.chunks.size());
  for (std::size_t c = 0; c < stage.chunks.size(); ++c)
    for (std::size_t p = 0; p < strategies::kPasses; ++p)
      for (const workload::Layer& layer : stage.chunks[c].layers) {
        const Result<strategies::LayerRun> run =  // not too long: the step was simulated
            strategies::layer_run(layer, static_cast<workload::Pass>(p), split, price, host);
        for (const strategies::LayerPiece& piece : run->pieces)
          of_chunk[c][p] += layer.count * piece.time.seconds().s();
      }
  std::vector<double> before = {0};
  for (const workload::Slot& slot : stage.order)
    before.push_back(before.back() + of_chunk[slot.chunk][static_cast<std::size_t>(slot.pass)]);
  return before;
}

/// The time in the run at which the rank of a stage had done this much computing.
class RunProgress {
 public:
  RunProgress(const step::Step& step, const workload::Stage& stage) {
    const std::vector<RankId>& ranks = step.lowered.ranks;
    const std::uint32_t program = step.job.program_of[stage.first_rank];
    const auto run = static_cast<std::size_t>(
        std::ranges::find_if(
            ranks, [&](RankId rank) { return step.job.program_of[rank.index()] == program; }) -
        ranks.begin());
    if (run == ranks.size()) return;
    const program::RankProgram& ops = step.job.programs[program];
    for (std::uint32_t i = 0; i < ops.ops.size(); ++i) {
      if (ops.ops[i].task != program::Task::kCompute || !ops.ops[i].duration) continue;
      const graph::OpTimes& times = step.timeline[OpId(step.lowered.first_op[run] + i)];
      ends_.push_back({done_, times.start.seconds().s(), times.end.seconds().s(),
                       ops.ops[i].duration->seconds().s()});
      done_ += ends_.back().work;
    }
  }

  double when(double work) const {
    const auto after = std::upper_bound(ends_.begin(), ends_.end(), work,
                                        [](double w, const Run& run) { return w < run.before; });
    if (after == ends_.begin()) return 0;
    const Run& run = *std::prev(after);
    const double share = run.work > 0 ? std::clamp((work - run.before) / run.work, 0.0, 1.0) : 1;
    return run.start + share * (run.end - run.start);
  }

 private:
  struct Run {
    double before, start, end, work;
  };
  std::vector<Run> ends_;
  double done_ = 0;
};

/// The shown points: the fullest of neighbours that share a column.
std::vector<std::size_t> shown_of(const std::vector<Moment>& moments) {
  std::vector<std::size_t> shown;
  const std::size_t per = (moments.size() + kMostMoments - 1) / kMostMoments;
  for (std::size_t from = 0; from < moments.size(); from += per) {
    std::size_t fullest = from;
    for (std::size_t i = from; i < std::min(from + per, moments.size()); ++i)
      if (moments[i].parts.total() > moments[fullest].parts.total()) fullest = i;
    shown.push_back(fullest);
  }
  return shown;
}

Json curve_json(const step::Step& step, std::size_t s, const step::DeviceKind& kind) {
  const workload::Stage& stage = step.layout.stages[s];
  const memory::Device& device = step.memory[s].device;
  const std::vector<Moment> moments = memory::memory_curve(step.layout, stage, device);
  const std::vector<double> before =
      computing_before(stage, [&](const workload::Op& op) { return kind.price(op); },
                       {.per_kernel = kind.conditions.host_per_kernel});
  const RunProgress progress(step, stage);
  const double end = step.timeline.makespan().seconds().s();
  Json curve = {
      {"name", stage.name},      {"device", device.name},  {"usable_b", device.usable.b()},
      {"time_s", Json::array()}, {"phase", Json::array()}, {"bytes", Json::object()}};
  for (const memory::NamedPart& part : memory::kParts) curve["bytes"][part.name] = Json::array();
  std::size_t peak = 0, count = 0;
  Bytes most = Bytes::b(-1);
  const auto show = [&](double time, std::string_view phase, const Parts& parts) {
    curve["time_s"].push_back(std::min(time, end));
    curve["phase"].push_back(phase);
    for (const memory::NamedPart& part : memory::kParts)
      curve["bytes"][part.name].push_back(std::llround((parts.*part.bytes).b()));
    if (parts.total() > most) {
      most = parts.total();
      peak = count;
    }
    ++count;
  };
  for (const std::size_t i : shown_of(moments)) {
    const Moment& m = moments[i];
    // The activations of forward exist at its end; backward begins with all of them.
    const double time = !m.slot ? progress.when(before.back())
                                : progress.when(before[*m.slot + (m.phase == "forward" ? 1 : 0)]);
    // The first point is the memory that stays allocated from step to step.
    if (count == 0 && time > 0) {
      Parts stays = m.parts;
      stays.activations = stays.loss = stays.transient = Bytes::b(0);
      show(0, "before forward", stays);
    }
    show(time, m.phase, m.parts);
  }
  curve["peak"] = peak;
  curve["end_s"] = end;
  return curve;
}

/// Returns the curves of the fullest stages (at most four, in the order of the layout):
/// `name`, `device`, `usable_b`, `peak` (index of the fullest moment), `time_s`, `phase` and, by
/// part, `bytes` at each moment. A moment is placed at the time in the run at which the stage had
/// done the computing that precedes the moment in its order. Null if the ranks' prices are no
/// longer available.
Json memory_curves(const step::Spec& spec, const cluster::Cluster& cluster,
                   const step::Step& step) {
  const Result<step::Devices> devices = step::Devices::of(step.layout, cluster, spec);
  if (!devices || step.memory.empty()) return {};
  std::vector<std::size_t> stages(step.layout.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s] = s;
  std::ranges::stable_sort(stages, [&](std::size_t a, std::size_t b) {
    return step.memory[a].share() > step.memory[b].share();
  });
  constexpr std::size_t kMostStages = 4;
  stages.resize(std::min(stages.size(), kMostStages));
  std::ranges::sort(stages);
  Json curves = Json::array();
  for (const std::size_t s : stages) {
    const workload::Stage& stage = step.layout.stages[s];
    curves.push_back(curve_json(step, s, devices->kinds()[devices->under(stage).front().kind]));
  }
  return {{"stages", step.layout.stages.size()}, {"curves", std::move(curves)}};
}

}  // namespace

Status try_changes(PredictedJob& job, const Globals& globals) {
  job.changes = TRY(single_changes(job.file.spec, job.file.cluster, job.file.input, job.step,
                                   job.fidelity, globals.progress_of("trying changes")));
  return {};
}

ReportDetails step_details(const PredictedJob& job, const std::filesystem::path& job_file) {
  const step::Step& step = job.step;
  std::vector<std::string> suites = {"memory/galvatron measured, peak", "withheld/all"};
  for (const step::DeviceUse& use : step.devices) suites.push_back("withheld/" + use.name);
  return ReportDetails{.inputs = {job_file},
                       .suites = std::move(suites),
                       .memory = memory_curves(job.file.spec, job.file.cluster, step),
                       .roofline = roofline_of(job.file.spec, job.file.cluster, step),
                       .gains = changes_json(job.changes, step.time.value)};
}

}  // namespace rehearse::cli
