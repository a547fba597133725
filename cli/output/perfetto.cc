#include "cli/output/perfetto.h"

#include <fmt/format.h>

#include "cli/output/event_writer.h"
#include "sim/base/file.h"

namespace rehearse::cli {

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
    for (replay::OpIndex i = 0; i < of.ops.size(); ++i) {
      const OpId op = replay.lowered.op(rank, i);
      const graph::OpTimes& times = timeline[op];
      if (times.start == times.end) continue;
      std::optional<std::size_t> thread;
      if (of.recorded[i].kind == replay::Recorded::Kind::kDevice)
        thread = kFirstStream + recordings[rank].stream_of(*of.recorded[i].row);
      else if (const std::uint32_t stream = of.ops[i].stream; stream < threads)
        thread = stream + 1;
      else if (stream < of.streams.size() && of.streams[stream].slots == 1)
        thread = kFirstAdded + stream;
      if (thread)
        sink.span({graph.name(op), graph.category(op), process, *thread, times.start.seconds(),
                   (times.end - times.start).seconds(), op});
    }
  }
}

Status write_perfetto(const std::filesystem::path& path,
                      const std::vector<replay::Recording>& recordings,
                      const replay::ReplayGraph& replay, const graph::Timeline& timeline) {
  Result<PendingFile> file = PendingFile::create(path);
  if (!file) return forward(file);
  EventWriter events(*file);
  show_replay(recordings, replay, timeline, events);
  return events.finish();
}

}  // namespace rehearse::cli
