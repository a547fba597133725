#include "cli/output/run_events.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/output/event_writer.h"
#include "sim/base/file.h"

namespace rehearse::cli {
namespace {

/// Adds the ops of a rank that take time, each on the thread that `thread_of` names, if any.
template <class ThreadOf>
void show_ops(const program::RankProgram& program, const program::Lowered& lowered, std::size_t run,
              const graph::Timeline& timeline, std::size_t process, TimelineSink& sink,
              ThreadOf thread_of) {
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const OpId op = lowered.op(run, i);
    const graph::OpTimes& times = timeline[op];
    if (times.start == times.end) continue;
    if (const std::optional<std::size_t> thread = thread_of(program.ops[i], i))
      sink.span({lowered.graph.name(op), lowered.graph.category(op), process, *thread,
                 times.start.seconds(), (times.end - times.start).seconds(), op});
  }
}

}  // namespace

void show_job(const program::Program& job, const job::LoweredJob& lowered,
              const graph::Timeline& timeline, TimelineSink& sink) {
  // Threads of a rank: 1 compute, 2 host, 3 memory, 4 sends and receives, then its groups.
  constexpr std::size_t kFirstGroup = 5;
  constexpr const char* kThreads[] = {"compute", "host", "memory", "messages"};
  for (std::size_t run = 0; run < lowered.ranks.size(); ++run) {
    const std::size_t process = run + 1;
    const std::uint32_t r = lowered.ranks[run].index();
    const auto alike = std::ranges::count(lowered.run_of, run);
    sink.process(process, !lowered.folded ? fmt::format("rank {}", r)
                          : lowered.ranks.size() == 1
                              ? fmt::format("all {} ranks", alike)
                              : fmt::format("rank {}, one of {} equivalent ranks", r, alike));
    for (std::size_t t = 0; t < std::size(kThreads); ++t) sink.thread(process, t + 1, kThreads[t]);
    for (std::size_t g = 0; g < job.groups_of[r].size(); ++g)
      sink.thread(process, kFirstGroup + g, "group " + job.groups[job.groups_of[r][g]].name);
    const program::RankProgram& program = job.program(RankId(r));
    show_ops(program, lowered, run, timeline, process, sink,
             [&](const program::ProgramOp& op, std::uint32_t) -> std::size_t {
               switch (op.task) {
                 case program::Task::kCompute: return 1;
                 case program::Task::kHost: return 2;
                 case program::Task::kMemory: return 3;
                 case program::Task::kCollective: return kFirstGroup + op.group;
                 default: return 4;
               }
             });
  }
}

void show_replay(const std::vector<replay::Recording>& recordings,
                 const replay::ReplayGraph& replay, const graph::Timeline& timeline,
                 TimelineSink& sink) {
  // Threads are numbered per process: host threads from 1, streams from 1001, streams that an edit
  // added from 2001; ops of no resource (launches, hand-offs) are waits and not drawn.
  constexpr std::size_t kFirstStream = 1001;
  constexpr std::size_t kFirstAdded = 2001;
  for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
    const replay::Recording& r = recordings[rank];
    const std::size_t recorded = 2 * rank + 1, simulated = 2 * rank + 2;
    const std::uint32_t number = r.rank().info.rank.value_or(static_cast<std::uint32_t>(rank));
    sink.process(recorded, fmt::format("rank {} recorded", number));
    sink.process(simulated, fmt::format("rank {} simulated", number));
    for (std::size_t t = 0; t < r.threads().size(); ++t) {
      const trace::Thread& thread = r.rank().threads[r.threads()[t].id.index()];
      for (const std::size_t process : {recorded, simulated})
        sink.thread(process, t + 1, fmt::format("thread {}", r.name(thread.thread)));
      for (const replay::HostIndex i : r.threads()[t].ops) {
        const trace::HostOp& op = r.host(i);
        sink.span({r.name(op), graph::Category::kHost, recorded, t + 1, op.start.seconds(),
                   op.duration.seconds()});
      }
    }
    for (std::size_t s = 0; s < r.streams().size(); ++s) {
      const replay::Stream& stream = r.streams()[s];
      for (const std::size_t process : {recorded, simulated})
        sink.thread(process, kFirstStream + s,
                    fmt::format("gpu {} stream {}", stream.device, stream.number));
      for (const replay::GpuIndex i : stream.ops) {
        const trace::GpuOp& op = r.gpu(i);
        const OpId simulation =
            replay.lowered.op(rank, replay.program.replays[rank].device_first[i]);
        sink.span({r.name(op), replay.graph().category(simulation), recorded, kFirstStream + s,
                   op.start.seconds(), op.duration.seconds()});
      }
    }
  }
  const graph::Graph& graph = replay.graph();
  for (const replay::BatchRequest& request : replay.program.batch_requests) {
    const OpId wait = replay.lowered.op(request.rank, request.wait);
    const Picoseconds from = timeline[replay.lowered.op(request.rank, request.ask)].end,
                      until = timeline[wait].end;
    if (until > from)
      sink.span({graph.name(wait), graph::Category::kInput, 2 * std::size_t{request.rank} + 2,
                 request.thread + 1, from.seconds(), (until - from).seconds(), wait});
  }
  for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
    const std::size_t process = 2 * rank + 2;
    const program::RankProgram& of = replay.program.programs[rank];
    const std::size_t threads = recordings[rank].threads().size();
    const std::size_t recorded = threads + recordings[rank].streams().size();
    for (std::size_t s = recorded; s < of.streams.size(); ++s)
      sink.thread(process, kFirstAdded + s, replay.program.names[of.streams[s].name]);
    show_ops(of, replay.lowered, rank, timeline, process, sink,
             [&](const program::ProgramOp& op, std::uint32_t i) -> std::optional<std::size_t> {
               if (of.recorded[i].kind == replay::Recorded::Kind::kDevice)
                 return kFirstStream + recordings[rank].stream_of(*of.recorded[i].row);
               if (op.stream < threads) return op.stream + 1;
               const bool added = op.stream < of.streams.size() && of.streams[op.stream].slots == 1;
               return added ? std::optional(kFirstAdded + op.stream) : std::nullopt;
             });
  }
}

Status write_timeline(const std::filesystem::path& path,
                      const std::function<void(TimelineSink&)>& show) {
  if (path.empty()) return {};
  PendingFile file = TRY(PendingFile::create(path));
  EventWriter events(file);
  show(events);
  return events.finish();
}

}  // namespace rehearse::cli
