#include "profiler/replay/fewer_launches.h"

#include <map>

#include <fmt/core.h>

namespace rehearse::replay {
namespace {

using program::RankProgram;
using program::Task;
using Kind = Recorded::Kind;

/// Which ops of a rank wait for which.
class Waiting {
 public:
  explicit Waiting(const RankProgram& program) : program_(program), users_(program.ops.size()) {
    for (OpIndex i = 0; i < program.ops.size(); ++i)
      for (const OpIndex before : before_(i)) users_[before].push_back(i);
  }

  /// Whether `op` follows the device op `previous` alone, and alone follows it.
  bool follows(OpIndex op, OpIndex previous) const {
    const std::uint32_t row = *program_.recorded[op].row;
    const auto helps = [&](OpIndex other) {  // the launch of `op`, or its delay
      const Recorded& recorded = program_.recorded[other];
      return (recorded.kind == Kind::kLaunch || recorded.kind == Kind::kResidual) &&
             recorded.row == row;
    };
    for (const OpIndex user : users_[previous])
      if (user != op && !helps(user)) return false;
    for (const OpIndex before : before_(op)) {
      if (before == previous) continue;
      if (!helps(before)) return false;
      if (program_.recorded[before].kind == Kind::kLaunch) continue;
      for (const OpIndex earlier : before_(before))
        if (earlier != previous && !helps(earlier)) return false;
    }
    return true;
  }

 private:
  std::span<const OpIndex> before_(OpIndex op) const {
    const std::uint32_t* all = program_.dependencies.data();
    return {all + program_.first_dependency[op], all + program_.first_dependency[op + 1]};
  }

  const RankProgram& program_;
  std::vector<std::vector<OpIndex>> users_;
};

/// What a thread does in one instance of a range.
struct Stretch {
  std::vector<OpIndex> ops;
  DeviceOps::value_type kernels = {}, gone = {};
};

}  // namespace

Result<std::vector<KernelRun>> find_runs(const std::vector<Recording>& recordings,
                                         const RecordedProgram& program, const Selector& selector) {
  const auto selected = TRY(select_some(recordings, program, selector));
  std::vector<KernelRun> runs;
  for (std::uint32_t rank = 0; rank < recordings.size(); ++rank) {
    const RankReplay& replay = program.replays[rank];
    const RankProgram& of = program.programs[rank];
    const Waiting waiting(of);
    std::map<OpIndex, std::optional<HostIndex>> range_of;  // of the selected kernels
    for (const RankOp& at : selected)
      if (at.rank == rank && of.recorded[at.op].kind == Kind::kDevice &&
          of.ops[at.op].task == Task::kCompute)
        range_of.emplace(at.op, at.range);
    std::set<OpIndex> ends;  // of steps: a kernel does not reach into the next one
    for (const StepOps& step : replay.steps)
      ends.insert(step.last_device_ops.begin(), step.last_device_ops.end());
    for (const Stream& stream : recordings[rank].streams()) {
      std::optional<OpIndex> previous;
      for (const GpuIndex i : stream.ops) {
        const OpIndex op = replay.device_first[i];
        const auto found = range_of.find(op);
        if (found == range_of.end()) {
          previous.reset();
          continue;
        }
        if (previous && !ends.contains(*previous) && range_of[*previous] == found->second &&
            waiting.follows(op, *previous))
          runs.back().kernels.push_back(i);
        else
          runs.push_back({rank, {i}});
        previous = op;
      }
    }
  }
  std::erase_if(runs, [](const KernelRun& run) { return run.kernels.size() < 2; });
  if (runs.empty())
    return fail(fmt::format("'{}' matches no two consecutive kernels", selector.text),
                "kernels of one stream without other work or a synchronization in between");
  return runs;
}

RecordedProgram fuse(const std::vector<Recording>& recordings, RecordedProgram program,
                     const std::vector<KernelRun>& runs, const std::vector<Picoseconds>& times) {
  DeviceOps gone(recordings.size());
  for (std::size_t k = 0; k < runs.size(); ++k) {
    const auto& [rank, kernels] = runs[k];
    const OpIndex first = program.replays[rank].device_first[kernels.front()];
    program.programs[rank].ops[first].duration = times[k];
    gone[rank].insert(kernels.begin() + 1, kernels.end());
  }
  take_away(recordings, program, gone, true);
  return program;
}

Result<RecordedProgram> launch_as_graph(const std::vector<Recording>& recordings,
                                        RecordedProgram program, const Selector& range,
                                        const GraphLaunch& cost) {
  TRY(select_some(recordings, program, range));
  bool any = false;
  for (std::uint32_t rank = 0; rank < recordings.size(); ++rank) {
    const Recording& r = recordings[rank];
    const Ranges ranges(r, range.pattern, true);
    RankProgram& of = program.programs[rank];
    const RankReplay& replay = program.replays[rank];
    // The ops of a thread are consecutive in its program.
    std::vector<Stretch> stretches;
    std::optional<HostIndex> open;
    std::uint32_t thread = program::kNoStream;
    for (OpIndex i = 0; i < of.ops.size(); ++i) {
      const Recorded& recorded = of.recorded[i];
      const bool gone =
          recorded.kind == Kind::kHost && is_gone(program, {rank, i});  // has no thread
      const bool of_thread = gone || of.ops[i].stream < r.threads().size();
      if (!of_thread || (!gone && of.ops[i].stream != thread)) open.reset();
      if (!gone) thread = of.ops[i].stream;
      if (!of_thread || !recorded.row) continue;
      const auto in = ranges.of(recorded.row);
      if (in && in != open) stretches.emplace_back();
      open = in;
      if (!in) continue;
      if (recorded.kind == Kind::kReturn && call_kind(r, *recorded.row) != CallKind::kQueueFull)
        return fail(fmt::format("{} in '{}' waits for the device", program.names[of.ops[i].name],
                                range.pattern),
                    "a range without synchronization and blocking copies: a CUDA graph cannot "
                    "have them");
      if (recorded.kind != Kind::kHost && recorded.kind != Kind::kCall) continue;
      for (const GpuIndex kernel : r.launched(*recorded.row))
        (is_gone(program, {rank, replay.device_first[kernel]}) ? stretches.back().gone
                                                               : stretches.back().kernels)
            .insert(kernel);
      if (!gone) stretches.back().ops.push_back(i);
    }
    for (const Stretch& stretch : stretches) {
      if (stretch.ops.empty() || stretch.kernels.empty() ||
          stretch.kernels.size() + stretch.gone.size() < 2)
        continue;
      any = true;
      for (const OpIndex op : stretch.ops) of.ops[op].duration = Picoseconds(0);
      // Calls begin where the stretch does, and kernels follow the begin of their call.
      of.ops[stretch.ops.back()].duration = Picoseconds::from(cost(stretch.kernels.size()));
    }
  }
  if (!any)
    return fail(fmt::format("'{}' never launches two kernels", range.pattern),
                "a range around several launches");
  return program;
}

}  // namespace rehearse::replay
