#include "models/input/feed.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/input/limits.h"
#include "models/input/simulate.h"
#include "sim/base/check.h"

namespace rehearse::input {
namespace {

/// Units that are taken at once: more of them make runs longer, and change what queues that are
/// shorter than that let through.
constexpr double kMostUnits = 256;
/// Times are whole picoseconds in the graph: less than this share of the work is rounding.
constexpr double kRounding = 1e-6;

}  // namespace

Status gives_all_samples(const Pipeline& pipeline) {
  if (!pipeline.loop || !pipeline.loop->rounds()) return {};
  return fail(fmt::format("samples that are {} are none for a job, which takes all",
                          kLateNames[static_cast<int>(pipeline.loop->late)]),
              "late: kept");
}

Result<double> slowdown(const Pipeline& pipeline, const Work& work) {
  REHEARSE_CHECK(work.units > 0 && work.time > Seconds::s(0));
  Pipeline fed = pipeline;
  fed.step.reset();
  fed.samples.reset();  // no epoch is asked for
  if (limits_of(fed).empty()) return 1.0;
  if (Status ok = gives_all_samples(fed); !ok) return forward(ok);
  // The accelerator reads from a source of its own, which takes the time of its work: no core, no
  // link that others share.
  const double units = std::ceil(work.units / std::ceil(work.units / kMostUnits) - 1e-9);
  const Seconds hold = work.time * (units / work.units);
  fed.sources.push_back({.name = "accelerator", .latency = {.mean = hold}});
  fed.stages.push_back({.name = "accelerator",
                        .source = fed.sources.size() - 1,
                        .batch = static_cast<std::uint32_t>(units),
                        .queue = 0});
  const Result<Flow> flow = simulate(fed);
  if (!flow) return forward(flow);
  const double slower = 1 / (flow->units_per_s.value * hold.s());
  return slower < 1 + kRounding ? 1 : slower;
}

Pipeline with_free_storage(Pipeline pipeline) {
  for (Stage& stage : pipeline.stages) {
    stage.source.reset();
    stage.bytes = Bytes::b(0);
    stage.reads.clear();
  }
  return pipeline;
}

}  // namespace rehearse::input
