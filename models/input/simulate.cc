#include "models/input/simulate.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/input/limits.h"
#include "models/input/lower.h"
#include "sim/engine/engine.h"

namespace rehearse::input {
namespace {

constexpr double kMostOps = 1e7, kUsualOps = 6e5, kUsualOpsOfConstants = 1e5;
constexpr double kLongest = 2e6;  // seconds of a run; int64 picoseconds reach 9e6
constexpr std::size_t kParts = 10;

struct Run {
  graph::Timeline timeline = {};
  Lowered lowered = {};
  std::vector<Seconds> ends = {};  ///< of the units, in order of time
};

Result<Run> run_units(const Pipeline& pipeline, double units, Start start) {
  graph::GraphBuilder builder;
  Result<Lowered> lowered = lower(pipeline, static_cast<std::uint64_t>(units), start, builder);
  if (!lowered) return forward(lowered);
  Run run{.lowered = std::move(*lowered)};
  Result<graph::Graph> graph = std::move(builder).build();
  if (!graph) return forward(graph);
  Result<graph::Timeline> timeline = engine::run(*graph);
  if (!timeline) return forward(timeline);
  run.timeline = std::move(*timeline);
  for (const OpId op : run.lowered.units) run.ends.push_back(run.timeline[op].end.seconds());
  std::sort(run.ends.begin(), run.ends.end());
  return run;
}

/// The slope of a straight line through the ends of units `first` to `last`, in seconds per unit.
/// Workers that end together hand over units in bursts, to which a line pays less heed than a
/// difference of two ends does.
double time_per_unit(const Run& run, std::size_t first, std::size_t last) {
  const double middle = static_cast<double>(first + last) / 2;
  double with_time = 0, with_itself = 0;
  for (std::size_t u = first; u <= last; ++u) {
    const double off = static_cast<double>(u) - middle;
    with_time += off * (run.ends[u] - run.ends[first]).s();
    with_itself += off * off;
  }
  return with_time / with_itself;
}

/// Share of the threads of a stage that its ops hold between two instants. What is abandoned holds
/// its thread until then.
double busy_between(const Run& run, const Pipeline& pipeline, std::size_t stage, Seconds from,
                    Seconds to) {
  const bool abandoned = pipeline.loop && pipeline.loop->late == Late::kAbandoned &&
                         stage + 1 < pipeline.stages.size();
  double held = 0;
  for (const Held& work : run.lowered.work[stage]) {
    const graph::OpTimes& times = run.timeline[work.op];
    Seconds end = times.end.seconds();
    if (abandoned) {
      const Round& round = run.lowered.rounds[work.visit / pipeline.loop->in_flight];
      end = std::min(end, run.timeline[round.filled].end.seconds());
    }
    held += std::max(0.0, std::min(end, to).s() - std::max(times.start.seconds(), from).s());
  }
  return held / (pipeline.stages[stage].slots() * (to - from).s());
}

/// Of the samples of a batch, those that are there when it begins.
double filled_in(const Run& run, std::uint32_t batch) {
  if (run.lowered.rounds.empty()) return 1;
  double there = 0;
  for (const Round& round : run.lowered.rounds) {
    const auto came = std::count_if(round.came.begin(), round.came.end(), [&](OpId op) {
      return run.timeline[op].end <= run.timeline[round.filled].end;
    });
    there += std::min(static_cast<double>(came), static_cast<double>(batch));
  }
  return there / (static_cast<double>(batch) * static_cast<double>(run.lowered.rounds.size()));
}

bool varies(const Pipeline& pipeline) {
  return (pipeline.step && pipeline.step->varies()) ||
         std::any_of(pipeline.stages.begin(), pipeline.stages.end(), [&](const Stage& stage) {
           return stage.time.varies() || stage.serial.varies() || stage.reads.size() > 1 ||
                  (stage.source && pipeline.sources[*stage.source].latency.varies());
         });
}

bool all_recorded(const Pipeline& pipeline) {
  const auto recorded = [](const Source& s) {
    return !s.latency.samples.empty() && !s.connection && !s.total && !s.requests_per_s &&
           !s.memory;
  };
  return std::all_of(pipeline.stages.begin(), pipeline.stages.end(), [&](const Stage& stage) {
    return (!stage.source || recorded(pipeline.sources[*stage.source])) &&
           (stage.time.mean.s() == 0 || !stage.time.samples.empty()) &&
           (stage.serial.mean.s() == 0 || !stage.serial.samples.empty());
  });
}

/// Units over which takes that read unequally have all had their turn.
double round_of_reads(const Pipeline& pipeline, const Counts& counts) {
  double units = 0;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    units =
        std::max(units, static_cast<double>(pipeline.stages[i].reads.size()) / counts.visits[i]);
  return std::ceil(units);
}

/// What to have less of where a run would take too long.
std::string way_out(const Pipeline& pipeline, const Counts& counts) {
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    if (const Stage& stage = pipeline.stages[i];
        ops_to_choose(stage) * counts.visits[i] > ops_of(pipeline, 1) / 2)
      return fmt::format("fewer threads than the {} of each worker of '{}'", stage.threads,
                         stage.name);
  return "smaller batches, shuffle buffers and queues have the same rate";
}

}  // namespace

Result<Flow> simulate(const Pipeline& pipeline) {
  const Counts counts = counts_of(pipeline);
  const double in_flight = units_in_flight(pipeline, counts);
  const double per_unit = ops_of(pipeline, 1);
  const double settle = std::ceil(2 * in_flight) + 4, drain = std::ceil(in_flight) + 4;
  const double least = std::max(50.0, std::ceil(5 * in_flight));
  const double usual = varies(pipeline) ? kUsualOps : kUsualOpsOfConstants;
  const double whole_round =
      std::min(round_of_reads(pipeline, counts), std::floor(kMostOps / per_unit) - settle - drain);
  const double measured =
      std::max(std::min(std::max(least, std::floor(usual / per_unit) - settle - drain), 50'000.0),
               whole_round);
  const double units = settle + measured + drain;
  if (units * per_unit > kMostOps)
    return fail(fmt::format("{:.0f} units of '{}' of {:.3g} ops each are due to see its rate",
                            units, pipeline.stages.back().name, per_unit),
                fmt::format("{:g} ops at most", kMostOps), way_out(pipeline, counts));
  const std::vector<Limit> limits = limits_of(pipeline);
  if (limits.empty())
    return fail("no stage takes any time", "a time, a read or a step of the accelerator");
  double start_up = 0;
  for (const Stage& stage : pipeline.stages)
    start_up = std::max(start_up, (stage.start_up * stage.workers).s());
  if (!(units / limits.front().units_per_s + start_up < kLongest))
    return fail(fmt::format("'{}' gives at most {:.3g} units per second",
                            pipeline.stages.back().name, limits.front().units_per_s),
                fmt::format("a rate at which {:.0f} units take less than {:g} s", units, kLongest));

  const Result<Run> run = run_units(pipeline, units, Start::kSpread);
  if (!run) return forward(run);
  const auto first = static_cast<std::size_t>(settle) - 1;
  const auto part = static_cast<std::size_t>(measured) / kParts;
  const std::size_t last = first + part * kParts;
  const Seconds from = run->ends[first], to = run->ends[last];
  if (!(to > from)) return fail("nothing takes a picosecond", "a time, a read or a step");
  const double rate = 1 / time_per_unit(*run, first, last);
  double squares = 0;
  for (std::size_t i = 0; i < kParts; ++i) {
    const double of_part = (run->ends[first + (i + 1) * part] - run->ends[first + i * part]).s();
    const double off = of_part / (to - from).s() * kParts - 1;
    squares += off * off;
  }
  // Student's t for 90 % with nine degrees of freedom.
  const double error = varies(pipeline) ? 1.833 * std::sqrt(squares / kParts / (kParts - 1)) : 0;
  const Provenance provenance =
      all_recorded(pipeline) ? Provenance::kRecorded : Provenance::kDatasheet;
  Flow flow{.units_per_s = {rate, rate / (1 + error), rate * (1 + error), provenance},
            .filled = filled_in(*run, pipeline.stages.back().batch),
            .busy = {}};
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    flow.busy.push_back(busy_between(*run, pipeline, i, from, to));

  if (pipeline.samples) {
    const double epoch =
        std::ceil(static_cast<double>(*pipeline.samples) / (counts.samples * flow.filled) - 1e-9);
    if (epoch * per_unit <= kMostOps) {
      const Result<Run> whole = run_units(pipeline, epoch, Start::kTogether);
      if (!whole) return forward(whole);
      flow.epoch = whole->timeline.makespan().seconds();
    } else {
      flow.epoch = from + Seconds::s((epoch - settle) / rate);
    }
  }
  return flow;
}

Result<Seconds> time_to_first(const Pipeline& pipeline, double units) {
  Pipeline alone = pipeline;
  alone.step.reset();
  const double whole = std::max(std::ceil(units - 1e-9), 1.0);
  if (const double ops = ops_of(alone, whole); ops > kUsualOps)
    return fail(fmt::format("{:.3g} ops are due for the first {:.0f} units", ops, whole),
                fmt::format("{:g} at most", kUsualOps), way_out(alone, counts_of(alone)));
  const Result<Run> run = run_units(alone, whole, Start::kTogether);
  if (!run) return forward(run);
  return run->ends.back();
}

Usd request_price_of(const Pipeline& pipeline) {
  const Counts counts = counts_of(pipeline);
  Usd price = Usd::usd(0);
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    if (const Stage& stage = pipeline.stages[i]; stage.source)
      price += pipeline.sources[*stage.source].request_price *
               (counts.visits[i] * requests_of(pipeline, stage));
  return price;
}

}  // namespace rehearse::input
