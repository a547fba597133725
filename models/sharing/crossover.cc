#include "models/sharing/crossover.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/engine/engine.h"
#include "sim/program/lower.h"
#include "sim/program/rank_builder.h"

namespace rehearse::sharing {
namespace {

/// The iterations of the slowest job, at its slowest. The more there are, the less the ends matter.
constexpr double kIterations = 200;
constexpr double kMostOps = 2e6;
constexpr std::size_t kOpsOfIteration = 5;  // those of the job, and the bounds of its turn

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
    if (!(job.hidden.s() >= 0) || job.hidden > job.compute * (1 + 1e-9))
      return fail(fmt::format("'{}' overlaps {} of communication but computes only for {}",
                              job.name, to_string(job.hidden), to_string(job.compute)),
                  "at most its compute time");
    if (job.memory) all += *job.memory;
    names += (names.empty() ? "" : ", ") + job.name;
  }
  if (memory && all > *memory)
    return fail(fmt::format("{} need {} together, but a GPU has {}", names, to_string(all),
                            to_string(*memory)),
                "jobs that fit in its memory at the same time", "run one after another");
  return {};
}

engine::Division division_of(Links links) {
  if (links == Links::kCoflow) return engine::Division::kCoflow;
  if (links == Links::kEchelon) return engine::Division::kEchelon;
  return engine::Division::kFair;
}

/// The stream of a synchronisation, by job and iteration. The work that links carry is the time that a
/// synchronisation takes alone.
class Network {
 public:
  Network(NamePool& names, program::RankBuilder& builder, Links links)
      : name_(names.intern("links")), builder_(builder), links_(links) {
    if (links == Links::kFirstCome)
      server_ = builder.add(program::Stream{.name = name_});
    else if (links != Links::kApart)
      builder.add(program::Pool{.name = name_, .rate = 1});
  }

  void synchronise(program::OpIndex op, std::size_t job, Seconds alone) {
    if (alone.s() == 0) return;  // it waits for no other job
    if (server_ || links_ == Links::kApart) {
      builder_.op(op).duration = Picoseconds::from(alone);
      if (server_) builder_.op(op).stream = *server_;
      return;
    }
    program::Stream stream{.name = name_, .slots = 0, .pools = {0}};
    if (links_ == Links::kPriority) stream.priority = -static_cast<std::int32_t>(job);
    if (links_ == Links::kCoflow || links_ == Links::kEchelon) {
      stream.group = group_++;
      stream.due = Picoseconds::from(alone);
    }
    builder_.op(op).stream = builder_.add(std::move(stream));
    builder_.set_work(op, alone.s());
  }

 private:
  NameId name_;
  program::RankBuilder& builder_;
  Links links_;
  std::optional<std::uint32_t> server_ = {};
  std::uint32_t group_ = 0;
};

}  // namespace

program::Program turns_program(std::span<const TurnTaker> jobs,
                               std::span<const std::uint32_t> iterations, Links links) {
  using program::OpIndex;
  using program::Task;
  program::Program program;
  NamePool& names = program.names;
  const NameId gpus = names.intern("GPUs"), turn = names.intern("turn"),
               forward = names.intern("forward"), backward = names.intern("backward"),
               synchronise = names.intern("synchronise");
  program::RankBuilder builder;
  const std::uint32_t leases = builder.add(program::Stream{.name = gpus, .leases = true});
  Network network(names, builder, links);
  std::uint32_t lease = 0;
  const auto add = [&](NameId name, Task task, Picoseconds duration) {
    return builder.add(program::ProgramOp{
        .name = name, .task = task, .duration = duration, .stream = program::kNoStream});
  };
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Picoseconds compute = Picoseconds::from(jobs[j].compute);
    const Picoseconds hidden = std::min(Picoseconds::from(jobs[j].hidden), compute);
    const Seconds alone = jobs[j].hidden + jobs[j].exposed;
    std::vector<OpIndex> last;
    for (std::uint32_t i = 0; i < iterations[j]; ++i) {
      const OpIndex f = add(forward, Task::kCompute, compute - hidden),
                    b = add(backward, Task::kCompute, hidden),
                    s = add(synchronise, Task::kCollective, Picoseconds(0)),
                    begin = add(turn, Task::kMark, Picoseconds(0)),
                    end = add(turn, Task::kMark, Picoseconds(0));
      network.synchronise(s, j, alone);
      const std::uint32_t in_turn =
          builder.add(program::Stream{.name = gpus, .slots_of = leases, .lease = lease++});
      builder.op(begin).stream = builder.op(end).stream = in_turn;
      builder.depend(b, f);
      builder.depend(s, f);
      for (const OpIndex op : last) builder.depend(begin, op);
      for (const OpIndex op : {f, b}) {
        builder.depend(op, begin);
        builder.depend(end, op);
      }
      last = {b, s};
    }
  }
  program.services.push_back(std::move(builder).build());
  return program;
}

Result<Turns> take_turns(std::span<const TurnTaker> jobs, Links links,
                         std::optional<Bytes> memory) {
  TRY(check(jobs, memory));
  // No iteration takes longer than one turn and one communication of every job.
  Seconds slowest = Seconds::s(0);
  for (const TurnTaker& job : jobs) slowest += job.compute + job.hidden + job.exposed;
  std::vector<std::uint32_t> iterations;
  double ops = 0;
  for (const TurnTaker& job : jobs) {
    const double count = std::ceil(kIterations * (slowest / (job.compute + job.exposed))) + 1;
    ops += count * kOpsOfIteration;
    if (ops > kMostOps)
      return fail(fmt::format("an iteration of '{}' is too short relative to the others", job.name),
                  "jobs whose iterations differ by a factor of a thousand at most");
    iterations.push_back(static_cast<std::uint32_t>(count));
  }
  const program::Lowered lowered = TRY(program::lower(turns_program(jobs, iterations, links)));
  const graph::Timeline timeline =
      TRY(engine::run(lowered.graph, {.division = division_of(links)}));

  // The ends of iterations of all jobs, while the first job to finish was still running.
  std::vector<std::vector<Picoseconds>> ends;
  std::size_t op = 0;
  Picoseconds until(std::numeric_limits<std::int64_t>::max());
  for (const std::uint32_t count : iterations) {
    std::vector<Picoseconds>& of_job = ends.emplace_back();
    for (std::uint32_t i = 0; i < count; ++i, op += kOpsOfIteration)
      of_job.push_back(std::max(timeline.ops[op + 1].end, timeline.ops[op + 2].end));
    until = std::min(until, of_job.back());
  }
  Turns turns{.gain = 0};
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    // From the end of the first iteration, when every job has had a turn, to that of the last. A
    // job without a turn by then was kept from the links by others.
    const auto after = std::ranges::upper_bound(ends[j], until);
    const auto count = after - ends[j].begin() - 1;
    double rate = 0;
    if (count > 0) {
      const Seconds alone = jobs[j].compute + jobs[j].exposed;
      const Seconds took = (*(after - 1) - ends[j].front()).seconds();
      rate = std::min(1.0, static_cast<double>(count) * (alone / took));
    }
    turns.rates.push_back(rate);
    turns.gain += rate;
  }
  return turns;
}

}  // namespace rehearse::sharing
