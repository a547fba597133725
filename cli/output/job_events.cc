#include "cli/output/job_events.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/output/event_writer.h"
#include "sim/base/file.h"

namespace rehearse::cli {

void show_job(const program::Program& job, const job::LoweredJob& lowered,
              const graph::Timeline& timeline, TimelineSink& sink) {
  const graph::Graph& graph = lowered.graph;
  // Threads of a rank: 1 compute, 2 host, 3 memory, 4 sends and receives, then its groups.
  constexpr std::size_t kFirstGroup = 5;
  constexpr const char* kThreads[] = {"compute", "host", "memory", "messages"};
  for (std::size_t run = 0; run < lowered.ranks.size(); ++run) {
    const std::size_t process = run + 1;
    const std::uint32_t r = lowered.ranks[run].index();
    const auto alike = std::count(job.program_of.begin(), job.program_of.end(), job.program_of[r]);
    sink.process(process, !lowered.folded ? fmt::format("rank {}", r)
                          : lowered.ranks.size() == 1
                              ? fmt::format("all {} ranks", alike)
                              : fmt::format("rank {}, one of {} equivalent ranks", r, alike));
    for (std::size_t t = 0; t < std::size(kThreads); ++t) sink.thread(process, t + 1, kThreads[t]);
    for (std::size_t g = 0; g < job.groups_of[r].size(); ++g)
      sink.thread(process, kFirstGroup + g, "group " + job.groups[job.groups_of[r][g]].name);
    const program::RankProgram& program = job.program(RankId(r));
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const OpId op(lowered.first_op[run] + i);
      const graph::OpTimes& times = timeline[op];
      if (times.start == times.end) continue;
      std::size_t thread = 0;
      switch (program.ops[i].task) {
        case program::Task::kCompute:
          thread = 1;
          break;
        case program::Task::kHost:
          thread = 2;
          break;
        case program::Task::kMemory:
          thread = 3;
          break;
        case program::Task::kCollective:
          thread = kFirstGroup + program.ops[i].group;
          break;
        default:
          thread = 4;
          break;
      }
      sink.span({.name = graph.name(op),
                 .category = graph.category(op),
                 .process = process,
                 .thread = thread,
                 .start = times.start.seconds(),
                 .duration = (times.end - times.start).seconds(),
                 .op = op});
    }
  }
}

Status draw_job(const std::filesystem::path& path, const program::Program& job,
                const job::LoweredJob& lowered, const graph::Timeline& timeline) {
  Result<PendingFile> file = PendingFile::create(path);
  if (!file) return forward(file);
  EventWriter events(*file);
  show_job(job, lowered, timeline, events);
  return events.finish();
}

}  // namespace rehearse::cli
