#include "sim/engine/engine.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/base/watch.h"
#include "sim/engine/carrier.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/flows.h"
#include "sim/engine/messages.h"
#include "sim/engine/servers.h"

namespace rehearse::engine {
namespace {

using graph::Demand, graph::Graph, graph::Policy, graph::Timeline;

/// The end of an op that has not ended, and whose end is not known.
constexpr Picoseconds kNoEnd{-1};
/// The number of events between two reports, some tens of milliseconds.
constexpr std::size_t kEventsPerReport = 1 << 20;

/// The loop is compiled with and without a carrier, so that a run pays only for what it uses.
template <bool kWithCarrier>
class Loop final : public Driven {
 public:
  Loop(const Graph& graph, const RunOptions& options, Carrier* carrier = nullptr)
      : graph_(graph),
        carrier_(carrier),
        servers_(graph),
        first_come_(options.division == Division::kFirstCome),
        on_failure_(options.on_failure),
        flows_(graph, options, events_),
        messages_(graph),
        occupied_(graph, options.on_failure) {
    const std::size_t n = graph.size();
    timeline_.ops.reserve(n);
    for (std::size_t i = 0; i < n; ++i)
      timeline_.ops.push_back(
          {-Picoseconds(std::int64_t{graph.need(OpId(i))}), kNoEnd, std::nullopt});
    for (const Demand& d : graph.demands()) holds_ = holds_ || d.hold;
    for (const graph::Server& s : graph.servers()) slotted_ = slotted_ || !s.slot_demands.empty();
    if (slotted_) slot_of_.assign(n, 0);
  }

  Result<Timeline> run() {
    for (std::size_t i = 0; i < graph_.size(); ++i)
      if (graph_.need(OpId(i)) == 0) ready(OpId(i));
    if constexpr (kWithCarrier)
      carrier_->run(*this);
    else if (!run_all())
      return fail("stopped");
    if (too_long_) return fail("the run lasts longer than 106 days of simulated time");
    if (failed_at_) return describe_failure();
    if (ended_ < graph_.size()) return describe_stuck();
    return std::move(timeline_);
  }

  // Driven; by a carrier alone, and so compiled, that the loop above stays one piece of code.
  std::optional<Picoseconds> next() override {
    if (events_.empty()) return std::nullopt;
    return events_.next_time();
  }
  void run_until(Picoseconds now) override {
    if constexpr (kWithCarrier)
      while (!events_.empty() && events_.next_time() <= now) handle(next_event());
    now_ = std::max(now_, now);
  }
  void arrived(FlowTag flow, Picoseconds now) override {
    now_ = std::max(now_, now);
    flow_ends(flow);
  }

 private:
  /// False if it was asked to stop.
  bool run_all() {
    while (true) {
      for (std::size_t i = 0; i < kEventsPerReport; ++i) {
        if (events_.empty()) return true;
        handle(next_event());
      }
      if (!report(static_cast<double>(ended_) / static_cast<double>(graph_.size()))) return false;
    }
  }

  void handle(const Event& event) {
    now_ = event.time;
    switch (event.kind) {
      case EventKind::kOpEnds: return end(OpId(event.index));
      case EventKind::kWorkBegins: return begin_work(OpId(event.index));
      case EventKind::kSlotFrees: return free_slot(servers_.queue(event.index));
      case EventKind::kGrant: return grant(servers_.queue(event.index));
      case EventKind::kShare: return share();
      case EventKind::kFlowEnds: return end_flows(event.index);
      case EventKind::kMessageBegins:
        return begin_flow({true, event.index}, messages_.route(event.index).demand,
                          messages_.bytes(event.index));
      case EventKind::kMessageEnds:
        if (flows_.ends_alone(event.index)) arrive(event.index);
    }
  }

  /// Prefetches the data of ops that end soon, in three stages because each address is in the data
  /// before.
  Event next_event() {
    // Inlined, because GCC removes calls of a function that only prefetches.
    return events_.pop([this](const Event& soon, std::size_t stage) __attribute__((always_inline)) {
      if (soon.kind != EventKind::kOpEnds) return;
      const OpId op(soon.index);
      if (stage == 3) return graph_.prefetch(op);
      if (stage == 2) return __builtin_prefetch(graph_.successors(op).data());
      for (const OpId next : graph_.successors(op))
        __builtin_prefetch(timeline_.ops.data() + next.index(), 1);
    });
  }

  std::string describe(OpId op) const {
    return fmt::format("op {} '{}'", op.index(), graph_.name(op));
  }

  /// All dependencies of `op` have ended; its cause is the last.
  void ready(OpId op) {
    const Place& place = servers_.place(graph_.demand_id(op));
    if (place.kind == Place::kNoServer) return start(op, now_);
    if (place.kind == Place::kQueued) {
      Queue& queue = servers_.queue(place.index);
      timeline_[op].start = now_;  // until it is served: the time of its request
      queue.waiting.push(op, graph_.demand(op));
      return schedule_grant(queue);
    }
    Reserved& slot = servers_.reserved(place.index);
    Picoseconds at = now_;
    if (slot.free_at > now_) {
      at = slot.free_at;
      timeline_[op].cause = slot.last;
    }
    slot.free_at = later(later(at, graph_.duration(op)), slot.turnaround);
    slot.last = op;
    start(op, at);
  }

  void start(OpId op, Picoseconds at) {
    timeline_[op].start = at;
    // The next cache lines of its stream, where the ops of a stream follow each other.
    graph_.prefetch(OpId(op.index() + 3));
    __builtin_prefetch(&timeline_[op] + 3, 1);
    if (const auto next = graph_.successors(op); !next.empty())
      __builtin_prefetch(next.data() + 16);
    if (holds_ && graph_.demand(op).hold) {
      flows_.join({false, op.index()}, *graph_.demand(op).hold,
                  std::numeric_limits<double>::infinity(), at);
      schedule_share();
    }
    const Picoseconds until = later(at, graph_.duration(op));
    if (!(graph_.work(op) > 0 || takes_part(op))) {
      timeline_[op].end = until;
      return events_.push(until, EventKind::kOpEnds, op.index());
    }
    if (until == now_) return begin_work(op);
    events_.push(until, EventKind::kWorkBegins, op.index());
  }

  /// `at + by`, which wrong input can make larger than 64 bits.
  Picoseconds later(Picoseconds at, Picoseconds by) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(at.count(), by.count(), &sum)) return Picoseconds(sum);
    too_long_ = true;
    return Picoseconds(std::numeric_limits<std::int64_t>::max());
  }

  /// Ends an op whose work has arrived. The timeline does not have its end yet.
  void end_now(OpId op) {
    timeline_[op].end = now_;
    end(op);
  }

  /// REQUIRES: its end is in the timeline.
  void end(OpId op) {
    ++ended_;
    if (holds_ && graph_.demand(op).hold) {
      flows_.withdraw({false, op.index()}, *graph_.demand(op).hold, now_);
      schedule_share();
    }
    if (const Place& place = servers_.place(graph_.demand_id(op)); place.kind == Place::kQueued) {
      Queue& queue = servers_.queue(place.index);
      queue.waiting.ended(graph_.demand(op));
      queue.freed_by = op;
      if (slotted_ && has_slots(queue)) queue.free.push(slot_of_[op.index()]);
      const Picoseconds turnaround = graph_.servers()[queue.server.index()].turnaround;
      if (turnaround > Picoseconds(0)) {
        events_.push(later(now_, turnaround), EventKind::kSlotFrees, servers_.number_of(queue));
      } else {
        free_slot(queue);
      }
    }
    for (const OpId next : graph_.successors(op)) release(next, op);
  }

  /// One predecessor of `op` has ended. An op that waits for the first m ignores the others.
  void release(OpId op, OpId by) {
    if (!waits(op)) return;
    graph::OpTimes& times = timeline_[op];
    times.start += Picoseconds(1);
    if (waits(op)) return;
    times.cause = by;
    ready(op);
  }

  /// For predecessors: until they have ended, its start is minus the number of those that it needs.
  bool waits(OpId op) const { return timeline_[op].start < Picoseconds(0); }

  void free_slot(Queue& queue) {
    ++queue.free_slots;
    if (!queue.waiting.empty()) schedule_grant(queue);
  }

  /// First come is served at once. If there is a choice, it is made after everything else that is
  /// due at this instant, so it does not depend on the order of simultaneous events.
  void schedule_grant(Queue& queue) {
    if (graph_.servers()[queue.server.index()].policy == Policy::kFifo) return grant(queue);
    if (std::exchange(queue.grant_scheduled, true)) return;
    events_.push(now_, EventKind::kGrant, servers_.number_of(queue));
  }

  void grant(Queue& queue) {
    queue.grant_scheduled = false;
    while (queue.free_slots > 0) {
      const std::optional<OpId> op = queue.waiting.pop();
      if (!op) return;
      --queue.free_slots;
      if (slotted_ && has_slots(queue)) {
        slot_of_[op->index()] = queue.free.top();
        queue.free.pop();
      }
      if (timeline_[*op].start < now_ && queue.freed_by) timeline_[*op].cause = queue.freed_by;
      start(*op, now_);
    }
    // Ops that have waited for long have left the caches. This is not a separate function, because
    // GCC would remove a function without effect.
    if (const std::optional<OpId> next = queue.waiting.first()) {
      graph_.prefetch(*next);
      __builtin_prefetch(timeline_.ops.data() + next->index(), 1);
    }
  }

  bool takes_part(OpId op) const { return messages_.carries(op); }

  void begin_work(OpId op) {
    if (takes_part(op)) {
      messages_.take_part(op, next_);
      return follow();
    }
    begin_flow({false, op.index()}, flow_demand(op), graph_.work(op));
  }

  bool has_slots(const Queue& queue) const {
    return !graph_.servers()[queue.server.index()].slot_demands.empty();
  }
  /// The demand of its slot, if slots have demands.
  DemandId flow_demand(OpId op) const {
    if (slotted_)
      if (const auto& server = graph_.demand(op).server)
        if (const graph::Server& s = graph_.servers()[server->index()]; !s.slot_demands.empty())
          return s.slot_demands[slot_of_[op.index()]];
    return graph_.demand_id(op);
  }

  void begin_flow(FlowTag flow, DemandId demand, double work) {
    if constexpr (kWithCarrier) return carrier_->begin(flow, demand, work);
    flows_.join(flow, demand, work, now_);
    schedule_share();
  }

  void flow_ends(FlowTag flow) {
    if (flow.is_message)
      arrive(flow.index);
    else
      end_now(OpId(flow.index));
  }

  void arrive(std::uint32_t slot) {
    messages_.arrive(slot, next_);
    follow();
  }

  /// Sends the messages that leave now, then ends the ops that have ended. Ending an op can make
  /// others take part, which are processed in turn.
  void follow() {
    if (following_) return;
    following_ = true;
    while (!next_.leaving.empty() || !next_.ended.empty()) {
      std::swap(next_, now_follows_);
      for (const std::uint32_t slot : now_follows_.leaving) send(slot);
      for (const OpId op : now_follows_.ended) end_now(op);
      now_follows_.clear();
    }
    following_ = false;
  }

  void send(std::uint32_t slot) {
    const graph::FlowRoute& route = messages_.route(slot);
    const double bytes = messages_.bytes(slot);
    const Picoseconds begin = later(now_, route.latency);
    if (bytes == 0 || flows_.capacities_of(route.demand).empty())
      return events_.push(begin, EventKind::kMessageEnds, slot);
    if (first_come_) {
      const auto through = occupied_.carry(graph_.demands()[route.demand.index()], bytes, now_);
      if (through)
        events_.push(later(*through, route.latency), EventKind::kMessageEnds, slot);
      else if (on_failure_ == OnFailure::kFail && !failed_at_)
        failed_at_ = now_;
      return;
    }
    if (kWithCarrier || !flows_.begin_alone(slot, route.demand, bytes, begin))
      events_.push(begin, EventKind::kMessageBegins, slot);
  }

  /// Capacities are divided once per instant, after all joins and leaves at that instant.
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
    for (const FlowTag flow : finished_) flow_ends(flow);
    if (flows_.to_divide()) schedule_share();
  }

  tl::unexpected<Error> describe_failure() const {
    const CapacityId at = flows_.failed() ? *flows_.failed() : *occupied_.stalled();
    return fail(fmt::format("capacity '{}' fails {} into the run while it carries work",
                            graph_.names()[graph_.capacities()[at.index()].name],
                            to_string(failed_at_->seconds())),
                "another policy for failing links: stall or retry");
  }

  tl::unexpected<Error> describe_stuck() const {
    constexpr std::size_t kShown = 3;
    const std::size_t n = graph_.size();
    std::string text = fmt::format("{} of {} ops never end", n - ended_, n);
    std::size_t shown = 0;
    for (std::size_t i = 0; i < n && shown < kShown; ++i) {
      const OpId op(i);
      if (waits(op) || timeline_[op].end != kNoEnd) continue;
      ++shown;
      text += fmt::format("; {} waits for {}", describe(op), what_holds(op));
    }
    for (std::size_t i = 0; i < n && shown < kShown; ++i) {
      const OpId op(i);
      if (!waits(op)) continue;
      ++shown;
      text += fmt::format("; {} waits for {} of its predecessors", describe(op),
                          -timeline_[op].start.count());
    }
    return fail(text, "rates above zero, and leases without circular waits");
  }

  /// What an op whose predecessors have all ended still waits for.
  std::string what_holds(OpId op) const {
    const Demand& d = graph_.demand(op);
    if (const Place& place = servers_.place(graph_.demand_id(op)); place.kind == Place::kQueued) {
      const Queue& queue = servers_.queue(place.index);
      const std::string_view name = graph_.names()[graph_.servers()[queue.server.index()].name];
      if (queue.waiting.holder() && queue.waiting.holder() != d.lease)
        return fmt::format("server '{}', held by lease {}", name, queue.waiting.holder()->index());
      if (!queue.waiting.empty() && queue.free_slots == 0) return fmt::format("server '{}'", name);
    }
    std::optional<CapacityId> stalled = kWithCarrier ? carrier_->stalled() : flows_.stalled();
    if (!stalled) stalled = occupied_.stalled();
    if (stalled) {
      const graph::Capacity& c = graph_.capacities()[stalled->index()];
      return fmt::format("capacity '{}', whose rate is zero", graph_.names()[c.name]);
    }
    if (takes_part(op)) return messages_.describe_waiting(op);
    return "an op that never ends";
  }

  const Graph& graph_;
  Carrier* const carrier_;
  Timeline timeline_;
  std::size_t ended_ = 0;
  bool too_long_ = false;
  Picoseconds now_{0};
  EventQueue events_;

  bool holds_ = false;                  // some demand does
  bool slotted_ = false;                // the slots of some server have demands
  std::vector<std::uint32_t> slot_of_;  // of each op that is served there
  Servers servers_;

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
};

}  // namespace

Result<Timeline> run(const Graph& graph, const RunOptions& options) {
  return Loop<false>(graph, options).run();
}

Result<Timeline> run(const Graph& graph, Carrier& carrier) {
  return Loop<true>(graph, {}, &carrier).run();
}

}  // namespace rehearse::engine
