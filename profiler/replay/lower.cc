#include "profiler/replay/lower.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/core.h>

#include "profiler/replay/backward.h"
#include "profiler/replay/hand_offs.h"
#include "profiler/replay/host_events.h"
#include "profiler/replay/profiler_cost.h"
#include "profiler/replay/recorded_groups.h"
#include "profiler/replay/step_ops.h"
#include "profiler/replay/stream_waits.h"
#include "profiler/replay/transfers.h"
#include "profiler/replay/waits.h"
#include "sim/program/lower.h"
#include "sim/program/rank_builder.h"

namespace rehearse::replay {
namespace {

using program::kNoStream, program::ProgramOp, program::Task, trace::GpuOp;
using Kind = Recorded::Kind;

/// The state that lowering one rank builds up.
struct RankState {
  program::RankBuilder builder;
  std::vector<EventSequence> events;          // per thread
  std::vector<std::vector<OpIndex>> ends_at;  // per thread and event: the op whose end it is
  std::uint32_t first_stream = 0;             // of the device, after those of the threads
  std::vector<HostWait> waits;
  std::vector<HandOff> hand_offs;
  std::vector<BackwardLink> backward_links;
  std::vector<StreamWait> stream_waits;
  /// By CommunicationOp::op: index into RankReplay::communication.
  std::unordered_map<std::uint32_t, std::uint32_t> communication;
  std::vector<std::optional<std::pair<std::size_t, std::size_t>>> start_event;  // of a host op
  Steps steps{StepSource::kSpan, {}};
};

class Lowering {
 public:
  Lowering(const std::vector<Recording>& recordings, const LowerOptions& options)
      : recordings_(recordings), options_(options) {}

  Result<RecordedProgram> run();

 private:
  OpIndex add(Kind kind, std::size_t rank, std::optional<std::uint32_t> row, std::string_view name,
              Task task, Nanoseconds duration, std::uint32_t stream = kNoStream) {
    const bool fitted = kind == Kind::kLaunch || kind == Kind::kWake || kind == Kind::kHandOff ||
                        (kind == Kind::kResidual && options_.residuals == Residuals::kRecurring);
    return states_[rank].builder.add(
        {.name = result_.names.intern(name),
         .task = task,
         .duration = Picoseconds::from(duration),
         .stream = stream,
         .provenance = fitted ? Provenance::kInterpolated : Provenance::kRecorded},
        {kind, row});
  }
  bool communicates(std::size_t rank, HostIndex i) const {
    return recordings_[rank].streams().empty() && states_[rank].communication.contains(i);
  }
  /// Dependencies are between ops of one rank. Ranks wait for each other in collectives alone.
  void edge(std::size_t rank, OpIndex from, OpIndex to) { states_[rank].builder.depend(to, from); }

  void analyse(std::size_t rank);
  void add_threads(std::size_t rank);
  void add_thread(std::size_t rank, std::size_t thread);
  void add_streams(std::size_t rank);
  void add_device_op(std::size_t rank, GpuIndex i);
  void communicate(std::size_t rank, std::uint32_t i, OpIndex at);
  void add_device_edges(std::size_t rank);
  void add_host_waits(std::size_t rank);
  void add_hand_offs(std::size_t rank);
  void add_backward_links(std::size_t rank);
  void match_collectives();

  const std::vector<Recording>& recordings_;
  const LowerOptions& options_;
  RecordedProgram result_;
  std::vector<RankState> states_;
  /// Returns of waiting calls, to be tied to the device when its ops exist: by rank and call.
  std::vector<std::unordered_map<HostIndex, OpIndex>> returns_;
  /// The collective and the index of the member, for each matched op of each rank.
  using Matched = std::pair<std::uint32_t, std::uint32_t>;
  std::vector<std::unordered_map<std::uint32_t, Matched>> matched_;
  RecordedGroups groups_{result_};
  /// Device ops whose host does not wait for their end: the part the host waits for.
  std::vector<std::unordered_map<GpuIndex, OpIndex>> heads_;
};

void Lowering::analyse(std::size_t rank) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  RankReplay& out = result_.replays[rank];
  for (const HostThread& thread : r.threads()) state.events.push_back(host_events(r, thread));
  state.start_event = start_events(r, state.events);
  state.waits = find_host_waits(r);
  out.constants = fit_constants(r, state.waits);
  if (!options_.host_waits) state.waits.clear();
  if (options_.hand_offs) state.hand_offs = find_hand_offs(r, state.events);
  if (options_.backward_links) state.backward_links = find_backward_links(r, state.events);
  state.stream_waits = find_stream_waits(
      r, out.constants, {options_.stream_waits_calls, options_.stream_waits_timing});
  out.communication = find_communication(r);
  for (std::uint32_t k = 0; k < out.communication.size(); ++k)
    state.communication.emplace(out.communication[k].op, k);
  for (const HostWait& wait : state.waits)
    if (wait.before_end) heads_[rank].emplace(wait.ops.front(), 0);
  out.host_waits = state.waits.size();
  out.hand_offs = state.hand_offs.size();
  out.backward_links = state.backward_links.size();
  for (const StreamWait& wait : state.stream_waits)
    ++out.stream_waits[static_cast<std::size_t>(wait.evidence)];
  out.span = r.last() - r.first();
  state.steps = find_steps(r);
}

void Lowering::add_threads(std::size_t rank) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  for (std::size_t t = 0; t < r.threads().size(); ++t) {
    const trace::Thread& thread = r.rank().threads[r.threads()[t].id.index()];
    state.builder.add(program::Stream{
        .name = result_.names.intern(fmt::format("rank {} thread {}", rank, r.name(thread.thread))),
        .kind = program::Stream::Kind::kHost,
        .number = static_cast<std::uint32_t>(t)});
  }
  result_.replays[rank].host_last.resize(r.rank().host_ops.size());
  for (std::size_t t = 0; t < r.threads().size(); ++t) add_thread(rank, t);
}

/// One op for each stretch between two events; in place of a call that waits, its own cost and its
/// return; in place of a silence that another thread filled, nothing but the order.
void Lowering::add_thread(std::size_t rank, std::size_t t) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  const EventSequence& sequence = state.events[t];
  const auto stream = static_cast<std::uint32_t>(t);
  const Constants& constants = result_.replays[rank].constants;
  const ProfilerCost cost = profiler_cost(r.rank().info);

  std::vector<char> silent(sequence.events.size(), 0);  // the time after this event is no work
  std::vector<char> joins(sequence.events.size(), 0);   // another thread decides this event
  for (const HandOff& h : state.hand_offs) {
    if (h.owner == t && h.back) silent[*h.back - 1] = joins[*h.back] = 1;
    if (h.worker == t) {
      joins[h.first] = 1;
      if (h.first > 0) silent[h.first - 1] = 1;
    }
  }
  const bool handed_first = joins[0];
  for (const BackwardLink& link : state.backward_links)
    if (link.backward == t) joins[link.to] = 1;
  std::unordered_map<HostIndex, const HostWait*> wait_of;
  for (const HostWait& wait : state.waits) wait_of.emplace(wait.call, &wait);

  std::vector<OpIndex>& ends_at = state.ends_at.emplace_back();
  ends_at.reserve(sequence.events.size());
  // A worker whose first work was handed to it starts when its owner hands it over.
  const Nanoseconds first = handed_first ? Nanoseconds(0) : sequence.events.front().time;
  OpIndex last =
      add(Kind::kInitial, rank, std::nullopt, "before the first event", Task::kDelay, first);
  if (joins[0])
    last = add(Kind::kHandOff, rank, std::nullopt, "work handed over", Task::kMark, Nanoseconds(0),
               stream);
  ends_at.push_back(last);
  const auto follow = [&](OpIndex op) {
    edge(rank, last, op);
    last = op;
  };
  for (std::size_t k = 0; k + 1 < sequence.events.size(); ++k) {
    const HostEvent& event = sequence.events[k];
    const HostEvent& next = sequence.events[k + 1];
    const Nanoseconds length = next.time - event.time;
    const auto wait = event.is_start ? wait_of.find(event.op) : wait_of.end();
    if (wait != wait_of.end()) {
      const Nanoseconds own = std::min(length, constants.own(call_kind(r, event.op)));
      const Nanoseconds rest = std::min(length - own, unexplained(r, *wait->second, constants));
      const std::string_view name = r.name(r.host(event.op));
      follow(add(Kind::kCall, rank, event.op, name, host_task(r, event.op), own, stream));
      follow(add(Kind::kReturn, rank, event.op, name, Task::kMark, Nanoseconds(0), stream));
      returns_[rank].emplace(event.op, last);
      if (rest > Nanoseconds(0)) {
        follow(add(Kind::kUnexplained, rank, event.op, "unexplained wait", Task::kDelay, rest,
                   stream));
        result_.replays[rank].unexplained_waits += rest;
      }
    } else if (event.is_start && communicates(rank, event.op)) {
      follow(add(Kind::kHost, rank, event.op, r.name(r.host(event.op)), Task::kCollective, length,
                 stream));
      communicate(rank, event.op, last);
    } else if (length > Nanoseconds(0) && !silent[k]) {
      const auto innermost = sequence.innermost[k];
      // Half of the cost of recording an op comes after its start, half after its end.
      const Nanoseconds recording = std::min(length, cost.of(r.host(event.op).kind) * 0.5);
      if (length > recording)
        follow(add(Kind::kHost, rank, innermost,
                   innermost ? r.name(r.host(*innermost)) : std::string_view("between ops"),
                   host_task(r, innermost), length - recording, stream));
      if (recording > Nanoseconds(0))
        follow(add(Kind::kHost, rank, innermost, "recording", Task::kProfiler, recording, stream));
    }
    if (joins[k + 1])
      follow(add(Kind::kHandOff, rank, std::nullopt, "work handed over", Task::kMark,
                 Nanoseconds(0), stream));
    ends_at.push_back(last);
    if (!next.is_start) result_.replays[rank].host_last[next.op] = last;
  }
}

void Lowering::add_streams(std::size_t rank) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  RankReplay& out = result_.replays[rank];
  // A recording that ends before its first kernel has calls without device ops.
  out.has_device = !r.rank().gpu_ops.empty() ||
                   std::ranges::any_of(r.rank().host_ops, [](const trace::HostOp& op) {
                     return op.correlation.has_value();
                   });
  out.device_first.assign(r.rank().gpu_ops.size(), 0);
  out.device_last.assign(r.rank().gpu_ops.size(), 0);
  state.first_stream = static_cast<std::uint32_t>(r.threads().size());
  for (std::size_t s = 0; s < r.streams().size(); ++s) {
    const Stream& stream = r.streams()[s];
    state.builder.add(
        program::Stream{.name = result_.names.intern(fmt::format("rank {} gpu {} stream {}", rank,
                                                                 stream.device, stream.number)),
                        .number = static_cast<std::uint32_t>(s),
                        // Without stream order, the ablation, a stream is as wide as its work.
                        .slots = options_.stream_order ? 1 : 1U << 20,
                        .turnaround = Picoseconds::from(out.constants.queue_gap.value)});
  }
  for (const Stream& stream : r.streams())
    for (const GpuIndex i : stream.ops) add_device_op(rank, i);
}

void Lowering::add_device_op(std::size_t rank, GpuIndex i) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  RankReplay& out = result_.replays[rank];
  const GpuOp& op = r.gpu(i);
  const auto stream = state.first_stream + static_cast<std::uint32_t>(r.stream_of(i));
  const std::string_view name = r.name(op);
  const Task task = state.communication.contains(i)      ? Task::kCollective
                    : op.kind == trace::GpuKind::kKernel ? Task::kCompute
                                                         : Task::kMemory;
  const auto head = heads_[rank].find(i);
  if (head != heads_[rank].end()) {
    // A pageable copy to the device whose call returns before its end.
    const Nanoseconds lead = std::min(op.duration, out.constants.copy_lead.value);
    out.device_first[i] = add(Kind::kDevice, rank, i, name, task, op.duration - lead, stream);
    out.device_last[i] = add(Kind::kDevice, rank, i, name, task, lead);
    edge(rank, out.device_first[i], out.device_last[i]);
    head->second = out.device_first[i];
    return;
  }
  out.device_first[i] = out.device_last[i] =
      add(Kind::kDevice, rank, i, name, task, op.duration, stream);
  if (task == Task::kCollective) communicate(rank, i, out.device_last[i]);
}

/// A collective of one recorded rank takes its recorded time. If several ranks were recorded, its
/// time is counted from the arrival of the last rank.
void Lowering::communicate(std::size_t rank, std::uint32_t i, OpIndex at) {
  const auto communication = [&](std::size_t of, std::uint32_t row) -> const CommunicationOp& {
    return result_.replays[of].communication[states_[of].communication.at(row)];
  };
  const CommunicationOp& what = communication(rank, i);
  ProgramOp& op = states_[rank].builder.op(at);
  std::optional<std::uint32_t> ranks;  // that run a collective of threads together
  const auto found = matched_[rank].find(i);
  if (found == matched_[rank].end()) {
    op.group = groups_.add(rank, {RankId(rank)}, recordings_[rank], what);
  } else {
    const auto [number, member] = found->second;
    const MatchedCollective& collective = result_.collectives.matched[number];
    op.duration = Picoseconds::from(collective.members[member].transfer);
    op.tag = number;
    std::vector<RankId> members;
    for (const auto& m : collective.members) members.emplace_back(m.rank);
    if (what.of_host) ranks = static_cast<std::uint32_t>(members.size());
    const auto& lead = collective.members.front();
    op.group = groups_.add(rank, std::move(members), recordings_[lead.rank],
                           communication(lead.rank, lead.op));
  }
  // The time of one rank's thread includes waiting for other ranks: its bytes explain nothing.
  const std::optional<SizedCollective> sized =
      what.of_host && !ranks ? std::nullopt : size_of(recordings_[rank], what, ranks);
  op.sized = sized.has_value();
  if (what.what) op.collective = what.what->kind;
  if (sized) op.bytes = sized->bytes;
}

/// Ties each device op to what decides its start: its launch, its stream, other streams, the state
/// before the recording. What none of them explains is a delay. Requested delays are kept: they come
/// after everything else that the op waits for.
void Lowering::add_device_edges(std::size_t rank) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  RankReplay& out = result_.replays[rank];
  std::vector<std::vector<GpuIndex>> waits_for(r.rank().gpu_ops.size());
  for (const StreamWait& wait : state.stream_waits) waits_for[wait.after].push_back(wait.before);
  std::vector<Nanoseconds> late(r.rank().gpu_ops.size(), Nanoseconds(0));
  std::vector<std::vector<OpIndex>> before(r.rank().gpu_ops.size());
  std::vector<std::optional<GpuIndex>> followed;
  if (r.threads().empty()) followed = find_followed(r);

  for (const Stream& stream : r.streams())
    for (std::size_t k = 0; k < stream.ops.size(); ++k) {
      const GpuIndex i = stream.ops[k];
      const GpuOp& op = r.gpu(i);
      Nanoseconds bound(INT64_MIN);  // when the recorded times of its `before` would let it start
      const auto need = [&](OpIndex from, Nanoseconds at) {
        before[i].push_back(from);
        bound = std::max(bound, at);
      };
      const auto delay = [&](Kind kind, std::string_view name, Task task, Nanoseconds length,
                             std::optional<OpIndex> from) {
        const OpIndex id = add(kind, rank, i, name, task, length);
        if (from) edge(rank, *from, id);
        return id;
      };

      const std::optional<GpuIndex> previous =
          k > 0 ? std::optional(stream.ops[k - 1]) : std::nullopt;
      if (previous && options_.stream_order)
        need(out.device_last[*previous], r.gpu(*previous).end() + out.constants.queue_gap.value);
      for (const GpuIndex other : waits_for[i]) need(out.device_last[other], r.gpu(other).end());

      const auto call = r.launcher(i);
      const auto event = call ? state.start_event[*call] : std::nullopt;
      if (!event) {
        // Launched before the recording: the first keeps its place, the others their distance.
        const bool no_host = r.threads().empty();
        const std::optional<GpuIndex> from = no_host ? followed[i] : previous;
        const Nanoseconds since =
            from ? std::max(Nanoseconds(0), op.start - r.gpu(*from).end()) : op.start;
        need(
            delay(Kind::kInitial, no_host && from ? "between ops" : "launched before the recording",
                  Task::kDelay, since, from ? std::optional(out.device_last[*from]) : std::nullopt),
            op.start);
      } else {
        const GpuIndex first = r.launched(*call).front();
        const bool kernel = op.kind == trace::GpuKind::kKernel;
        const Nanoseconds launch =
            (kernel ? out.constants.launch : out.constants.copy_launch).value;
        const OpIndex called = state.ends_at[event->first][event->second];
        const Nanoseconds called_at = r.host(*call).start;
        const bool follows = previous && r.launcher(*previous) == call;
        if (i == first) {
          need(delay(Kind::kLaunch, "launch", Task::kLaunch, launch, called), called_at + launch);
        } else if (follows) {
          // One of many ops of one launch (a graph): they keep the distances they were recorded at.
          const Nanoseconds since = op.start - r.gpu(*previous).end();
          if (since > out.constants.queue_gap.value)
            need(delay(Kind::kLaunch, "within a graph", Task::kLaunch, since,
                       out.device_last[*previous]),
                 op.start);
        } else {
          const Nanoseconds offset = std::max(Nanoseconds(0), op.start - r.gpu(first).start);
          need(delay(Kind::kLaunch, "within a graph", Task::kLaunch, launch + offset, called),
               called_at + launch + offset);
        }
        if (k == 0 && op.start - bound > kUnseenBacklog) {
          out.unseen_backlog = std::max(out.unseen_backlog, op.start - bound);
          need(delay(Kind::kUnexplained, "unseen backlog", Task::kDelay, op.start, std::nullopt),
               op.start);
        }
      }

      late[i] = std::max(Nanoseconds(0), op.start - bound);
    }

  out.residual = time_late(r, late);
  out.delayed = find_delayed(r, state.steps, late);
  std::vector<Nanoseconds> kept(late.size(), Nanoseconds(0));
  if (options_.residuals == Residuals::kAll) kept = late;
  if (options_.residuals == Residuals::kRecurring)
    for (const DelayedOp& op : out.delayed)
      for (const GpuIndex i : op.ops) kept[i] = op.recurring;
  for (GpuIndex i = 0; i < before.size(); ++i) {
    OpIndex target = out.device_first[i];
    if (kept[i] > Nanoseconds(0)) {
      target = add(Kind::kResidual, rank, i, "unexplained delay", Task::kDelay, kept[i]);
      edge(rank, target, out.device_first[i]);
    }
    for (const OpIndex from : before[i]) edge(rank, from, target);
  }
}

void Lowering::add_host_waits(std::size_t rank) {
  const Recording& r = recordings_[rank];
  const RankReplay& out = result_.replays[rank];
  for (const HostWait& wait : states_[rank].waits) {
    const auto found = returns_[rank].find(wait.call);
    if (found == returns_[rank].end()) continue;  // inside another call that waits
    if (wait.before_end) {
      edge(rank, heads_[rank].at(wait.ops.front()), found->second);
      continue;
    }
    if (wait.ops.empty()) continue;
    const OpIndex wake = add(Kind::kWake, rank, wait.call, "wake", Task::kMark,
                             out.constants.wake_of(call_kind(r, wait.call)));
    for (const GpuIndex op : wait.ops) edge(rank, out.device_last[op], wake);
    edge(rank, wake, found->second);
  }
}

/// owner's last mark -> worker's first; worker's last -> owner's next.
void Lowering::add_hand_offs(std::size_t rank) {
  const RankState& state = states_[rank];
  const auto hand_over = [&](std::size_t from_thread, std::size_t from, std::size_t to_thread,
                             std::size_t to) {
    const Nanoseconds length =
        state.events[to_thread].events[to].time - state.events[from_thread].events[from].time;
    const OpIndex id = add(Kind::kHandOff, rank, std::nullopt, "hand-off", Task::kMark,
                           std::max(length, Nanoseconds(0)));
    edge(rank, state.ends_at[from_thread][from], id);
    edge(rank, id, state.ends_at[to_thread][to]);
  };
  for (const HandOff& h : state.hand_offs) {
    hand_over(h.owner, h.gap, h.worker, h.first);
    if (h.back) hand_over(h.worker, h.last, h.owner, *h.back);
  }
}

void Lowering::add_backward_links(std::size_t rank) {
  const RankState& state = states_[rank];
  for (const BackwardLink& link : state.backward_links)
    edge(rank, state.ends_at[link.forward][link.from], state.ends_at[link.backward][link.to]);
}

void Lowering::match_collectives() {
  std::vector<std::vector<CommunicationOp>> communication;
  for (const RankReplay& rank : result_.replays) communication.push_back(rank.communication);
  result_.collectives = replay::match_collectives(recordings_, communication, options_.hidden_rank);
  for (std::uint32_t c = 0; c < result_.collectives.matched.size(); ++c) {
    const auto& members = result_.collectives.matched[c].members;
    for (std::uint32_t m = 0; m < members.size(); ++m)
      matched_[members[m].rank].emplace(members[m].op, Matched{c, m});
  }
}

Result<RecordedProgram> Lowering::run() {
  const std::size_t n = recordings_.size();
  states_.resize(n);
  returns_.resize(n);
  matched_.resize(n);
  heads_.resize(n);
  result_.replays.resize(n);
  result_.groups_of.resize(n);
  for (std::size_t rank = 0; rank < n; ++rank) {
    const Recording& r = recordings_[rank];
    if (!r.rank().info.timed)
      return fail_in(r.rank().info.source, "has no times, so it cannot be replayed",
                     "a timed recording (Kineto, Nsight Systems) of the run",
                     "give both: they are joined");
    if (r.threads().empty() && r.streams().empty())
      return fail_in(r.rank().info.source, "contains nothing to replay");
    analyse(rank);
  }
  if (options_.collectives && n > 1) match_collectives();
  for (std::size_t rank = 0; rank < n; ++rank) add_threads(rank);
  for (std::size_t rank = 0; rank < n; ++rank) add_streams(rank);
  for (std::size_t rank = 0; rank < n; ++rank) {
    add_device_edges(rank);
    add_host_waits(rank);
    add_hand_offs(rank);
    add_backward_links(rank);
  }
  for (std::size_t rank = 0; rank < n; ++rank) {
    add_steps(recordings_[rank], std::move(states_[rank].steps), states_[rank].events,
              states_[rank].ends_at, result_.replays[rank]);
    result_.programs.push_back(std::move(states_[rank].builder).build());
    result_.program_of.push_back(static_cast<std::uint32_t>(rank));
  }
  return std::move(result_);
}

}  // namespace

Result<RecordedProgram> lower(const std::vector<Recording>& recordings,
                              const LowerOptions& options) {
  return Lowering(recordings, options).run();
}

Result<ReplayGraph> to_graph(RecordedProgram program) {
  program::Lowered lowered = TRY(program::lower(program));
  return ReplayGraph{std::move(program), std::move(lowered)};
}

Result<ReplayGraph> to_graph(const std::vector<Recording>& recordings) {
  return to_graph(TRY(lower(recordings, {})));
}

}  // namespace rehearse::replay
