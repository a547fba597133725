#include "models/sharing/crossover.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/engine/engine.h"

namespace rehearse::sharing {
namespace {

/// Iterations of the slowest job, at its slowest: ends count for less the more there are.
constexpr double kIterations = 200;
constexpr double kMostOps = 2e6;
constexpr std::size_t kOpsOfIteration = 3;

Status check(std::span<const TurnTaker> jobs, std::optional<Bytes> memory) {
  if (jobs.empty()) return fail("no job to take turns");
  Bytes all = Bytes::b(0);
  std::string names;
  for (const TurnTaker& job : jobs) {
    const Seconds alone = job.compute + job.exposed;
    if (!(job.compute.s() >= 0) || !(job.exposed.s() >= 0) || !(alone.s() > 0) ||
        !std::isfinite(alone.s()))
      return fail(fmt::format("an iteration of '{}' takes no time", job.name),
                  "compute or communication above 0 s");
    if (job.memory) all += *job.memory;
    names += (names.empty() ? "" : ", ") + job.name;
  }
  if (memory && all > *memory)
    return fail(fmt::format("{} need {} together, and a GPU has {}", names, to_string(all),
                            to_string(*memory)),
                "jobs that fit in its memory at the same time", "run one after another");
  return {};
}

}  // namespace

Result<graph::Graph> turns_graph(std::span<const TurnTaker> jobs,
                                 std::span<const std::uint32_t> iterations) {
  using namespace graph;
  GraphBuilder builder;
  const ServerId gpu =
      builder.add(Server{.name = builder.intern("GPUs"), .slots = 1, .policy = Policy::kLease});
  const NameId forward = builder.intern("forward"), backward = builder.intern("backward"),
               synchronise = builder.intern("synchronise");
  std::uint32_t lease = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Picoseconds compute = Picoseconds::from(jobs[j].compute);
    const Picoseconds first(compute.count() / 3);
    std::optional<OpId> last;
    for (std::uint32_t i = 0; i < iterations[j]; ++i) {
      const DemandId demand = builder.add(Demand{.server = gpu, .lease = LeaseId(lease++)});
      const OpId f = builder.add(Op{forward, Category::kCompute, first, demand});
      const OpId b = builder.add(Op{backward, Category::kCompute, compute - first, demand});
      const OpId s = builder.add(
          Op{synchronise, Category::kCommunication, Picoseconds::from(jobs[j].exposed)});
      if (last) builder.add_edge(*last, f);
      builder.add_edge(f, b);
      builder.add_edge(b, s);
      last = s;
    }
  }
  return std::move(builder).build();
}

Result<Turns> take_turns(std::span<const TurnTaker> jobs, std::optional<Bytes> memory) {
  if (Status ok = check(jobs, memory); !ok) return forward(ok);
  // No iteration takes longer than a turn of everybody and its own communication.
  Seconds turn = Seconds::s(0), slowest = Seconds::s(0);
  for (const TurnTaker& job : jobs) turn += job.compute;
  for (const TurnTaker& job : jobs) slowest = std::max(slowest, turn + job.exposed);
  std::vector<std::uint32_t> iterations;
  double ops = 0;
  for (const TurnTaker& job : jobs) {
    const double count = std::ceil(kIterations * (slowest / (job.compute + job.exposed))) + 1;
    ops += count * kOpsOfIteration;
    if (ops > kMostOps)
      return fail(fmt::format("an iteration of '{}' is too short beside the others", job.name),
                  "jobs whose iterations differ by a factor of a thousand at most");
    iterations.push_back(static_cast<std::uint32_t>(count));
  }
  const Result<graph::Graph> graph = turns_graph(jobs, iterations);
  if (!graph) return forward(graph);
  const Result<graph::Timeline> timeline = engine::run(*graph);
  if (!timeline) return forward(timeline);

  // Ends of iterations, of all jobs while the first to be done still ran.
  std::vector<std::vector<Picoseconds>> ends;
  std::size_t op = 0;
  Picoseconds until(std::numeric_limits<std::int64_t>::max());
  for (const std::uint32_t count : iterations) {
    std::vector<Picoseconds>& of_job = ends.emplace_back();
    for (std::uint32_t i = 0; i < count; ++i, op += kOpsOfIteration)
      of_job.push_back(timeline->ops[op + kOpsOfIteration - 1].end);
    until = std::min(until, of_job.back());
  }
  Turns turns{.rates = {}, .gain = 0};
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    // From the end of the first iteration, when everybody has had a turn, to that of the last.
    const auto last = std::upper_bound(ends[j].begin(), ends[j].end(), until) - 1;
    const double count = static_cast<double>(last - ends[j].begin());
    const Seconds alone = jobs[j].compute + jobs[j].exposed;
    turns.rates.push_back(std::min(1.0, count * (alone / (*last - ends[j].front()).seconds())));
    turns.gain += turns.rates.back();
  }
  return turns;
}

}  // namespace rehearse::sharing
