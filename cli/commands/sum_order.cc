#include "cli/commands/sum_order.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "cli/commands/pass_edits.h"
#include "models/workload/lift_units.h"
#include "sim/base/text.h"
#include "sim/program/rank_builder.h"

namespace rehearse::cli {
namespace {

using program::OpIndex;
using replay::Recording;
using RecordedKind = program::Recorded::Kind;

constexpr std::array<std::string_view, 2> kOrders = {"ready", "reverse"};

/// The ops of one sum: several if --bucket joined them. All but the last take no time.
struct Sum {
  std::vector<OpIndex> ops;
  Picoseconds turn{0};  ///< the time that decides the order: it is ready, or it is served
};
using SumRun = std::vector<Sum>;  ///< in recorded order, each after the one before

/// The recorded runs of one rank, and the edit of their order.
class RankSums {
 public:
  RankSums(const Recording& recording, const program::RankProgram& of) : recording_(recording) {
    for (OpIndex i = 0; i < of.ops.size(); ++i)
      if (of.recorded[i].kind == RecordedKind::kResidual) delays_[*of.recorded[i].row] = i;
  }

  /// Calls first(op) for the sums of one step, in order of launch, that no other could follow.
  template <class First>
  void find_firsts(const program::RankProgram& of, const std::vector<OpIndex>& sums,
                   const First& first) {
    std::map<std::size_t, OpIndex> before;  // by stream
    for (const OpIndex op : sums) {
      const auto [last, is_new] = before.try_emplace(stream_of(of, op), op);
      if (is_new || !continues(of, last->second, op)) first(op);
      last->second = op;
    }
  }

  /// `sums` of one step in order of launch. A run begins with each for which is_first(op) holds.
  template <class IsFirst>
  void add_step(const program::RankProgram& of, const std::vector<OpIndex>& sums,
                const IsFirst& is_first) {
    std::map<std::size_t, std::size_t> run_of;  // by stream
    for (const OpIndex op : sums) {
      std::size_t& run = run_of[stream_of(of, op)];
      if (is_first(op)) {
        run = runs_.size();
        runs_.emplace_back();
      }
      SumRun& sums_of = runs_[run];
      const bool joined =
          !sums_of.empty() && of.ops[sums_of.back().ops.back()].stream == program::kNoStream;
      if (!joined) sums_of.emplace_back();
      any_joined_ = any_joined_ || joined;
      sums_of.back().ops.push_back(op);
    }
  }
  void keep_runs() {
    std::erase_if(runs_, [](const SumRun& run) { return run.size() < 2; });
  }
  std::vector<SumRun>& runs() { return runs_; }
  bool any_in_graph() const { return any_in_graph_; }
  bool any_joined() const { return any_joined_; }

  /// When the gradients of the sums have their values, by `end` of the ops.
  template <class End>
  void find_ready(const program::RankProgram& of, const End& end) {
    for (SumRun& run : runs_) {
      std::set<OpIndex> own;
      for (const Sum& sum : run) own.insert(sum.ops.begin(), sum.ops.end());
      for (Sum& sum : run)
        for (const OpIndex op : sum.ops)
          for_dependencies(of, gate(of, op), [&](OpIndex before) {
            if (!own.contains(before)) sum.turn = std::max(sum.turn, end(before));
          });
    }
  }

  /// Runs of `program` serve of the sums that wait the one with the latest turn.
  void serve_latest(replay::RecordedProgram& program, std::uint32_t rank) {
    change(program, rank, [](program::RankBuilder& builder, const SumRun& run, const auto& order) {
      for (std::size_t k = 0; k < order.size(); ++k)
        for (const OpIndex op : run[order[k]].ops)
          builder.op(op).priority = static_cast<std::int32_t>(k);
    });
  }

  /// The sums of each run wait for one another in the order of their turns. Whether that is another
  /// order than the recorded one.
  bool fix_order(replay::RecordedProgram& program, std::uint32_t rank) {
    std::erase_if(runs_, [](const SumRun& run) { return std::ranges::is_sorted(by_turn(run)); });
    if (runs_.empty()) return false;
    change(program, rank,
           [this](program::RankBuilder& builder, const SumRun& run, const auto& order) {
             for (std::size_t k = 1; k < order.size(); ++k)
               builder.depend(gate(builder.so_far(), run[order[k]].ops.front()),
                              run[order[k - 1]].ops.back());
           });
    return true;
  }

 private:
  struct Place {
    std::size_t run, sum;
  };

  static std::vector<std::size_t> by_turn(const SumRun& run) {
    std::vector<std::size_t> order(run.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t k) { return run[k].turn; });
    return order;
  }

  /// Erases the recorded order, and calls put(builder, run, order).
  template <class Put>
  void change(replay::RecordedProgram& program, std::uint32_t rank, const Put& put) {
    release(program.programs[rank]);
    program::RankBuilder builder(std::move(program.programs[rank]));
    for (const auto& [op, before] : waits_) builder.depend(op, before);
    for (const SumRun& run : runs_) put(builder, run, by_turn(run));
    end_steps(program, rank, builder);
    program.programs[rank] = std::move(builder).build();
  }

  std::size_t stream_of(const program::RankProgram& of, OpIndex op) const {
    return recording_.stream_of(*of.recorded[op].row);
  }

  /// The op that waits for what the sum needs: its unexplained delay, if it has one.
  OpIndex gate(const program::RankProgram& of, OpIndex sum) const {
    const auto delay = delays_.find(*of.recorded[sum].row);
    return delay != delays_.end() ? delay->second : sum;
  }

  template <class Use>
  static void for_dependencies(const program::RankProgram& of, OpIndex op, const Use& use) {
    for (std::uint32_t d = of.first_dependency[op]; d < of.first_dependency[op + 1]; ++d)
      use(of.dependencies[d]);
  }

  /// Whether `op` could run before the sum that it follows: it must be known what else it waits for.
  bool continues(const program::RankProgram& of, OpIndex before, OpIndex op) {
    const program::ProgramOp &a = of.ops[before], &b = of.ops[op];
    bool follows = false, waits = false;
    for_dependencies(of, gate(of, op), [&](OpIndex d) {
      follows = follows || d == before;
      waits = waits || (of.recorded[d].kind == RecordedKind::kDevice &&
                        stream_of(of, d) != stream_of(of, op));
    });
    if (!follows || a.group != b.group || a.collective != b.collective) return false;
    const bool in_graph =
        recording_.launcher(*of.recorded[before].row) == recording_.launcher(*of.recorded[op].row);
    any_in_graph_ = any_in_graph_ || in_graph;
    return waits && !in_graph;
  }

  /// Erases the recorded order of the runs, and collects what the ops after a sum wait for instead.
  void release(program::RankProgram& of) {
    std::map<OpIndex, Place> ends;
    for (std::size_t r = 0; r < runs_.size(); ++r)
      for (std::size_t k = 0; k < runs_[r].size(); ++k)
        for (const OpIndex op : runs_[r][k].ops) {
          places_[op] = places_[gate(of, op)] = {r, k};
          ends[op] = {r, k};
        }
    program::erase_dependencies(of, [&](OpIndex op, OpIndex before) {
      const auto end = ends.find(before);
      if (end == ends.end()) return false;
      const auto [run, sum] = end->second;
      if (const auto own = places_.find(op); own != places_.end() && own->second.run == run)
        return own->second.sum != sum;
      for (std::size_t k = 0; k < sum; ++k) waits_.emplace_back(op, runs_[run][k].ops.back());
      return false;
    });
  }

  /// Steps that ended with a sum end with all that were recorded before it too.
  void end_steps(replay::RecordedProgram& program, std::uint32_t rank,
                 program::RankBuilder& builder) const {
    std::map<OpIndex, OpIndex> marks;
    const auto end_of = [&](OpIndex op) {
      const auto place = places_.find(op);
      if (place == places_.end() || place->second.sum == 0) return op;
      const auto [mark, is_new] = marks.try_emplace(op, 0);
      if (is_new) {
        mark->second = builder.add({.name = program.names.intern("sums of gradients"),
                                    .task = program::Task::kMark,
                                    .duration = Picoseconds(0),
                                    .stream = program::kNoStream},
                                   {RecordedKind::kAdded, {}});
        for (std::size_t k = 0; k <= place->second.sum; ++k)
          builder.depend(mark->second, runs_[place->second.run][k].ops.back());
      }
      return mark->second;
    };
    for (replay::StepOps& step : program.replays[rank].steps) {
      if (step.begins_after) step.begins_after = end_of(*step.begins_after);
      step.ends_with = end_of(step.ends_with);
      for (OpIndex& last : step.last_device_ops) last = end_of(last);
    }
  }

  const Recording& recording_;
  std::map<std::uint32_t, OpIndex> delays_;  // by device op
  std::vector<SumRun> runs_;
  bool any_in_graph_ = false, any_joined_ = false;
  std::map<OpIndex, Place> places_;  // of sums and of their delays
  std::vector<std::pair<OpIndex, OpIndex>> waits_;
};

/// A sum on all of its ranks, or the op of one that only its rank has.
using OnRanks = std::tuple<bool, std::uint32_t, std::uint32_t>;
OnRanks on_ranks(const replay::RecordedProgram& program, std::uint32_t rank, OpIndex i) {
  const program::ProgramOp& op = program.programs[rank].ops[i];
  const std::uint32_t group = program.groups_of[rank][op.group];
  if (program.groups[group].members.size() > 1) return {true, group, op.tag};
  return {false, rank, i};
}

/// A sum is ready when it is on all of its ranks, and is served when the last of them serves it.
void join_turns(const replay::RecordedProgram& program, std::vector<RankSums>& ranks) {
  std::map<OnRanks, Picoseconds> turns;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (const SumRun& run : ranks[rank].runs())
      for (const Sum& sum : run) {
        Picoseconds& last =
            turns.try_emplace(on_ranks(program, rank, sum.ops.back()), sum.turn).first->second;
        last = std::max(last, sum.turn);
      }
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (SumRun& run : ranks[rank].runs())
      for (Sum& sum : run) sum.turn = turns.at(on_ranks(program, rank, sum.ops.back()));
}

/// The sums of a rank's steps, each in order of launch.
Result<std::vector<std::vector<OpIndex>>> sums_of_steps(const Recording& recording,
                                                        const replay::RecordedProgram& program,
                                                        std::uint32_t rank) {
  std::vector<std::vector<OpIndex>> steps;
  for (const replay::StepOps& step : program.replays[rank].steps) {
    std::vector<OpIndex>& found = steps.emplace_back();
    for (const replay::GpuIndex i :
         TRY(sums_of_gradients(recording, workload::lifting::find_units(recording, step.step))))
      if (const OpIndex op = program.replays[rank].device_last[i];
          adds_up(program.programs[rank].ops[op]))
        found.push_back(op);
  }
  return steps;
}

}  // namespace

Result<SumOrder> parse_sum_order(const std::string& text) {
  const auto* const found = std::ranges::find(kOrders, text);
  if (found == kOrders.end())
    return fail(fmt::format("unknown order '{}'", text), suggest(text, kOrders));
  return static_cast<SumOrder>(found - kOrders.begin());
}

Result<replay::RecordedProgram> order_sums(const ReplayJob& job, replay::RecordedProgram program,
                                           SumOrder order, const Globals& globals) {
  std::vector<RankSums> ranks;
  std::vector<std::vector<std::vector<OpIndex>>> sums;  // by rank and step
  std::set<OnRanks> firsts;  // that follow no other on one of their ranks
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const program::RankProgram& of = program.programs[rank];
    RankSums& of_rank = ranks.emplace_back(job.recordings[rank], of);
    for (const auto& step :
         sums.emplace_back(TRY(sums_of_steps(job.recordings[rank], program, rank))))
      of_rank.find_firsts(of, step,
                          [&](OpIndex op) { firsts.insert(on_ranks(program, rank, op)); });
  }
  bool any = false, any_in_graph = false, any_joined = false, changed = false;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& step : sums[rank])
      ranks[rank].add_step(program.programs[rank], step, [&](OpIndex op) {
        return firsts.contains(on_ranks(program, rank, op));
      });
    ranks[rank].keep_runs();
    any = any || !ranks[rank].runs().empty();
    any_in_graph = any_in_graph || ranks[rank].any_in_graph();
    any_joined = any_joined || ranks[rank].any_joined();
  }
  const std::string& source = job.recordings.front().rank().info.source;
  if (!any && any_joined)
    return fail_in(source, "has one bucket of gradients per step, so there is no order",
                   "a smaller --bucket");
  if (!any)
    return any_in_graph
               ? fail_in(
                     source,
                     "launches its sums of gradients in one CUDA graph, which keeps their order",
                     "a recording without CUDA graphs")
               : fail_in(
                     source,
                     "has no step with two sums of gradients that follow each other on a stream",
                     "a recording of data-parallel ranks on GPUs");
  const ReplayRun run = TRY(run_program(job, program));
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
    ranks[rank].find_ready(program.programs[rank], [&](OpIndex op) {
      return run.timeline[run.graph.lowered.op(rank, op)].end;
    });
  join_turns(program, ranks);
  if (order == SumOrder::kReverse) {
    // Which sum is served last-come first-served depends on the run. Ranks take the order of one run.
    replay::RecordedProgram trial = program;
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
      RankSums(ranks[rank]).serve_latest(trial, rank);
    const ReplayRun served = TRY(run_program(job, std::move(trial)));
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
      for (SumRun& of : ranks[rank].runs())
        for (Sum& sum : of)
          sum.turn = served.timeline[served.graph.lowered.op(rank, sum.ops.back())].start;
    join_turns(program, ranks);
  }
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].fix_order(program, rank)) changed = true;
  if (!changed)
    globals.warn(fmt::format("--sum-order {}: the sums are already in this order",
                             kOrders[static_cast<std::size_t>(order)]));
  return program;
}

}  // namespace rehearse::cli
