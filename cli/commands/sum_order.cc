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
  Picoseconds ready{0};
};
using Run = std::vector<Sum>;  ///< in recorded order, each after the one before

/// The recorded runs of one rank, and the edit of their order.
class RankSums {
 public:
  RankSums(const Recording& recording, const program::RankProgram& of) : recording_(recording) {
    for (OpIndex i = 0; i < of.ops.size(); ++i)
      if (of.recorded[i].kind == RecordedKind::kResidual) delays_[*of.recorded[i].row] = i;
  }

  /// `sums` of one step in order of launch.
  void add_step(const program::RankProgram& of, const std::vector<OpIndex>& sums) {
    std::map<std::uint32_t, std::size_t> run_of;  // by stream
    for (const OpIndex op : sums) {
      const auto [run, is_new] = run_of.try_emplace(of.ops[op].stream, runs_.size());
      if (!is_new && !continues(of, runs_[run->second].back().ops.back(), op))
        run->second = runs_.size();
      if (run->second == runs_.size()) runs_.emplace_back();
      Run& sums_of = runs_[run->second];
      const bool joined = !sums_of.empty() &&
                          of.ops[sums_of.back().ops.back()].bytes == Bytes::b(0) &&
                          of.ops[sums_of.back().ops.back()].duration == Picoseconds(0);
      if (!joined) sums_of.emplace_back();
      sums_of.back().ops.push_back(op);
    }
  }
  void keep_runs() {
    std::erase_if(runs_, [](const Run& run) { return run.size() < 2; });
  }
  std::vector<Run>& runs() { return runs_; }
  bool any_in_graph() const { return any_in_graph_; }

  /// When the gradients of the sums have their values, by `end` of the ops.
  template <class End>
  void find_ready(const program::RankProgram& of, const End& end) {
    for (Run& run : runs_) {
      std::set<OpIndex> own;
      for (const Sum& sum : run) own.insert(sum.ops.begin(), sum.ops.end());
      for (Sum& sum : run)
        for (const OpIndex op : sum.ops)
          for_dependencies(of, gate(of, op), [&](OpIndex before) {
            if (!own.contains(before)) sum.ready = std::max(sum.ready, end(before));
          });
    }
  }

  /// Whether it changes anything.
  bool order(SumOrder order, replay::RecordedProgram& program, std::uint32_t rank) {
    std::vector<std::vector<std::size_t>> orders;
    for (const Run& run : runs_) {
      std::vector<std::size_t>& by_time = orders.emplace_back(run.size());
      std::iota(by_time.begin(), by_time.end(), std::size_t{0});
      std::ranges::stable_sort(by_time, {}, [&](std::size_t k) { return run[k].ready; });
    }
    if (order == SumOrder::kReady)
      for (std::size_t r = runs_.size(); r-- > 0;)
        if (std::ranges::is_sorted(orders[r])) {
          orders.erase(orders.begin() + static_cast<std::ptrdiff_t>(r));
          runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(r));
        }
    if (runs_.empty()) return false;
    release(program.programs[rank]);
    program::RankBuilder builder(std::move(program.programs[rank]));
    for (const auto& [op, before] : waits_) builder.depend(op, before);
    for (std::size_t r = 0; r < runs_.size(); ++r)
      for (std::size_t k = 0; k < orders[r].size(); ++k) {
        const Sum& sum = runs_[r][orders[r][k]];
        if (order == SumOrder::kReverse)
          for (const OpIndex op : sum.ops) builder.op(op).priority = static_cast<std::int32_t>(k);
        else if (k > 0)
          builder.depend(gate(builder.so_far(), sum.ops.front()),
                         runs_[r][orders[r][k - 1]].ops.back());
      }
    end_steps(program, rank, builder);
    program.programs[rank] = std::move(builder).build();
    return true;
  }

 private:
  struct Place {
    std::size_t run, sum;
  };

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
      waits = waits || (of.recorded[d].kind == RecordedKind::kDevice && of.ops[d].stream != b.stream);
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
  std::vector<Run> runs_;
  bool any_in_graph_ = false;
  std::map<OpIndex, Place> places_;  // of sums and of their delays
  std::vector<std::pair<OpIndex, OpIndex>> waits_;
};

/// A sum is ready when it is on all of its ranks.
void join_ready(const replay::RecordedProgram& program, std::vector<RankSums>& ranks) {
  using Key = std::tuple<bool, std::uint32_t, std::uint32_t>;
  const auto key = [&](std::uint32_t rank, OpIndex i) -> Key {
    const program::ProgramOp& op = program.programs[rank].ops[i];
    const std::uint32_t group = program.groups_of[rank][op.group];
    if (program.groups[group].members.size() > 1) return {true, group, op.tag};
    return {false, rank, i};
  };
  std::map<Key, Picoseconds> ready;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (const Run& run : ranks[rank].runs())
      for (const Sum& sum : run) {
        Picoseconds& last = ready.try_emplace(key(rank, sum.ops.back()), sum.ready).first->second;
        last = std::max(last, sum.ready);
      }
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (Run& run : ranks[rank].runs())
      for (Sum& sum : run) sum.ready = ready.at(key(rank, sum.ops.back()));
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
  bool any = false, any_in_graph = false, changed = false;
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Recording& recording = job.recordings[rank];
    const program::RankProgram& of = program.programs[rank];
    RankSums& sums = ranks.emplace_back(recording, of);
    for (const replay::StepOps& step : program.replays[rank].steps) {
      std::vector<OpIndex> found;
      for (const replay::GpuIndex i :
           TRY(sums_of_gradients(recording, workload::lifting::find_units(recording, step.step))))
        if (const OpIndex op = program.replays[rank].device_last[i]; adds_up(of.ops[op]))
          found.push_back(op);
      sums.add_step(of, found);
    }
    sums.keep_runs();
    any = any || !sums.runs().empty();
    any_in_graph = any_in_graph || sums.any_in_graph();
  }
  const std::string& source = job.recordings.front().rank().info.source;
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
  join_ready(program, ranks);
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].order(order, program, rank)) changed = true;
  if (!changed) globals.warn("--sum-order ready: the sums are already in this order");
  return program;
}

}  // namespace rehearse::cli
