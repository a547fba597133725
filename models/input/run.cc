#include "models/input/run.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/input/limits.h"
#include "sim/engine/engine.h"
#include "sim/program/lower.h"

namespace rehearse::input {
namespace {

constexpr double kUsualOpsOfConstants = 1e5;
constexpr double kLongestRun = 2e6;  // seconds of a run; int64 picoseconds reach 9e6

/// The period, in units, of the cyclic `reads` list.
double round_of_reads(const Pipeline& pipeline, const Counts& counts) {
  double units = 0;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    units =
        std::max(units, static_cast<double>(pipeline.stages[i].reads.size()) / counts.visits[i]);
  return std::ceil(units);
}

}  // namespace

Result<Run> run_units(const Pipeline& pipeline, double units, Start start) {
  Run run;
  {
    program::Program program;
    run.lowered = TRY(lower(pipeline, static_cast<std::uint64_t>(units), start, program));
    program::Lowered alone = TRY(program::lower(program));
    run.graph = std::move(alone.graph);
  }
  run.timeline = TRY(engine::run(run.graph));
  for (const OpIndex op : run.lowered.units)
    run.ends.push_back(run.timeline[OpId(op)].end.seconds());
  std::ranges::sort(run.ends);
  return run;
}

Seconds time_per_unit(std::span<const Seconds> ends, std::size_t first, std::size_t last) {
  const double middle = static_cast<double>(first + last) / 2;
  double with_time = 0, with_itself = 0;
  for (std::size_t u = first; u <= last; ++u) {
    const double off = static_cast<double>(u) - middle;
    with_time += off * (ends[u] - ends[first]).s();
    with_itself += off * off;
  }
  return Seconds::s(with_time / with_itself);
}

bool varies(const Pipeline& pipeline) {
  return (pipeline.step && pipeline.step->varies()) ||
         std::ranges::any_of(pipeline.stages, [&](const Stage& stage) {
           return stage.time.varies() || stage.serial.varies() || stage.reads.size() > 1 ||
                  (stage.source && (pipeline.sources[*stage.source].latency.varies() ||
                                    pipeline.sources[*stage.source].client.varies() ||
                                    pipeline.sources[*stage.source].client_serial.varies()));
         });
}

std::string way_out(const Pipeline& pipeline, const Counts& counts) {
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    if (const Stage& stage = pipeline.stages[i];
        ops_to_choose(stage) * counts.visits[i] > ops_of(pipeline, 1) / 2)
      return fmt::format("fewer threads than the {} of each worker of '{}'", stage.threads,
                         stage.name);
  return "smaller batches, shuffle buffers and queues, which have the same rate";
}

Result<Settled> run_settled(const Pipeline& pipeline) {
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
    return fail(fmt::format("the rate needs {:.0f} units of '{}' with {:.3g} ops each", units,
                            pipeline.stages.back().name, per_unit),
                fmt::format("{:g} ops at most", kMostOps), way_out(pipeline, counts));
  const std::vector<Limit> limits = limits_of(pipeline);
  if (limits.empty())
    return fail("all stages take no time", "a time, a read or a step of the accelerator");
  double start_up = 0;
  for (const Stage& stage : pipeline.stages)
    start_up = std::max(start_up, (stage.start_up * stage.workers).s());
  if (!(units / limits.front().units_per_s + start_up < kLongestRun))
    return fail(
        fmt::format("'{}' gives at most {:.3g} units per second", pipeline.stages.back().name,
                    limits.front().units_per_s),
        fmt::format("a rate at which {:.0f} units take less than {:g} s", units, kLongestRun));

  Run run = TRY(run_units(pipeline, units, Start::kSpread));
  const auto first = static_cast<std::size_t>(settle) - 1;
  const std::size_t last = first + static_cast<std::size_t>(measured) / kParts * kParts;
  if (!(run.ends[last] > run.ends[first]))
    return fail("all times are below a picosecond", "a time, a read or a step");
  return Settled{std::move(run), first, last};
}

}  // namespace rehearse::input
