#include "profiler/replay/lower.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/core.h>

#include "profiler/replay/backward.h"
#include "profiler/replay/host_events.h"
#include "profiler/replay/profiler_cost.h"
#include "profiler/replay/step_ops.h"
#include "profiler/replay/waits.h"

namespace rehearse::replay {
namespace {

using graph::Category;
using graph::Demand;
using graph::GraphBuilder;
using graph::Op;
using trace::GpuOp;
using trace::HostKind;
using Kind = Origin::Kind;

/// The state that lowering one rank builds up.
struct RankState {
  std::vector<EventSequence> events;       // per thread
  std::vector<std::vector<OpId>> ends_at;  // per thread and event: the op whose end it is
  std::vector<DemandId> thread_demand;     // per thread
  std::vector<DemandId> stream_demand;     // per stream
  std::vector<HostWait> waits;
  std::vector<HandOff> hand_offs;
  std::vector<BackwardLink> backward_links;
  std::vector<StreamWait> stream_waits;
  std::vector<char> communicates;                                               // by device op
  std::vector<std::optional<std::pair<std::size_t, std::size_t>>> start_event;  // of a host op
};

class Lowering {
 public:
  Lowering(const std::vector<Recording>& recordings, const LowerOptions& options)
      : recordings_(recordings), options_(options) {}

  Result<ReplayGraph> run();

 private:
  OpId add(Kind kind, std::size_t rank, std::optional<std::uint32_t> row, std::string_view name,
           Category category, Nanoseconds duration, DemandId demand = DemandId(0)) {
    result_.origins.push_back({kind, static_cast<std::uint32_t>(rank), row});
    return builder_.add(Op{.name = builder_.intern(name),
                           .category = category,
                           .duration = Picoseconds::from(duration),
                           .demand = demand});
  }
  void edge(OpId from, OpId to) { builder_.add_edge(from, to); }

  void analyse(std::size_t rank);
  void add_threads(std::size_t rank);
  void add_thread(std::size_t rank, std::size_t thread);
  void add_streams(std::size_t rank);
  void add_device_op(std::size_t rank, const Stream& stream, std::size_t k);
  void add_device_edges(std::size_t rank);
  void add_host_waits(std::size_t rank);
  void add_hand_offs(std::size_t rank);
  void add_backward_links(std::size_t rank);
  void add_collectives();

  Category host_category(const Recording& r, std::optional<HostIndex> innermost) const;

  const std::vector<Recording>& recordings_;
  const LowerOptions& options_;
  GraphBuilder builder_;
  ReplayGraph result_;
  std::vector<RankState> states_;
  /// Returns of waiting calls, to be tied to the device when its ops exist: by rank and call.
  std::vector<std::unordered_map<HostIndex, OpId>> returns_;
  /// Transfers of matched collectives: by rank and device op.
  std::vector<std::unordered_map<GpuIndex, Nanoseconds>> transfers_;
  /// Device ops whose host does not wait for their end: the part the host waits for.
  std::vector<std::unordered_map<GpuIndex, OpId>> heads_;
};

void Lowering::analyse(std::size_t rank) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  RankGraph& out = result_.ranks[rank];
  for (const HostThread& thread : r.threads()) state.events.push_back(host_events(r, thread));
  state.start_event.resize(r.rank().host_ops.size());
  for (std::size_t t = 0; t < state.events.size(); ++t)
    for (std::size_t k = 0; k < state.events[t].events.size(); ++k)
      if (const HostEvent& event = state.events[t].events[k]; event.is_start)
        state.start_event[event.op] = {t, k};
  state.waits = find_host_waits(r);
  out.constants = fit_constants(r, state.waits);
  if (!options_.host_waits) state.waits.clear();
  if (options_.hand_offs) state.hand_offs = find_hand_offs(r, state.events);
  if (options_.backward_links) state.backward_links = find_backward_links(r, state.events);
  state.stream_waits = find_stream_waits(
      r, out.constants, {options_.stream_waits_calls, options_.stream_waits_timing});
  out.communication = find_communication(r);
  state.communicates.assign(r.rank().gpu_ops.size(), 0);
  for (const CommunicationOp& op : out.communication) state.communicates[op.op] = 1;
  for (const HostWait& wait : state.waits)
    if (wait.before_end) heads_[rank].emplace(wait.ops.front(), OpId(0));
  out.host_waits = state.waits.size();
  out.hand_offs = state.hand_offs.size();
  out.backward_links = state.backward_links.size();
  for (const StreamWait& wait : state.stream_waits)
    ++out.stream_waits[static_cast<std::size_t>(wait.evidence)];
  out.span = r.last() - r.first();
}

Category Lowering::host_category(const Recording& r, std::optional<HostIndex> innermost) const {
  for (std::optional<HostIndex> at = innermost; at; at = r.parent(*at)) {
    if (r.host(*at).kind == HostKind::kOverhead) return Category::kProfiler;
    if (r.name(r.host(*at)).starts_with("enumerate(DataLoader)")) return Category::kInput;
  }
  return Category::kHost;
}

void Lowering::add_threads(std::size_t rank) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  for (std::size_t t = 0; t < r.threads().size(); ++t) {
    const trace::Thread& thread = r.rank().threads[r.threads()[t].id.index()];
    const NameId name =
        builder_.intern(fmt::format("rank {} thread {}", rank, r.name(thread.thread)));
    state.thread_demand.push_back(
        builder_.add(Demand{.server = builder_.add(graph::Server{.name = name})}));
    result_.thread_of_server.emplace_back(t);
  }
  result_.ranks[rank].host_last.resize(r.rank().host_ops.size());
  for (std::size_t t = 0; t < r.threads().size(); ++t) add_thread(rank, t);
}

/// One op for each stretch between two events; in place of a call that waits, its own cost and its
/// return; in place of a silence that another thread filled, nothing but the order.
void Lowering::add_thread(std::size_t rank, std::size_t t) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  const EventSequence& sequence = state.events[t];
  const DemandId demand = state.thread_demand[t];
  const Constants& constants = result_.ranks[rank].constants;
  const ProfilerCost cost = profiler_cost(r.rank().info);

  std::vector<char> silent(sequence.events.size(), 0);  // the stretch behind this event is no work
  std::vector<char> joins(sequence.events.size(), 0);   // another thread decides this event
  for (const HandOff& h : state.hand_offs) {
    if (h.owner == t) silent[h.gap] = joins[h.gap + 1] = 1;
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

  std::vector<OpId>& ends_at = state.ends_at.emplace_back();
  ends_at.reserve(sequence.events.size());
  // A worker whose first work was handed to it starts when the owner says so.
  const Nanoseconds first = handed_first ? Nanoseconds(0) : sequence.events.front().time;
  OpId last =
      add(Kind::kInitial, rank, std::nullopt, "before the first event", Category::kDelay, first);
  if (joins[0])
    last = add(Kind::kHandOff, rank, std::nullopt, "work handed over", Category::kSynchronization,
               Nanoseconds(0), demand);
  ends_at.push_back(last);
  const auto follow = [&](OpId op) {
    edge(last, op);
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
      follow(add(Kind::kCall, rank, event.op, name, host_category(r, event.op), own, demand));
      follow(add(Kind::kReturn, rank, event.op, name, Category::kSynchronization, Nanoseconds(0),
                 demand));
      returns_[rank].emplace(event.op, last);
      if (rest > Nanoseconds(0)) {
        follow(add(Kind::kUnexplained, rank, event.op, "unexplained wait", Category::kDelay, rest,
                   demand));
        result_.ranks[rank].unexplained_waits += rest;
      }
    } else if (length > Nanoseconds(0) && !silent[k]) {
      const auto innermost = sequence.innermost[k];
      // Half of what recording an op cost fell behind its start, half behind its end.
      const Nanoseconds recording = std::min(length, cost.of(r.host(event.op).kind) * 0.5);
      if (length > recording)
        follow(add(Kind::kHost, rank, innermost,
                   innermost ? r.name(r.host(*innermost)) : std::string_view("between ops"),
                   host_category(r, innermost), length - recording, demand));
      if (recording > Nanoseconds(0))
        follow(
            add(Kind::kHost, rank, innermost, "recording", Category::kProfiler, recording, demand));
    }
    if (joins[k + 1])
      follow(add(Kind::kHandOff, rank, std::nullopt, "work handed over", Category::kSynchronization,
                 Nanoseconds(0), demand));
    ends_at.push_back(last);
    if (!next.is_start) result_.ranks[rank].host_last[next.op] = last;
  }
}

void Lowering::add_streams(std::size_t rank) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  RankGraph& out = result_.ranks[rank];
  out.device_first.assign(r.rank().gpu_ops.size(), OpId(0));
  out.device_last.assign(r.rank().gpu_ops.size(), OpId(0));
  for (const Stream& stream : r.streams()) {
    result_.thread_of_server.emplace_back(std::nullopt);
    const NameId name = builder_.intern(
        fmt::format("rank {} gpu {} stream {}", rank, stream.device, stream.number));
    const Picoseconds turnaround = Picoseconds::from(out.constants.queue_gap.value);
    // Without stream order, the ablation, a stream is as wide as its work.
    const std::uint32_t slots = options_.stream_order ? 1 : 1U << 20;
    state.stream_demand.push_back(
        builder_.add(Demand{.server = builder_.add(graph::Server{
                                .name = name, .slots = slots, .turnaround = turnaround})}));
  }
  for (const Stream& stream : r.streams())
    for (std::size_t k = 0; k < stream.ops.size(); ++k) add_device_op(rank, stream, k);
}

void Lowering::add_device_op(std::size_t rank, const Stream& stream, std::size_t k) {
  const Recording& r = recordings_[rank];
  RankGraph& out = result_.ranks[rank];
  const GpuIndex i = stream.ops[k];
  const GpuOp& op = r.gpu(i);
  const DemandId demand = states_[rank].stream_demand[r.stream_of(i)];
  const std::string_view name = r.name(op);

  const Category category = states_[rank].communicates[i]        ? Category::kCommunication
                            : op.kind == trace::GpuKind::kKernel ? Category::kCompute
                                                                 : Category::kMemory;
  if (const auto transfer = transfers_[rank].find(i); transfer != transfers_[rank].end()) {
    out.device_first[i] = add(Kind::kArrival, rank, i, name, category, Nanoseconds(0));
    out.device_last[i] = add(Kind::kDevice, rank, i, name, category, transfer->second, demand);
    return;  // tied together in add_collectives
  }
  const auto head = heads_[rank].find(i);
  if (head != heads_[rank].end()) {
    // A pageable copy to the device whose call returns before its end.
    const Nanoseconds lead = std::min(op.duration, out.constants.copy_lead.value);
    out.device_first[i] = add(Kind::kDevice, rank, i, name, category, op.duration - lead, demand);
    out.device_last[i] = add(Kind::kDevice, rank, i, name, category, lead);
    edge(out.device_first[i], out.device_last[i]);
    head->second = out.device_first[i];
    return;
  }
  out.device_first[i] = out.device_last[i] =
      add(Kind::kDevice, rank, i, name, category, op.duration, demand);
}

/// Ties each device op to what decides its start: its launch, its stream, other streams, the state
/// before the recording. Adds up what none of them explains.
void Lowering::add_device_edges(std::size_t rank) {
  const Recording& r = recordings_[rank];
  RankState& state = states_[rank];
  RankGraph& out = result_.ranks[rank];
  std::vector<std::vector<GpuIndex>> waits_for(r.rank().gpu_ops.size());
  for (const StreamWait& wait : state.stream_waits) waits_for[wait.after].push_back(wait.before);

  for (const Stream& stream : r.streams())
    for (std::size_t k = 0; k < stream.ops.size(); ++k) {
      const GpuIndex i = stream.ops[k];
      const GpuOp& op = r.gpu(i);
      std::vector<OpId> before;
      Nanoseconds bound(INT64_MIN);  // when the recorded times of `before` would let it start
      const auto need = [&](OpId from, Nanoseconds at) {
        before.push_back(from);
        bound = std::max(bound, at);
      };
      const auto delay = [&](Kind kind, std::string_view name, Category category,
                             Nanoseconds length, std::optional<OpId> from) {
        const OpId id = add(kind, rank, i, name, category, length);
        if (from) edge(*from, id);
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
        const Nanoseconds since =
            previous ? std::max(Nanoseconds(0), op.start - r.gpu(*previous).end()) : op.start;
        need(delay(Kind::kInitial, "launched before the recording", Category::kDelay, since,
                   previous ? std::optional(out.device_last[*previous]) : std::nullopt),
             op.start);
      } else {
        const GpuIndex first = r.launched(*call).front();
        const bool kernel = op.kind == trace::GpuKind::kKernel;
        const Nanoseconds launch =
            (kernel ? out.constants.launch : out.constants.copy_launch).value;
        const OpId called = state.ends_at[event->first][event->second];
        const Nanoseconds called_at = r.host(*call).start;
        const bool follows = previous && r.launcher(*previous) == call;
        if (i == first) {
          need(delay(Kind::kLaunch, "launch", Category::kLaunch, launch, called),
               called_at + launch);
        } else if (follows) {
          // One of many ops of one launch (a graph): they keep the distances they were recorded at.
          const Nanoseconds since = op.start - r.gpu(*previous).end();
          if (since > out.constants.queue_gap.value)
            need(delay(Kind::kLaunch, "within a graph", Category::kLaunch, since,
                       out.device_last[*previous]),
                 op.start);
        } else {
          const Nanoseconds offset = std::max(Nanoseconds(0), op.start - r.gpu(first).start);
          need(delay(Kind::kLaunch, "within a graph", Category::kLaunch, launch + offset, called),
               called_at + launch + offset);
        }
        if (k == 0 && op.start - bound > kUnseenBacklog) {
          out.unseen_backlog = std::max(out.unseen_backlog, op.start - bound);
          need(
              delay(Kind::kUnexplained, "unseen backlog", Category::kDelay, op.start, std::nullopt),
              op.start);
        }
      }

      const Nanoseconds unexplained = op.start - bound;
      if (unexplained > Nanoseconds(0)) out.residual += unexplained;
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      OpId target = out.device_first[i];
      if (options_.residuals && unexplained > Nanoseconds(0)) {
        const OpId late = delay(Kind::kResidual, "unexplained delay", Category::kDelay, unexplained,
                                std::nullopt);
        edge(late, target);
        target = late;
      }
      for (const OpId from : before) edge(from, target);
    }
}

void Lowering::add_host_waits(std::size_t rank) {
  const Recording& r = recordings_[rank];
  const RankGraph& out = result_.ranks[rank];
  for (const HostWait& wait : states_[rank].waits) {
    const auto found = returns_[rank].find(wait.call);
    if (found == returns_[rank].end()) continue;  // inside another call that waits
    if (wait.before_end) {
      edge(heads_[rank].at(wait.ops.front()), found->second);
      continue;
    }
    if (wait.ops.empty()) continue;
    const OpId wake = add(Kind::kWake, rank, wait.call, "wake", Category::kSynchronization,
                          out.constants.wake_of(call_kind(r, wait.call)));
    for (const GpuIndex op : wait.ops) edge(out.device_last[op], wake);
    edge(wake, found->second);
  }
}

/// owner's last mark -> worker's first; worker's last -> owner's next.
void Lowering::add_hand_offs(std::size_t rank) {
  const RankState& state = states_[rank];
  const auto hand_over = [&](std::size_t from_thread, std::size_t from, std::size_t to_thread,
                             std::size_t to) {
    const Nanoseconds length =
        state.events[to_thread].events[to].time - state.events[from_thread].events[from].time;
    const OpId id = add(Kind::kHandOff, rank, std::nullopt, "hand-off", Category::kSynchronization,
                        std::max(length, Nanoseconds(0)));
    edge(state.ends_at[from_thread][from], id);
    edge(id, state.ends_at[to_thread][to]);
  };
  for (const HandOff& h : state.hand_offs) {
    hand_over(h.owner, h.gap, h.worker, h.first);
    hand_over(h.worker, h.last, h.owner, h.gap + 1);
  }
}

void Lowering::add_backward_links(std::size_t rank) {
  const RankState& state = states_[rank];
  for (const BackwardLink& link : state.backward_links)
    edge(state.ends_at[link.forward][link.from], state.ends_at[link.backward][link.to]);
}

void Lowering::add_collectives() {
  for (const MatchedCollective& collective : result_.collectives.matched) {
    // One op that waits for all arrivals, instead of an edge between every two ranks.
    const auto& lead = collective.members.front();
    const OpId all = add(Kind::kArrival, lead.rank, lead.op, "all ranks have arrived",
                         Category::kCommunication, Nanoseconds(0));
    for (const auto& member : collective.members) {
      edge(result_.ranks[member.rank].device_first[member.op], all);
      edge(all, result_.ranks[member.rank].device_last[member.op]);
    }
  }
}

Result<ReplayGraph> Lowering::run() {
  const std::size_t n = recordings_.size();
  states_.resize(n);
  returns_.resize(n);
  transfers_.resize(n);
  heads_.resize(n);
  result_.ranks.resize(n);
  for (std::size_t rank = 0; rank < n; ++rank) {
    const Recording& r = recordings_[rank];
    if (!r.rank().info.timed)
      return fail(Diagnostic{.file = r.rank().info.source,
                             .problem = "has no times, so it cannot be replayed",
                             .expected = "a timed recording (Kineto, Nsight Systems) of the run",
                             .nearest = "give both: they are joined"});
    if (r.threads().empty() && r.streams().empty())
      return fail(
          Diagnostic{.file = r.rank().info.source, .problem = "contains nothing to replay"});
    analyse(rank);
  }
  if (options_.collectives && n > 1) {
    std::vector<std::vector<CommunicationOp>> communication;
    for (const RankGraph& rank : result_.ranks) communication.push_back(rank.communication);
    result_.collectives = match_collectives(recordings_, communication, options_.hidden_rank);
    for (const MatchedCollective& collective : result_.collectives.matched)
      for (const auto& member : collective.members)
        transfers_[member.rank].emplace(member.op, member.transfer);
  }
  for (std::size_t rank = 0; rank < n; ++rank) add_threads(rank);
  for (std::size_t rank = 0; rank < n; ++rank) add_streams(rank);
  for (std::size_t rank = 0; rank < n; ++rank) {
    add_device_edges(rank);
    add_host_waits(rank);
    add_hand_offs(rank);
    add_backward_links(rank);
  }
  add_collectives();
  for (std::size_t rank = 0; rank < n; ++rank)
    add_steps(recordings_[rank], states_[rank].events, states_[rank].ends_at, result_.ranks[rank]);
  Result<graph::Graph> graph = std::move(builder_).build();
  if (!graph) return forward(std::move(graph));
  result_.graph = std::move(*graph);
  return std::move(result_);
}

}  // namespace

Result<ReplayGraph> lower(const std::vector<Recording>& recordings, const LowerOptions& options) {
  return Lowering(recordings, options).run();
}

}  // namespace rehearse::replay
