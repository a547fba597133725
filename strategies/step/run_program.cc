#include "strategies/step/run_program.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/engine/simgrid.h"

namespace rehearse::step {
namespace {

constexpr std::uint64_t kMostMessages = 2'000'000'000;

Result<job::LoweredJob> lower(const program::Program& program, const cluster::Cluster& cluster,
                              const job::Rules& rules, bool fold) {
  if (fold) {
    const auto run = [](const graph::Graph& graph) { return engine::run(graph); };
    std::optional<job::LoweredJob> folded = TRY(job::fold(program, cluster, rules, run));
    if (folded) return std::move(*folded);
  }
  return job::lower(program, cluster, rules);
}

}  // namespace

Result<ProgramRun> run_program(const program::Program& program, const cluster::Cluster& cluster,
                               job::Rules rules, const HowToRun& how) {
  const bool simgrid = how.fidelity == Fidelity::kSimgrid;
  const bool closed = how.fidelity == Fidelity::kClosed;
  rules.fidelity = closed ? job::Fidelity::kClosed : job::Fidelity::kMessage;
  job::LoweredJob lowered = TRY(lower(program, cluster, rules, how.fold && !simgrid));
  if (!closed && lowered.messages > kMostMessages)
    return fail(
        fmt::format("{} messages are too many to simulate individually", grouped(lowered.messages)),
        "--fidelity closed");
  graph::Timeline timeline =
      TRY(simgrid ? engine::run_on_simgrid(lowered.graph) : engine::run(lowered.graph, how.engine));
  return ProgramRun{std::move(lowered), std::move(timeline)};
}

Result<PriceReach> reach_of_prices(const program::Program& program, const cluster::Cluster& cluster,
                                   job::Rules rules, bool fold, std::optional<Seconds> value) {
  PriceReach reach;
  const auto end_at = [&](job::Bound bound) -> Result<Seconds> {
    rules.bound = bound;
    const ProgramRun run =
        TRY(run_program(program, cluster, rules, {.fidelity = Fidelity::kClosed, .fold = fold}));
    reach.provenance = std::max(reach.provenance, run.lowered.provenance);
    return run.step();
  };
  const Seconds low = TRY(end_at(job::Bound::kLow)), high = TRY(end_at(job::Bound::kHigh)),
                usual = value ? *value : TRY(end_at(job::Bound::kValue));
  reach.down = std::max(Seconds::s(0), usual - low);
  reach.up = std::max(Seconds::s(0), high - usual);
  return reach;
}

}  // namespace rehearse::step
