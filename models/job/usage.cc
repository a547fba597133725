#include "models/job/usage.h"

#include <algorithm>
#include <array>

namespace rehearse::job {
namespace {

using program::Task;

constexpr std::size_t kParts = 4;  // of Usage, but for idle

/// Which part of Usage an op counts as; nothing for one that takes no time.
std::optional<std::size_t> part_of(Task task) {
  switch (task) {
    case Task::kCompute:
      return 0;
    case Task::kCollective:
    case Task::kSend:
    case Task::kReceive:
      return 1;
    case Task::kMemory:
      return 2;
    case Task::kHost:
      return 3;
    case Task::kMark:
      break;
  }
  return std::nullopt;
}

struct Turn {
  Picoseconds at;
  std::size_t part;
  int change;
};

}  // namespace

std::vector<Usage> usage(const program::Program& job, const LoweredJob& lowered,
                         const graph::Timeline& timeline) {
  const Picoseconds end = timeline.makespan();
  std::vector<Usage> result;
  std::vector<Turn> turns;
  for (std::size_t r = 0; r + 1 < lowered.first_op.size(); ++r) {
    const program::RankProgram& program = job.program(lowered.ranks[r]);
    const std::uint32_t base = lowered.first_op[r];
    turns.clear();
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const auto part = part_of(program.ops[i].task);
      const graph::OpTimes& times = timeline[OpId(base + i)];
      Picoseconds start = times.start;
      if (program.ops[i].task == Task::kReceive) {
        start = Picoseconds(0);
        for (std::uint32_t d = program.first_dependency[i]; d < program.first_dependency[i + 1];
             ++d)
          start = std::max(start, timeline[OpId(base + program.dependencies[d])].end);
      }
      if (!part || start >= times.end) continue;
      turns.push_back({start, *part, 1});
      turns.push_back({times.end, *part, -1});
    }
    std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.at < b.at; });
    std::array<std::int64_t, kParts + 1> sum = {};  // ps
    std::array<int, kParts> running = {};
    Picoseconds now(0);
    const auto advance = [&](Picoseconds to) {
      const auto first = std::find_if(running.begin(), running.end(), [](int n) { return n > 0; });
      sum[static_cast<std::size_t>(first - running.begin())] += (to - now).count();
      now = to;
    };
    for (const Turn& turn : turns) {
      advance(turn.at);
      running[turn.part] += turn.change;
    }
    advance(end);
    const auto seconds = [&](std::size_t part) { return Picoseconds(sum[part]).seconds(); };
    result.push_back({seconds(0), seconds(1), seconds(2), seconds(3), seconds(4)});
  }
  return result;
}

Seconds time_of(const Collective& collective, const graph::Timeline& timeline) {
  Picoseconds last(0), end(0);
  for (const OpId member : collective.members) {
    last = std::max(last, timeline[member].start);
    end = std::max(end, timeline[member].end);
  }
  return (end - last).seconds();
}

}  // namespace rehearse::job
