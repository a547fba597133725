#include "cli/output/perfetto.h"

#include <fmt/format.h>

#include "cli/output/event_writer.h"
#include "sim/base/file.h"

namespace rehearse::cli {

void show_replay(const std::vector<replay::Recording>& recordings,
                 const replay::ReplayGraph& replay, const graph::Timeline& timeline,
                 TimelineSink& sink) {
  // Threads are numbered per process: host threads from 1, streams from 1001, what an edit added to
  // the first rank from 2001; ops of no resource (launches, hand-offs) are waits and not drawn.
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
        const OpId simulation = replay.ranks[rank].device_first[i];
        sink.span({r.name(op), replay.graph.category(simulation), recorded, kFirstStream + s,
                   op.start.seconds(), op.duration.seconds()});
      }
    }
  }
  const std::size_t own = replay.thread_of_server.size();
  std::vector<bool> drawn(replay.graph.servers().size(), replay.batch_requests.empty());
  for (std::size_t i = 0; i < replay.origins.size(); ++i)  // stages of a pipeline are not
    if (const auto server = replay.graph.demand(OpId(i)).server;
        server && replay.origins[i].kind == replay::Origin::Kind::kAdded)
      drawn[server->index()] = true;
  for (std::size_t s = own; s < drawn.size(); ++s)
    if (drawn[s])
      sink.thread(2, kFirstAdded + s, replay.graph.names()[replay.graph.servers()[s].name]);
  for (const replay::BatchRequest& batch_request : replay.batch_requests) {
    const Picoseconds from = timeline[batch_request.ask].end,
                      until = timeline[batch_request.wait].end;
    if (until > from)
      sink.span({replay.graph.name(batch_request.wait), graph::Category::kInput,
                 2 * std::size_t{batch_request.rank} + 2, batch_request.thread + 1, from.seconds(),
                 (until - from).seconds(), batch_request.wait});
  }
  for (std::size_t i = 0; i < replay.origins.size(); ++i) {
    const OpId op(i);
    const replay::Origin& origin = replay.origins[i];
    const graph::OpTimes& times = timeline[op];
    if (times.start == times.end) continue;
    std::optional<std::size_t> thread;
    if (origin.kind == replay::Origin::Kind::kDevice) {
      thread = kFirstStream + recordings[origin.rank].stream_of(*origin.row);
    } else if (const auto server = replay.graph.demand(op).server;
               server && server->index() < replay.thread_of_server.size()) {
      thread = replay.thread_of_server[server->index()].value_or(0) + 1;
    } else if (server && origin.kind == replay::Origin::Kind::kAdded) {
      thread = kFirstAdded + server->index();
    }
    if (thread)
      sink.span({replay.graph.name(op), replay.graph.category(op), 2 * origin.rank + 2, *thread,
                 times.start.seconds(), (times.end - times.start).seconds(), op});
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
