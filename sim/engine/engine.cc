#include "sim/engine/engine.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/first_come.h"
#include "sim/engine/flows.h"
#include "sim/engine/messages.h"
#include "sim/engine/waiting.h"

namespace rehearse::engine {
namespace {

using graph::Demand;
using graph::Graph;
using graph::Op;
using graph::Policy;
using graph::Server;
using graph::Timeline;

/// Ops added while the loop runs, and the edges that lead to them.
struct Additions {
  std::vector<AddedOp> ops;
  std::vector<std::vector<OpId>> successors;  // by op id; grows only when a process adds an edge
  std::vector<std::vector<Process*>> watchers;
};

/// One run. `kWithProcesses` keeps the cost of processes out of graphs that have none.
template <bool kWithProcesses>
class Loop final : public Injector {
 public:
  Loop(const Graph& graph, const RunOptions& options)
      : graph_(graph),
        first_come_(options.division == Division::kFirstCome),
        on_failure_(options.on_failure),
        flows_(graph, options, events_),
        messages_(graph),
        occupied_(graph, options.on_failure) {
    const std::size_t n = graph.size();
    need_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) need_.push_back(graph.need(OpId(i)));
    timeline_.ops.assign(n, {Picoseconds(0), Picoseconds(0), std::nullopt});
    has_ended_.assign(n, 0);
    prepare_servers();
  }

  Result<ProcessRun> run(std::span<Process* const> processes) {
    if constexpr (kWithProcesses) {
      added_.watchers.resize(graph_.size());
      added_.successors.resize(graph_.size());
      for (Process* process : processes)
        for (const OpId op : process->watches()) added_.watchers[op.index()].push_back(process);
      for (Process* process : processes) {
        adding_ = process;
        process->on_start(*this);
      }
    }
    for (std::size_t i = 0; i < graph_.size(); ++i)
      if (graph_.need(OpId(i)) == 0) ready(OpId(i), std::nullopt);
    while (!events_.empty()) {
      const Event event = events_.pop();
      now_ = event.time;
      switch (event.kind) {
        case EventKind::kOpEnds:
          end(OpId(event.index));
          break;
        case EventKind::kWorkBegins:
          begin_work(OpId(event.index));
          break;
        case EventKind::kSlotFrees:
          free_slot(queues_[event.index]);
          break;
        case EventKind::kGrant:
          grant(queues_[event.index]);
          break;
        case EventKind::kShare:
          share();
          break;
        case EventKind::kFlowEnds:
          end_flows(event.index);
          break;
        case EventKind::kMessageBegins:
          flows_.join({true, event.index}, messages_.way(event.index).demand,
                      messages_.bytes(event.index), now_);
          schedule_share();
          break;
        case EventKind::kMessageEnds:
          if (flows_.ends_alone(event.index)) arrive(event.index);
          break;
      }
    }
    if (too_long_) return fail("the run lasts longer than 106 days of simulated time");
    if (failed_at_) return describe_failure();
    if (ended_ < need_.size()) return describe_stuck();
    return ProcessRun{std::move(timeline_), std::move(added_.ops)};
  }

  // Injector
  Picoseconds now() const override { return now_; }
  OpId add(const Op& op, std::span<const OpId> after) override {
    REHEARSE_CHECK(op.demand.index() < graph_.demands().size(), "an added op has no demand {}",
                   op.demand.index());
    const OpId id(need_.size());
    std::uint32_t need = 0;
    for (const OpId before : after) {
      REHEARSE_CHECK(before.index() < id.index(), "op {} waits for a later one", id.index());
      if (has_ended_[before.index()]) continue;
      added_.successors[before.index()].push_back(id);
      ++need;
    }
    need_.push_back(need);
    timeline_.ops.push_back({Picoseconds(0), Picoseconds(0), std::nullopt});
    has_ended_.push_back(0);
    added_.ops.push_back({op, std::vector<OpId>(after.begin(), after.end())});
    added_.successors.emplace_back();
    added_.watchers.push_back({adding_});
    if (Queue* queue = queue_of(op.demand))
      queue->waiting.announce(graph_.demands()[op.demand.index()]);
    if (need == 0) ready(id, ending_);
    return id;
  }

 private:
  /// A first-come server with one slot whose ops have known durations needs no queue: when an op
  /// asks, its start is already known.
  struct Reserved {
    Picoseconds free_at{0};
    std::optional<OpId> last;
  };
  /// Any other server.
  struct Queue {
    ServerId server;
    Waiting waiting;
    std::uint32_t free_slots;
    bool grant_scheduled = false;
    std::optional<OpId> freed_by;
  };

  /// Where an op with a given demand has to ask, looked up for every op that runs.
  struct Place {
    enum : std::uint32_t { kNoServer, kReserved, kQueued } kind = kNoServer;
    std::uint32_t index = 0;  // in reserved_ or queues_
    Picoseconds turnaround{0};
  };

  void prepare_servers() {
    const auto servers = graph_.servers();
    const auto demands = graph_.demands();
    // Servers of ops whose ends are not known when they start.
    std::vector<char> carries_work(servers.size(), 0);
    for (const Demand& d : demands)
      if (d.server && ((!graph_.without_work() && !d.capacities.empty()) || d.hold))
        carries_work[d.server->index()] = 1;
    for (const graph::Transfer& transfer : graph_.transfers())
      for (const OpId op : transfer.members)
        if (const auto& server = graph_.demand(op).server) carries_work[server->index()] = 1;
    place_of_server_.resize(servers.size());
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const Server& s = servers[i];
      Place& place = place_of_server_[i];
      place.turnaround = s.turnaround;
      if (s.policy == Policy::kFifo && s.slots == 1 && !carries_work[i]) {
        place.kind = Place::kReserved;
        place.index = static_cast<std::uint32_t>(reserved_.size());
        reserved_.emplace_back();
      } else {
        place.kind = Place::kQueued;
        place.index = static_cast<std::uint32_t>(queues_.size());
        queues_.push_back({.server = ServerId(i),
                           .waiting = Waiting(s.policy),
                           .free_slots = s.slots,
                           .freed_by = {}});
      }
    }
    bool leases = false;
    for (const Demand& d : demands) holds_ = holds_ || d.hold;
    for (const Demand& d : demands) {
      place_of_demand_.push_back(d.server ? place_of_server_[d.server->index()] : Place{});
      leases = leases || d.lease;
    }
    if (!leases) return;
    for (std::size_t i = 0; i < graph_.size(); ++i)
      if (Queue* queue = queue_of(graph_.demand_id(OpId(i))))
        queue->waiting.announce(graph_.demand(OpId(i)));
  }

  Queue* queue_of(DemandId demand) {
    const Place& place = place_of_demand_[demand.index()];
    return place.kind == Place::kQueued ? &queues_[place.index] : nullptr;
  }

  bool is_added(OpId op) const { return kWithProcesses && op.index() >= graph_.size(); }
  const Op& added(OpId op) const { return added_.ops[op.index() - graph_.size()].op; }
  DemandId demand_id(OpId op) const {
    return is_added(op) ? added(op).demand : graph_.demand_id(op);
  }
  const Demand& demand(OpId op) const { return graph_.demands()[demand_id(op).index()]; }
  Picoseconds duration(OpId op) const {
    return is_added(op) ? added(op).duration : graph_.duration(op);
  }
  double work(OpId op) const { return is_added(op) ? added(op).work : graph_.work(op); }
  std::string describe(OpId op) const {
    const std::string_view name = is_added(op) ? graph_.names()[added(op).name] : graph_.name(op);
    return fmt::format("op {} '{}'", op.index(), name);
  }

  /// All that `op` waited for has ended; `cause` last.
  void ready(OpId op, std::optional<OpId> cause) {
    timeline_[op].cause = cause;
    const Place& place = place_of_demand_[demand_id(op).index()];
    if (place.kind == Place::kNoServer) return start(op, now_);
    if (place.kind == Place::kQueued) {
      Queue& queue = queues_[place.index];
      timeline_[op].start = now_;  // until it is served: when it asked
      queue.waiting.push(op, demand(op));
      return schedule_grant(queue);
    }
    Reserved& slot = reserved_[place.index];
    Picoseconds at = now_;
    if (slot.free_at > now_) {
      at = slot.free_at;
      timeline_[op].cause = slot.last;
    }
    start(op, at);
    slot.free_at = later(later(at, duration(op)), place.turnaround);
    slot.last = op;
  }

  void start(OpId op, Picoseconds at) {
    timeline_[op].start = at;
    if (holds_ && demand(op).hold) {
      flows_.join({false, op.index()}, *demand(op).hold, std::numeric_limits<double>::infinity(),
                  at);
      schedule_share();
    }
    const bool flows = work(op) > 0 || takes_part(op);
    if (flows && at == now_ && duration(op) == Picoseconds(0)) return begin_work(op);
    events_.push(later(at, duration(op)), flows ? EventKind::kWorkBegins : EventKind::kOpEnds,
                 op.index());
  }

  /// `at + by`, which wrong input can make larger than 64 bits hold.
  Picoseconds later(Picoseconds at, Picoseconds by) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(at.count(), by.count(), &sum)) return Picoseconds(sum);
    too_long_ = true;
    return Picoseconds(std::numeric_limits<std::int64_t>::max());
  }

  void end(OpId op) {
    timeline_[op].end = now_;
    has_ended_[op.index()] = 1;
    ++ended_;
    if (holds_ && demand(op).hold) {
      flows_.withdraw({false, op.index()}, *demand(op).hold, now_);
      schedule_share();
    }
    if (Queue* queue = queue_of(demand_id(op))) {
      queue->waiting.ended(demand(op));
      queue->freed_by = op;
      const Picoseconds turnaround = graph_.servers()[queue->server.index()].turnaround;
      if (turnaround > Picoseconds(0)) {
        const auto index = static_cast<std::uint32_t>(queue - queues_.data());
        events_.push(later(now_, turnaround), EventKind::kSlotFrees, index);
      } else {
        free_slot(*queue);
      }
    }
    if constexpr (kWithProcesses) {
      ending_ = op;
      // By index: a process that adds ops makes these tables grow.
      for (std::size_t i = 0; i < added_.watchers[op.index()].size(); ++i) {
        adding_ = added_.watchers[op.index()][i];
        adding_->on_end(op, *this);
      }
      for (std::size_t i = 0; i < added_.successors[op.index()].size(); ++i)
        release(added_.successors[op.index()][i], op);
    }
    if (!is_added(op))
      for (const OpId next : graph_.successors(op)) release(next, op);
  }

  /// One predecessor of `op` has ended. One that waits for the first m ignores the others.
  void release(OpId op, OpId by) {
    std::uint32_t& need = need_[op.index()];
    if (need > 0 && --need == 0) ready(op, by);
  }

  void free_slot(Queue& queue) {
    ++queue.free_slots;
    if (!queue.waiting.empty()) schedule_grant(queue);
  }

  /// First come is served at once. Where there is a choice, it is made after everything else that
  /// is due at this instant, so that it does not depend on which of two simultaneous events came
  /// first.
  void schedule_grant(Queue& queue) {
    if (graph_.servers()[queue.server.index()].policy == Policy::kFifo) return grant(queue);
    if (std::exchange(queue.grant_scheduled, true)) return;
    events_.push(now_, EventKind::kGrant, static_cast<std::uint32_t>(&queue - queues_.data()));
  }

  void grant(Queue& queue) {
    queue.grant_scheduled = false;
    while (queue.free_slots > 0) {
      const std::optional<OpId> op = queue.waiting.pop();
      if (!op) return;
      --queue.free_slots;
      if (timeline_[*op].start < now_ && queue.freed_by) timeline_[*op].cause = queue.freed_by;
      start(*op, now_);
    }
  }

  bool takes_part(OpId op) const { return !is_added(op) && messages_.carries(op); }

  void begin_work(OpId op) {
    if (takes_part(op)) {
      messages_.take_part(op, next_);
      return follow();
    }
    flows_.join({false, op.index()}, demand_id(op), work(op), now_);
    schedule_share();
  }

  void arrive(std::uint32_t slot) {
    messages_.arrive(slot, next_);
    follow();
  }

  /// Sends the messages that leave now, then lets the ops end that have ended. Ending an op can
  /// make others take part, which follow in their turn.
  void follow() {
    if (following_) return;
    following_ = true;
    while (!next_.leaving.empty() || !next_.ended.empty()) {
      std::swap(next_, now_follows_);
      for (const std::uint32_t slot : now_follows_.leaving) send(slot);
      for (const OpId op : now_follows_.ended) end(op);
      now_follows_.clear();
    }
    following_ = false;
  }

  void send(std::uint32_t slot) {
    const graph::Way& way = messages_.way(slot);
    const double bytes = messages_.bytes(slot);
    const Picoseconds begin = later(now_, way.latency);
    const Demand& demand = graph_.demands()[way.demand.index()];
    if (bytes == 0 || demand.capacities.empty())
      return events_.push(begin, EventKind::kMessageEnds, slot);
    if (first_come_) {
      const auto through = occupied_.carry(demand, bytes, now_);
      if (through)
        events_.push(later(*through, way.latency), EventKind::kMessageEnds, slot);
      else if (on_failure_ == OnFailure::kFail && !failed_at_)
        failed_at_ = now_;
      return;
    }
    if (!flows_.begin_alone(slot, way.demand, bytes, begin))
      events_.push(begin, EventKind::kMessageBegins, slot);
  }

  /// Capacities are divided once per instant, after all that joins and leaves at it.
  void schedule_share() {
    if (!std::exchange(share_scheduled_, true)) events_.push(now_, EventKind::kShare, 0);
  }

  void share() {
    share_scheduled_ = false;
    flows_.divide(now_);
    if (flows_.failed() && !failed_at_) failed_at_ = now_;
  }

  void end_flows(std::uint32_t component) {
    finished_.clear();
    flows_.leave(component, now_, finished_);
    for (const FlowTag tag : finished_) {
      if (tag.is_message)
        arrive(tag.index);
      else
        end(OpId(tag.index));
    }
    if (flows_.to_divide()) schedule_share();
  }

  tl::unexpected<Error> describe_failure() const {
    const CapacityId at = flows_.failed() ? *flows_.failed() : *occupied_.stalled();
    return fail(fmt::format("capacity '{}' fails {} into the run, with work on it",
                            graph_.names()[graph_.capacities()[at.index()].name],
                            to_string(failed_at_->seconds())),
                "a run that survives it: stall or retry");
  }

  tl::unexpected<Error> describe_stuck() const {
    constexpr std::size_t kShown = 3;
    std::string text = fmt::format("{} of {} ops never end", need_.size() - ended_, need_.size());
    std::size_t shown = 0;
    for (std::size_t i = 0; i < need_.size() && shown < kShown; ++i) {
      const OpId op(i);
      if (has_ended_[i] || need_[i] > 0) continue;
      ++shown;
      text += fmt::format("; {} waits for {}", describe(op), what_holds(op));
    }
    for (std::size_t i = 0; i < need_.size() && shown < kShown; ++i) {
      if (has_ended_[i] || need_[i] == 0) continue;
      ++shown;
      text += fmt::format("; {} waits for {} of its predecessors", describe(OpId(i)), need_[i]);
    }
    return fail(text, "rates above zero and leases whose ops do not wait for each other");
  }

  /// What an op with all its predecessors behind it still waits for.
  std::string what_holds(OpId op) const {
    const Demand& d = demand(op);
    if (const Place& place = place_of_demand_[demand_id(op).index()];
        place.kind == Place::kQueued) {
      const Queue& queue = queues_[place.index];
      const std::string_view name = graph_.names()[graph_.servers()[queue.server.index()].name];
      if (queue.waiting.holder() && queue.waiting.holder() != d.lease)
        return fmt::format("server '{}', held by lease {}", name, queue.waiting.holder()->index());
      if (!queue.waiting.empty() && queue.free_slots == 0) return fmt::format("server '{}'", name);
    }
    std::optional<CapacityId> stalled = flows_.stalled();
    if (!stalled) stalled = occupied_.stalled();
    if (stalled) {
      const graph::Capacity& c = graph_.capacities()[stalled->index()];
      return fmt::format("capacity '{}', whose rate is zero", graph_.names()[c.name]);
    }
    if (takes_part(op)) return messages_.describe_waiting(op);
    return "an op that never ends";
  }

  const Graph& graph_;
  Timeline timeline_;
  std::vector<std::uint32_t> need_;
  std::vector<char> has_ended_;
  std::size_t ended_ = 0;
  bool too_long_ = false;
  Picoseconds now_{0};
  EventQueue events_;

  bool holds_ = false;  // some demand does
  std::vector<Place> place_of_server_;
  std::vector<Place> place_of_demand_;
  std::vector<Reserved> reserved_;
  std::vector<Queue> queues_;

  const bool first_come_;
  const OnFailure on_failure_;
  Flows flows_;
  bool share_scheduled_ = false;
  std::optional<Picoseconds> failed_at_;
  std::vector<FlowTag> finished_;

  Messages messages_;
  FirstCome occupied_;
  Messages::Consequences next_, now_follows_;
  bool following_ = false;

  Additions added_;
  Process* adding_ = nullptr;
  std::optional<OpId> ending_;
};

}  // namespace

Result<Timeline> run(const Graph& graph, const RunOptions& options) {
  auto result = Loop<false>(graph, options).run({});
  if (!result) return forward(std::move(result));
  return std::move(result->timeline);
}

Result<ProcessRun> run(const Graph& graph, std::span<Process* const> processes,
                       const RunOptions& options) {
  return Loop<true>(graph, options).run(processes);
}

}  // namespace rehearse::engine
