#include "profiler/replay/batch_requests.h"

#include <map>

#include <fmt/core.h>

#include "profiler/replay/selector.h"
#include "sim/base/text.h"
#include "sim/program/rank_builder.h"

namespace rehearse::replay {
namespace {

using program::RankBuilder;
using program::RankProgram;
using Kind = Recorded::Kind;

/// Adds the requests of one rank.
class Requests {
 public:
  Requests(std::uint32_t rank, RecordedProgram& program)
      : rank_(rank),
        program_(program),
        ask_name_(program.names.intern("ask for input")),
        wait_name_(program.names.intern("wait for input")),
        builder_(std::move(program.programs[rank])) {}

  /// In a loading range: its own work takes no time. Returns the time that it took.
  Picoseconds at_load(const Load& load) {
    Picoseconds replaced(0);
    for (const OpIndex op : load.ops) {
      replaced += *builder_.op(op).duration;
      builder_.op(op).duration = Picoseconds(0);
    }
    const OpIndex first = load.ops.front();
    const RankProgram& so_far = builder_.so_far();
    const std::uint32_t stream = builder_.op(first).stream;
    const BatchRequest request =
        add(stream < so_far.streams.size() ? so_far.streams[stream].number : 0);
    // It asks when all that came before it has ended.
    for (std::uint32_t d = so_far.first_dependency[first]; d < so_far.first_dependency[first + 1];
         ++d)
      builder_.depend(request.ask, so_far.dependencies[d]);
    builder_.depend(first, request.wait);
    return replaced;
  }

  /// All that waited for the begin of the step waits for its batch too.
  void at_step(const StepOps& step) {
    const BatchRequest request = add(step.step.thread);
    builder_.depend(request.ask, *step.begins_after);
    waits_.emplace(*step.begins_after, request.wait);
  }

  void build() {
    const RankProgram& so_far = builder_.so_far();
    if (!waits_.empty())
      for (OpIndex i = 0; i + 1 < so_far.first_dependency.size(); ++i)
        for (std::uint32_t d = so_far.first_dependency[i]; d < so_far.first_dependency[i + 1]; ++d)
          for (auto [wait, end] = waits_.equal_range(so_far.dependencies[d]); wait != end; ++wait)
            builder_.depend(i, wait->second);
    program_.programs[rank_] = std::move(builder_).build();
  }

 private:
  BatchRequest add(std::size_t thread) {
    const auto instant = [&](NameId name) {
      return builder_.add({.name = name,
                           .task = program::Task::kInput,
                           .duration = Picoseconds(0),
                           .stream = program::kNoStream},
                          {Kind::kFeed, std::nullopt});
    };
    const OpIndex ask = instant(ask_name_);
    const BatchRequest request{
        .rank = rank_, .thread = thread, .ask = ask, .wait = instant(wait_name_)};
    builder_.depend(request.wait, request.ask);
    program_.batch_requests.push_back(request);
    return request;
  }

  const std::uint32_t rank_;
  RecordedProgram& program_;
  const NameId ask_name_, wait_name_;
  RankBuilder builder_;
  std::multimap<OpIndex, OpIndex> waits_;  // by the op with which a step begins
};

}  // namespace

std::vector<Load> loads_of(const Recording& r, const RecordedProgram& program,
                           std::string_view pattern) {
  std::vector<Load> loads;  // ops are in the order of their thread
  const std::vector<Recorded>& recorded = program.programs[r.rank_index()].recorded;
  for (OpIndex i = 0; i < recorded.size(); ++i) {
    if (!recorded[i].row) continue;
    if (recorded[i].kind != Kind::kHost && recorded[i].kind != Kind::kCall) continue;
    if (is_gone(program, {static_cast<std::uint32_t>(r.rank_index()), i})) continue;
    std::optional<HostIndex> range = *recorded[i].row;
    while (range && !matches_wildcard(pattern, r.name(r.host(*range)))) range = r.parent(*range);
    if (!range) continue;
    if (loads.empty() || loads.back().range != *range) loads.push_back({*range, {}});
    loads.back().ops.push_back(i);
  }
  return loads;
}

Result<WithBatchRequests> add_batch_requests(const std::vector<Recording>& recordings,
                                             const RecordedProgram& program) {
  if (!program.batch_requests.empty()) return fail("the recording already has an input pipeline");
  WithBatchRequests result{.program = program};
  Picoseconds replaced(0);
  for (std::uint32_t rank = 0; rank < recordings.size(); ++rank) {
    const std::size_t before = result.program.batch_requests.size();
    Requests requests(rank, result.program);
    for (const Load& load : loads_of(recordings[rank], program)) {
      replaced += requests.at_load(load);
      ++result.loading_ranges;
    }
    if (result.program.batch_requests.size() == before)
      for (const StepOps& step : program.replays[rank].steps)
        if (step.begins_after && step.of_host) requests.at_step(step);
    requests.build();
    if (result.program.batch_requests.size() == before)
      return fail_in(recordings[rank].rank().info.source,
                     "has neither steps nor loading ranges to which batches could be fed",
                     fmt::format("step marks, or ranges named {}", kLoadingRange));
  }
  if (result.loading_ranges > 0)
    result.replaced = replaced.seconds() / static_cast<double>(result.loading_ranges);
  return result;
}

void begin_at_zero(const ReplayGraph& replay, graph::Timeline& timeline) {
  if (!replay.program.begin) return;
  const Picoseconds zero = timeline[replay.lowered.op(*replay.program.begin)].end;
  for (graph::OpTimes& op : timeline.ops) {
    op.start = op.start - zero;
    op.end = op.end - zero;
  }
}

}  // namespace rehearse::replay
