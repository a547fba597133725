#include "cli/commands/join_sums.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "cli/commands/kernel_laws.h"
#include "cli/commands/pass_edits.h"
#include "cli/commands/recorded_work.h"
#include "sim/program/rank_builder.h"

namespace rehearse::cli {
namespace {

using program::OpIndex;
using replay::Recording;
using Kind = program::Recorded::Kind;

/// The sums of one step, group and kind on a rank, in order of launch.
struct Line {
  std::uint32_t rank, group;
  std::vector<OpIndex> sums;
};

/// What the ops of one rank wait for. The order on the stream of the sums is no need of a result.
class Needs {
 public:
  Needs(const Recording& recording, const program::RankProgram& of)
      : recording_(recording), of_(of), seen_(of.ops.size(), 0) {}

  /// The number of the last sum before the k-th whose result the k-th needs, plus one; 0: of none.
  std::size_t needed(const std::vector<OpIndex>& sums, std::size_t k) {
    ++search_;
    const Nanoseconds from = span(sums.front()).first;
    std::size_t found = 0;
    std::vector<OpIndex> open = {sums[k]};
    while (!open.empty()) {
      const OpIndex op = open.back();
      open.pop_back();
      for_dependencies(op, [&](OpIndex before) {
        const auto sum =
            std::find(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(k), before);
        if (sum != sums.begin() + static_cast<std::ptrdiff_t>(k)) {
          if (!same_queue(op, before))
            found = std::max(found, static_cast<std::size_t>(sum - sums.begin()) + 1);
          return;
        }
        if (seen_[before] == search_ || span(before).second < from) return;  // it needs no sum
        seen_[before] = search_;
        open.push_back(before);
      });
    }
    return found;
  }

  /// Whether both are of one stream or thread, so that the one waits for the other by their order.
  bool same_queue(OpIndex a, OpIndex b) const {
    const auto queue = queue_of(b);
    return queue && queue_of(a) == queue;
  }

  template <class Use>
  void for_dependencies(OpIndex op, const Use& use) const {
    for (std::uint32_t d = of_.first_dependency[op]; d < of_.first_dependency[op + 1]; ++d)
      use(of_.dependencies[d]);
  }

 private:
  static bool is_of_device(Kind kind) {
    return kind == Kind::kDevice || kind == Kind::kLaunch || kind == Kind::kResidual;
  }
  /// The recorded stream of a device op and of its delay, or the thread; absent: none.
  std::optional<std::pair<bool, std::size_t>> queue_of(OpIndex op) const {
    const program::Recorded& recorded = of_.recorded[op];
    if (recorded.kind == Kind::kDevice || recorded.kind == Kind::kResidual)
      return std::pair(true, recording_.stream_of(*recorded.row));
    if (of_.ops[op].stream < recording_.threads().size())
      return std::pair(false, std::size_t{of_.ops[op].stream});
    return std::nullopt;
  }
  /// When the recorded op of an op began and ended; all of time for one without.
  std::pair<Nanoseconds, Nanoseconds> span(OpIndex op) const {
    const program::Recorded& recorded = of_.recorded[op];
    if (!recorded.row) return {Nanoseconds(INT64_MIN), Nanoseconds(INT64_MAX)};
    if (is_of_device(recorded.kind)) {
      const trace::GpuOp& row = recording_.gpu(*recorded.row);
      return {row.start, row.end()};
    }
    const trace::HostOp& row = recording_.host(*recorded.row);
    return {row.start, row.end()};
  }

  const Recording& recording_;
  const program::RankProgram& of_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t search_ = 0;
};

/// A sum on all of its ranks, or the place of one that only its rank has.
using SumKey = std::tuple<bool, std::uint32_t, std::uint32_t>;

}  // namespace

Result<replay::RecordedProgram> join_sums(const ReplayJob& job, replay::RecordedProgram program,
                                          Bytes size, Bound bound) {
  const Work work(job);
  const MessageLaw law(job.recorded.graph.program);
  std::optional<Bytes> smallest;
  std::vector<Line> lines;
  std::map<SumKey, std::size_t> most;  // how many sums a bucket that ends with it can have
  const auto sum_of = [&](const Line& line, OpIndex i) -> SumKey {
    if (program.groups[line.group].members.size() < 2) return {false, line.rank, i};
    return {true, line.group, program.programs[line.rank].ops[i].tag};
  };
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const program::RankProgram& of = program.programs[rank];
    Needs needs(job.recordings[rank], of);
    for (const replay::StepOps& recorded : program.replays[rank].steps) {
      const auto step = workload::lifting::find_units(work[rank], recorded.step);
      std::map<std::pair<std::uint32_t, CollectiveKind>, std::vector<OpIndex>> of_step;
      for (const replay::GpuIndex sum : TRY(sums_of_gradients(work[rank], step))) {
        const OpIndex i = work.last(program, rank, sum);
        const program::ProgramOp& op = of.ops[i];
        if (!adds_up(op)) continue;
        if (!op.sized)
          return fail_in(work[rank].rank().info.source, "states no sizes of its sums of gradients",
                         "a recording of all ranks, with sizes of collectives");
        smallest = std::min(smallest.value_or(op.bytes), op.bytes);
        of_step[{program.groups_of[rank][op.group], op.collective}].push_back(i);
      }
      for (auto& [key, sums] : of_step) lines.push_back({rank, key.first, std::move(sums)});
    }
    for (const Line& line : lines)
      for (std::size_t k = 1; line.rank == rank && k < line.sums.size(); ++k) {
        const std::size_t together = k + 1 - needs.needed(line.sums, k);
        std::size_t& least = most.try_emplace(sum_of(line, line.sums[k]), together).first->second;
        least = std::min(least, together);
      }
  }
  bool joined = false, apart = false;
  std::vector<std::map<OpIndex, OpIndex>> last_of(job.recordings.size());  // of a joined sum
  for (const Line& line : lines) {
    program::RankProgram& of = program.programs[line.rank];
    std::vector<OpIndex> bucket;
    for (const OpIndex i : line.sums) {
      program::ProgramOp& op = of.ops[i];
      if (!bucket.empty() && most.at(sum_of(line, i)) <= bucket.size()) {
        apart = true;
        bucket.clear();
      }
      if (!bucket.empty()) {
        program::ProgramOp& before = of.ops[bucket.back()];
        *op.duration += *before.duration - law.with_bytes(line.group, before, 0, bound);
        op.bytes += before.bytes;
        for (const OpIndex member : bucket) last_of[line.rank].insert_or_assign(member, i);
        joined = true;
      }
      bucket.push_back(i);
      if (op.bytes >= size) bucket.clear();
    }
  }
  if (!smallest)
    return fail_in(job.recordings.front().rank().info.source, "has no sums of gradients",
                   "--data-parallel N --network LINK, which adds them");
  if (!joined && apart)
    return fail_in(job.recordings.front().rank().info.source,
                   "has gradients that need the sums of others, so that these sums cannot join",
                   "a job file with `workload: {recording: …}` and `plan: {bucket: SIZE}`");
  if (!joined)
    return fail_in(job.recordings.front().rank().info.source,
                   fmt::format("has sums of gradients of {} or more, and recorded sums only join",
                               to_string(*smallest)),
                   "a larger --bucket; for smaller ones a job file with `workload: {recording: …}` "
                   "and `plan: {bucket: SIZE}`");
  for (std::uint32_t rank = 0; rank < job.recordings.size(); ++rank) {
    const Needs needs(job.recordings[rank], program.programs[rank]);
    std::vector<std::pair<OpIndex, OpIndex>> waits;
    for (OpIndex op = 0; op < program.programs[rank].ops.size(); ++op)
      needs.for_dependencies(op, [&](OpIndex before) {
        const auto last = last_of[rank].find(before);
        if (last != last_of[rank].end() && !needs.same_queue(op, before))
          waits.emplace_back(op, last->second);
      });
    program::RankBuilder builder(std::move(program.programs[rank]));
    for (const auto& [sum, last] : last_of[rank]) replay::take_away(builder.op(sum));
    for (const auto& [op, before] : waits) builder.depend(op, before);
    program.programs[rank] = std::move(builder).build();
  }
  return program;
}

}  // namespace rehearse::cli
