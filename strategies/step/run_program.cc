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

Result<Picoseconds> length_of(const graph::Graph& graph) {
  const graph::Timeline timeline = TRY(engine::run(graph));
  return timeline.makespan();
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

PriceReach PriceEnds::reach() const {
  const auto from = [](Picoseconds a, Picoseconds b) {
    return std::max(Seconds::s(0), b.seconds() - a.seconds());
  };
  return {from(low, value), from(value, high), provenance};
}

Result<PriceEnds> ends_of_prices(const job::LoweredJob& closed, Picoseconds value) {
  const auto end_at = [&](job::Bound bound) -> Result<Picoseconds> {
    const graph::Graph graph = TRY(job::at_bound(closed, bound));
    return length_of(graph);
  };
  const Picoseconds low = TRY(end_at(job::Bound::kLow)), high = TRY(end_at(job::Bound::kHigh));
  return PriceEnds{low, value, high, closed.provenance};
}

Result<PriceEnds> ends_of_prices(const program::Program& program, const cluster::Cluster& cluster,
                                 job::Rules rules, bool fold) {
  rules.fidelity = job::Fidelity::kClosed;
  const job::LoweredJob closed = TRY(lower(program, cluster, rules, fold));
  const Picoseconds value = TRY(length_of(closed.graph));
  return ends_of_prices(closed, value);
}

}  // namespace rehearse::step
