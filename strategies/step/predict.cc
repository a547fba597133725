#include "strategies/step/predict.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "models/job/program_ops.h"
#include "sim/base/check.h"
#include "sim/graph/critical_path.h"
#include "strategies/job_of_layout.h"
#include "strategies/step/devices.h"
#include "strategies/step/fewer_microbatches.h"
#include "strategies/step/fit_recompute.h"
#include "strategies/step/path_parts.h"
#include "strategies/step/run_program.h"
#include "strategies/step/step_interval.h"
#include "strategies/step/work.h"

namespace rehearse::step {
namespace {

using workload::Axis;

/// The communication that takes no time in a run.
struct Free {
  std::vector<Axis> axes = {};  ///< collectives along these
  bool sends = false;           ///< between stages
  bool copies = false;          ///< between device and host
};

workload::Layout without(workload::Layout layout, const Free& free) {
  const auto goes = [&](const workload::Op& op) {
    if (op.kind == workload::OpKind::kCopy) return free.copies;
    return op.kind == workload::OpKind::kCollective &&
           std::find(free.axes.begin(), free.axes.end(), op.axis) != free.axes.end();
  };
  for (workload::Stage& stage : layout.stages)
    for (workload::Chunk& chunk : stage.chunks)
      for (workload::Layer& layer : chunk.layers) {
        for (std::vector<workload::Op>* ops :
             {&layer.forward, &layer.backward, &layer.recompute, &layer.step})
          std::erase_if(*ops, goes);
        if (free.sends) layer.output = Bytes::b(0);
      }
  if (free.sends) layout.tied_gradient = Bytes::b(0);
  return layout;
}

/// What all runs of a layout have in common.
struct Setting {
  Devices devices;
  Situation situation;
  strategies::JobOptions job;
  PredictOptions options;
};

Result<Setting> setting_of(const Spec& spec, const cluster::Cluster& cluster,
                           const workload::Layout& layout, PredictOptions options) {
  Devices devices = TRY(Devices::of(layout, cluster, spec, options.calibrations));
  // Pushes of one layer wait for those of others at the servers' ports, which folding does not
  // model.
  options.unfold |= layout.servers.has_value();
  Situation situation = situation_of(layout, cluster, spec.training.microbatch, spec.plan.zero > 0);
  strategies::JobOptions job = job_options(spec.conditions, situation, layout);
  return Setting{std::move(devices), situation, std::move(job), options};
}

/// A program and its run.
struct Ran {
  program::Program job;
  job::LoweredJob lowered;
  graph::Timeline timeline;
};

Seconds length(const Ran& run) { return run.timeline.makespan().seconds(); }

/// The time of launches of blocks on the critical path.
Seconds host_time(const program::Program& job, const job::LoweredJob& lowered,
                  const graph::Timeline& timeline) {
  const job::ProgramOps ops(job, lowered, timeline);
  Picoseconds sum(0);
  for (const graph::PathStep& each : program::critical_path(timeline, ops))
    if (lowered.graph.category(each.op) == graph::Category::kHost &&
        ops.purpose(each.op).launch > 0)
      sum += each.end - each.begin;
  return sum.seconds();
}

/// What the interval and the account of a step take from its run.
struct Facts {
  program::Occupancy occupancy = {};
  Seconds host = Seconds::s(0);  ///< launches of blocks on the critical path
  PriceReach reach = {};
  bool calibrated = false;  ///< every price of a collective
};

/// What a prediction needs of a run, which is large and need not last longer than it takes to find
/// this.
struct Sums {
  Seconds length;
  std::optional<Facts> facts = {};
  std::optional<RunSize> size = {};
  std::optional<program::PathParts> path = {};
};
struct Wanted {
  bool facts = false, size = false;
  std::optional<program::Interval> path = {};  ///< the interval of computing on it
};

bool is_calibrated(const job::LoweredJob& lowered) {
  return !lowered.pricings.empty() &&
         std::ranges::all_of(lowered.pricings, [](const job::Pricing& p) { return p.calibrated; });
}

void drop(job::LoweredJob& lowered) {
  const bool folded = lowered.folded;
  lowered = {};
  lowered.folded = folded;
}

bool repeats(const Sums& least, const Sums& few, const Sums& more) {
  return step::repeats(least.length, few.length, more.length);
}
/// The sums of the whole step, from those of runs with few microbatches and with more.
Sums whole(const Sums& few, const Sums& more, double further) {
  const auto at_end = [further](const auto& with_few, const auto& with_more) {
    return with_more * (1 + further) + with_few * -further;
  };
  Sums all{.length = at_end(few.length, more.length), .facts = more.facts, .size = more.size};
  if (all.facts) {
    all.facts->occupancy = at_end(few.facts->occupancy, more.facts->occupancy);
    all.facts->host = at_end(few.facts->host, more.facts->host);
    PriceReach& reach = all.facts->reach;
    reach.down = std::max(Seconds::s(0), at_end(few.facts->reach.down, reach.down));
    reach.up = std::max(Seconds::s(0), at_end(few.facts->reach.up, reach.up));
  }
  if (all.size) {
    all.size->ops = at_end(few.size->ops, more.size->ops);
    all.size->messages = at_end(few.size->messages, more.size->messages);
  }
  if (more.path) all.path = path_of_whole(*few.path, *more.path, further);
  return all;
}

bool repeats(const PriceEnds& least, const PriceEnds& few, const PriceEnds& more) {
  return std::ranges::all_of(
      std::array{&PriceEnds::low, &PriceEnds::value, &PriceEnds::high}, [&](const auto end) {
        return step::repeats((least.*end).seconds(), (few.*end).seconds(), (more.*end).seconds());
      });
}
/// In whole picoseconds, so that a step that repeats exactly has the same ends.
PriceEnds whole(const PriceEnds& few, const PriceEnds& more, double further) {
  PriceEnds all = more;
  for (const auto end : {&PriceEnds::low, &PriceEnds::value, &PriceEnds::high})
    all.*end += (more.*end - few.*end) * further;
  return all;
}

/// Runs a layout: once unchanged, and again without one part.
class Runner {
 public:
  Runner(const Spec& spec, const cluster::Cluster& cluster, const Setting& setting)
      : spec_(spec),
        cluster_(cluster),
        prices_(setting.devices.prices()),
        job_(setting.job),
        options_(setting.options) {}

  Result<Ran> run(const workload::Layout& layout) const {
    program::Program job = TRY(strategies::job_of(layout, prices_, job_));
    ProgramRun run = TRY(run_program(job, cluster_, rules_of(spec_, options_.fidelity),
                                     {.fidelity = options_.fidelity, .fold = !options_.unfold}));
    return Ran{std::move(job), std::move(run.lowered), std::move(run.timeline)};
  }
  /// Of a run of the layout. Frees what it needs no longer, unless it `keeps` the run: others follow.
  Result<Facts> facts(const workload::Layout& layout, program::Program& job,
                      job::LoweredJob& lowered, graph::Timeline& timeline, bool keeps) const {
    Facts facts{.occupancy = job::mean(job::occupancy(job, lowered, timeline)),
                .host = host_time(job, lowered, timeline),
                .calibrated = is_calibrated(lowered)};
    const Picoseconds length = timeline.makespan();
    // The error of a measured price is in the links; any other price has its own interval.
    const bool reaches = !lowered.collectives.empty() &&
                         (!facts.calibrated || lowered.provenance >= Provenance::kExtrapolated);
    if (!keeps) {
      timeline = {};
      if (options_.fidelity == Fidelity::kClosed)
        job = {};
      else
        drop(lowered);
    }
    if (!reaches) return facts;
    std::optional<PriceEnds> ends = TRY(ends_from_few(layout));
    if (!ends && options_.fidelity == Fidelity::kClosed)
      ends = TRY(ends_of_prices(lowered, length));
    facts.reach = (ends ? *ends : TRY(this->ends(job))).reach();
    return facts;
  }
  Result<Seconds> time_without(const workload::Layout& layout, const Free& free) const {
    return time(without(layout, free));
  }

  /// From runs of few of the microbatches; absent where the step has to be run as a whole.
  Result<std::optional<Sums>> few(const workload::Layout& layout, Wanted wanted) const {
    return from_few<Sums>(layout, [&](const workload::Layout& of, bool least) {
      return run_for(of, least ? Wanted{} : wanted);
    });
  }

 private:
  /// Of runs one at a time: that with the least microbatches only tells whether the step repeats.
  template <class Found>
  Result<std::optional<Found>> from_few(const workload::Layout& layout, const auto& run) const {
    for (std::uint32_t fill = kLeastFill;; fill *= 2) {
      const auto fewer = fewer_microbatches(layout, {&spec_.training, &spec_.plan}, fill);
      if (!fewer) return std::nullopt;
      const Found least = TRY(run(fewer->least, true)), few = TRY(run(fewer->few, false)),
                  more = TRY(run(fewer->more, false));
      if (repeats(least, few, more)) return whole(few, more, fewer->further);
    }
  }
  Result<PriceEnds> ends(const program::Program& job) const {
    return ends_of_prices(job, cluster_, rules_of(spec_, Fidelity::kClosed), !options_.unfold);
  }
  Result<std::optional<PriceEnds>> ends_from_few(const workload::Layout& layout) const {
    return from_few<PriceEnds>(
        layout, [this](const workload::Layout& of, bool) -> Result<PriceEnds> {
          const program::Program job = TRY(strategies::job_of(of, prices_, job_));
          return ends(job);
        });
  }
  Result<Sums> run_for(const workload::Layout& layout, Wanted wanted) const {
    Ran run = TRY(this->run(layout));
    Sums sums{length(run)};
    if (wanted.size) sums.size = TRY(run_size(run.job, spec_.plan.collectives, cluster_));
    if (wanted.path)
      sums.path = job::path_parts(run.job, run.lowered, run.timeline, *wanted.path,
                                  links_of(is_calibrated(run.lowered)));
    if (wanted.facts) sums.facts = TRY(facts(layout, run.job, run.lowered, run.timeline, false));
    return sums;
  }
  Result<Seconds> time(const workload::Layout& layout) const {
    std::optional<Sums> sums = TRY(few(layout, {}));
    if (!sums) sums = TRY(run_for(layout, {}));
    return sums->length;
  }

  const Spec& spec_;
  const cluster::Cluster& cluster_;
  const strategies::Prices prices_;
  const strategies::JobOptions& job_;
  const PredictOptions& options_;
};

/// Takes the run from a step that does not keep it.
Result<Facts> facts_of(Step& step, const Runner& runner, bool keeps) {
  Facts facts = TRY(runner.facts(step.layout, step.job, step.lowered, step.timeline, keeps));
  if (!keeps) step.drop_run();
  return facts;
}

/// The effect of each kind of communication: the step without it.
Status compare(Step& step, const Runner& runner) {
  const auto add = [&](std::string change, const Free& free) -> Status {
    const Seconds time = TRY(runner.time_without(step.layout, free));
    step.counterfactuals.push_back({std::move(change), time});
    return {};
  };
  for (const Axis axis : {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData})
    if (any_op(step.layout, [&](const workload::Op& op, const workload::Stage& stage) {
          return op.kind == workload::OpKind::kCollective && op.axis == axis &&
                 group_size(op, stage.degrees) > 1;
        }))
      TRY(add(fmt::format("{}-parallel communication free", to_string(axis)), {.axes = {axis}}));
  if (step.layout.stages.size() > 1) TRY(add("sends between stages free", {.sends = true}));
  if (any_op(step.layout, [](const workload::Op& op, const workload::Stage&) {
        return op.kind == workload::OpKind::kCopy;
      }))
    TRY(add("copies to and from the host free", {.copies = true}));
  std::stable_sort(
      step.counterfactuals.begin(), step.counterfactuals.end(),
      [](const Counterfactual& a, const Counterfactual& b) { return a.step < b.step; });
  return {};
}

/// The rest of a step whose value is known. `work`: of the step's layout.
Status complete(Step& step, const Facts& facts, const Spec& spec, const cluster::Cluster& cluster,
                const Setting& setting, const Work& work) {
  const Runner runner(spec, cluster, setting);
  const Seconds all = step.time.value;
  const Seconds free = TRY(runner.time_without(
      step.layout, {.axes = {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData},
                    .sends = true,
                    .copies = true}));
  step.communication = std::max(Seconds::s(0), all - free);
  step.occupancy = facts.occupancy;
  if (step.block.launches > Seconds::s(0) && all > Seconds::s(0))
    step.host_share = facts.host / all;
  if (setting.options.counterfactuals) TRY(compare(step, runner));
  Provenance provenance = work.provenance;
  for (const DeviceKind& kind : setting.devices.kinds())
    provenance = std::max(provenance, kind.conditions.provenance);
  set_errors(step, spec, work, facts.calibrated);
  set_interval(step, spec, work, setting.situation,
               {.prices = facts.reach, .calibrated = facts.calibrated, .provenance = provenance});
  add_warnings(step, spec, cluster, facts.calibrated);
  return {};
}

}  // namespace

job::Rules rules_of(const Spec& spec, Fidelity fidelity) {
  job::Rules rules{
      .fidelity = fidelity == Fidelity::kClosed ? job::Fidelity::kClosed : job::Fidelity::kMessage,
      .algorithms = spec.plan.collectives,
      .calibrated = true};
  // SimGrid shares no device.
  if (fidelity != Fidelity::kSimgrid) rules.slowdown = 1 + spec.conditions.overlap_penalty;
  return rules;
}

void Step::drop_run() {
  job = {};
  drop(lowered);
  timeline = {};
}

Estimate<double> Step::samples_per_s() const {
  const double samples = layout.samples_per_step;
  return mapped(time, [&](Seconds step) { return samples / std::max(step.s(), 1e-12); });
}

double Step::memory_share() const {
  return std::max(memory::fullest(memory).share(), host_memory ? host_memory->share() : 0);
}

bool Step::fits() const {
  return memory::fullest(memory).fit != memory::Fit::kDoesNotFit &&
         !(host_memory && host_memory->too_much());
}

double Step::model_utilization() const { return model_flops / (peak * time.value); }

double Step::hardware_utilization() const { return hardware_flops / (peak * time.value); }

ByFactor<double> shares_of(const Step& step, const Conditions& conditions, bool over_nodes) {
  const Seconds all = step.time.value;
  const double exposed = step.communication / all, once = step.fixed / all;
  return {std::max(0.0, 1 - step.host_share - exposed - once), step.host_share,
          over_nodes ? exposed : 0, std::min(step.fixed, conditions.fixed) / all};
}

Result<program::Program> program_of(const Spec& spec, const cluster::Cluster& cluster) {
  const workload::Layout layout = TRY(lay_out_on(cluster, spec.workload, spec.training, spec.plan));
  const Setting setting = TRY(setting_of(spec, cluster, layout, {}));
  return strategies::job_of(layout, setting.devices.prices(), setting.job);
}

Result<Step> predict(const Spec& spec, const cluster::Cluster& cluster,
                     const PredictOptions& options) {
  workload::Layout layout = TRY(lay_out_on(cluster, spec.workload, spec.training, spec.plan));
  const Setting setting = TRY(setting_of(spec, cluster, layout, options));
  const Runner runner(spec, cluster, setting);
  const Devices& devices = setting.devices;
  const Work work = work_of(layout, devices, setting.job);
  std::optional<Sums> sums;
  std::optional<Ran> run;
  if (!options.timeline) {
    Wanted wanted{.facts = !options.value_only, .size = options.size};
    if (options.path) wanted.path = computing_of_step(spec, work);
    sums = TRY(runner.few(layout, wanted));
  }
  if (!sums) {
    run = TRY(runner.run(layout));
    sums = Sums{length(*run)};
    if (options.size) sums->size = TRY(run_size(run->job, spec.plan.collectives, cluster));
  }
  const Seconds all = sums->length;
  const double replicas = layout.ranks();
  Step step{.layout = std::move(layout),
            .time = {all, all, all, Provenance::kExtrapolated},
            .fixed = work.fixed,
            .block = work.block,
            .size = sums->size,
            .path = std::move(sums->path)};
  if (run) {
    step.job = std::move(run->job);
    step.lowered = std::move(run->lowered);
    step.timeline = std::move(run->timeline);
    set_errors(step, spec, work, is_calibrated(step.lowered));
  }
  step.memory = TRY(memory_on(step.layout, cluster));
  step.host_memory = host_memory(step.layout, cluster);
  step.model_flops = work.model * replicas;
  step.hardware_flops = (work.model + work.recomputed) * replicas;
  for (std::size_t k = 0; k < devices.kinds().size(); ++k) {
    const DeviceKind& kind = devices.kinds()[k];
    step.devices.push_back({kind.name, kind.ranks, work.busy[k]});
    if (kind.gpu == nullptr) continue;
    const compute::DeviceFacts facts = compute::facts_of(*kind.gpu);
    step.peak += peak_of(facts, spec.training.dtype) * kind.ranks;
  }
  step.share_by_provenance = work.share_by_provenance;
  if (!spec.conditions.measured)
    step.mean_stall = mean_stall(setting.situation, step.layout, spec.conditions.host);
  if (options.value_only) return step;
  if (options.path && step.has_run()) step.path = path_of(step).parts;
  if (!sums->facts) sums->facts = TRY(facts_of(step, runner, options.timeline));
  TRY(complete(step, *sums->facts, spec, cluster, setting, work));
  return step;
}

Status complete(Step& step, const Spec& spec, const cluster::Cluster& cluster,
                const PredictOptions& options) {
  REHEARSE_CHECK(step.has_run());
  const Setting setting = TRY(setting_of(spec, cluster, step.layout, options));
  const Facts facts = TRY(facts_of(step, Runner(spec, cluster, setting), options.timeline));
  return complete(step, facts, spec, cluster, setting,
                  work_of(step.layout, setting.devices, setting.job));
}

}  // namespace rehearse::step
