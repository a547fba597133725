#include "models/input/simulate.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/input/run.h"

namespace rehearse::input {
namespace {

/// The share of a stage's threads that its ops hold between two instants. An abandoned sample holds
/// its thread until it is abandoned.
double busy_between(const Run& run, const Pipeline& pipeline, std::size_t stage, Seconds from,
                    Seconds to) {
  const bool abandoned = pipeline.loop && pipeline.loop->late == Late::kAbandoned &&
                         stage + 1 < pipeline.stages.size();
  double held = 0;
  for (const Held& work : run.lowered.work[stage]) {
    const graph::OpTimes& times = run.timeline[OpId(work.op)];
    Seconds end = times.end.seconds();
    if (abandoned) {
      const Round& round = run.lowered.rounds[work.visit / pipeline.loop->in_flight];
      end = std::min(end, run.timeline[OpId(round.filled)].end.seconds());
    }
    held += std::max(0.0, std::min(end, to).s() - std::max(times.start.seconds(), from).s());
  }
  return held / (pipeline.stages[stage].slots() * (to - from).s());
}

/// The share of the samples of a batch that are present when the batch begins.
double filled_in(const Run& run, std::uint32_t batch) {
  if (run.lowered.rounds.empty()) return 1;
  double there = 0;
  for (const Round& round : run.lowered.rounds) {
    const auto came = std::ranges::count_if(round.came, [&](OpIndex op) {
      return run.timeline[OpId(op)].end <= run.timeline[OpId(round.filled)].end;
    });
    there += std::min(static_cast<double>(came), static_cast<double>(batch));
  }
  return there / (static_cast<double>(batch) * static_cast<double>(run.lowered.rounds.size()));
}

bool all_recorded(const Pipeline& pipeline) {
  const auto recorded = [](const Source& s) {
    return !s.latency.samples.empty() && !s.connection && !s.total && !s.requests_per_s &&
           !s.memory && s.client.mean.s() == 0 && s.client_serial.mean.s() == 0;
  };
  return std::ranges::all_of(pipeline.stages, [&](const Stage& stage) {
    return (!stage.source || recorded(pipeline.sources[*stage.source])) &&
           (stage.time.mean.s() == 0 || !stage.time.samples.empty()) &&
           (stage.serial.mean.s() == 0 || !stage.serial.samples.empty());
  });
}

}  // namespace

Result<Flow> simulate(const Pipeline& pipeline) {
  const Settled settled = TRY(run_settled(pipeline));
  const auto& [run, first, last] = settled;
  const std::size_t part = (last - first) / kParts;
  const Seconds from = run.ends[first], to = run.ends[last];
  const double rate = 1 / time_per_unit(run.ends, first, last).s();
  double squares = 0;
  for (std::size_t i = 0; i < kParts; ++i) {
    const double of_part = (run.ends[first + (i + 1) * part] - run.ends[first + i * part]).s();
    const double off = of_part / (to - from).s() * kParts - 1;
    squares += off * off;
  }
  // Student's t for 90 % with nine degrees of freedom.
  const double error = varies(pipeline) ? 1.833 * std::sqrt(squares / kParts / (kParts - 1)) : 0;
  const Provenance provenance =
      all_recorded(pipeline) ? Provenance::kRecorded : Provenance::kDatasheet;
  Flow flow{.units_per_s = {rate, rate / (1 + error), rate * (1 + error), provenance},
            .filled = filled_in(run, pipeline.stages.back().batch)};
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    flow.busy.push_back(busy_between(run, pipeline, i, from, to));

  if (pipeline.samples) {
    const double epoch = std::ceil(static_cast<double>(*pipeline.samples) /
                                       (counts_of(pipeline).samples * flow.filled) -
                                   1e-9);
    if (ops_of(pipeline, epoch) <= kMostOps) {
      const Run whole = TRY(run_units(pipeline, epoch, Start::kTogether));
      flow.epoch = whole.timeline.makespan().seconds();
    } else {
      flow.epoch = from + Seconds::s((epoch - static_cast<double>(first + 1)) / rate);
    }
  }
  return flow;
}

Result<Seconds> time_to_first(const Pipeline& pipeline, double units) {
  Pipeline alone = pipeline;
  alone.step.reset();
  const double whole = std::max(std::ceil(units - 1e-9), 1.0);
  if (const double ops = ops_of(alone, whole); ops > kUsualOps)
    return fail(fmt::format("the first {1:.0f} units need {0:.3g} ops", ops, whole),
                fmt::format("{:g} at most", kUsualOps), way_out(alone, counts_of(alone)));
  const Run run = TRY(run_units(alone, whole, Start::kTogether));
  return run.ends.back();
}

Result<std::vector<Seconds>> arrivals(const Pipeline& pipeline) {
  if (!pipeline.samples) return fail("its epoch has no length", "samples: 50000");
  const Counts counts = counts_of(pipeline);
  const double units =
      std::max(std::ceil(static_cast<double>(*pipeline.samples) / counts.samples - 1e-9), 1.0);
  if (const double ops = ops_of(pipeline, units); ops > kMostOps)
    return fail(fmt::format("its epoch needs {:.3g} ops", ops),
                fmt::format("{:g} at most", kMostOps), way_out(pipeline, counts));
  return TRY(run_units(pipeline, units, Start::kTogether)).ends;
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
