#include "tests/support/naive_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "sim/base/check.h"

namespace rehearse::test {
namespace {

using namespace graph;

enum class State { kBlocked, kWaiting, kLatency, kFlowing, kTakesPart, kEnded };

/// Work in progress: an op, or a message of a flow.
struct Flow {
  const Demand* demand = nullptr;  // while it flows
  double left = 0;                 // work
  double rate = 0;                 // work per ps

  /// Whether the work is done, within the rounding of instants and sums.
  bool done(double work) const { return left <= std::max(rate * 0.51, 1e-12 * work); }
};

struct Running {
  State state = State::kBlocked;
  std::uint32_t ended_before = 0;  // predecessors that have ended
  std::uint64_t asked = 0;         // position in the order of requests for the server
  double latency_ends = 0;         // ps
  std::size_t slot = 0;            // of its server
  Flow flow;
  double start = 0;
  double end = 0;
};

/// A flow of a transfer, with the message that travels on it.
struct Traffic {
  State state = State::kBlocked;  // of the next message; kLatency and kFlowing while it travels
  std::uint32_t delivered = 0;
  double latency_ends = 0;  // ps
  Flow flow;
};

/// The turn of a capacity that is shared by turns.
struct NaiveTurn {
  std::optional<FlowGroupId> holder;
  bool busy = false;         // the holder flowed at the last instant
  double since = 0;          // its turn began
  double idle_since = 0;     // when it is not busy
  double changes_until = 0;  // nothing flows before
};

class NaiveEngine {
 public:
  explicit NaiveEngine(const Graph& graph)
      : g_(graph), ops_(graph.size()), turns_(graph.capacities().size()) {
    for (const Server& server : g_.servers())
      slot_free_.push_back(std::vector<double>(server.slots, 0));
    for (const Transfer& t : g_.transfers()) traffic_.emplace_back(t.flows->flows().size());
  }

  Timeline run() {
    while (true) {
      // Does everything that happens at this instant, until nothing more does. Servers choose once
      // all due ops have made their requests.
      while (advance_ops() || advance_messages() || serve()) {
      }
      if (ended_ == g_.size()) break;
      divide();
      step();
    }
    Timeline timeline;
    for (const Running& op : ops_)
      timeline.ops.push_back(
          {Picoseconds(std::llround(op.start)), Picoseconds(std::llround(op.end)), std::nullopt});
    return timeline;
  }

 private:
  const Demand& demand(std::size_t op) const { return g_.demand(OpId(op)); }

  const Demand& flow_demand(std::size_t op) const {
    if (const auto server = demand(op).server)
      if (const Server& s = g_.servers()[server->index()]; !s.slot_demands.empty())
        return g_.demands()[s.slot_demands[ops_[op].slot].index()];
    return demand(op);
  }

  void begin(std::size_t i) {
    ops_[i].start = now_;
    ops_[i].state = State::kLatency;
    ops_[i].latency_ends = now_ + static_cast<double>(g_.duration(OpId(i)).count());
  }

  void end(std::size_t i) {
    ops_[i].flow.demand = nullptr;
    ops_[i].state = State::kEnded;
    ops_[i].end = now_;
    ++ended_;
    if (const auto s = demand(i).server) {
      slot_free_[s->index()][ops_[i].slot] =
          now_ + static_cast<double>(g_.servers()[s->index()].turnaround.count());
    }
    for (const OpId to : g_.successors(OpId(i))) ++ops_[to.index()].ended_before;
  }

  bool is_member(std::size_t op) const {
    for (const Transfer& t : g_.transfers())
      if (std::find(t.members.begin(), t.members.end(), OpId(op)) != t.members.end()) return true;
    return false;
  }

  bool advance_ops() {
    bool any = false;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      Running& op = ops_[i];
      const double work = g_.work(OpId(i));
      if (op.state == State::kLatency && op.latency_ends <= now_) {
        any = true;
        op.state = is_member(i) ? State::kTakesPart : State::kFlowing;
        if (op.state == State::kFlowing) op.flow = {&flow_demand(i), work};
      }
      if (op.state == State::kFlowing && op.flow.done(work)) {
        any = true;
        end(i);
      }
    }
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].state == State::kBlocked && ops_[i].ended_before >= g_.need(OpId(i))) {
        any = true;
        ops_[i].state = State::kWaiting;
        ops_[i].asked = ++asked_;
      }
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].state == State::kWaiting && !demand(i).server) {
        any = true;
        begin(i);
      }
    return any;
  }

  bool takes_part(OpId op) const {
    return ops_[op.index()].state == State::kTakesPart || ops_[op.index()].state == State::kEnded;
  }

  bool may_leave(const Transfer& t, const std::vector<Traffic>& flows, std::size_t l) const {
    const MessageFlow& flow = t.flows->flows()[l];
    if (!takes_part(t.members[flow.from]) || !takes_part(t.members[flow.to])) return false;
    for (const Wait& wait : t.flows->waits()) {
      if (wait.flow != l) continue;
      const std::uint32_t asked = wait.after + (wait.each ? flows[l].delivered : 0);
      if (flows[wait.on].delivered < std::min(asked, t.flows->flows()[wait.on].count)) return false;
    }
    return true;
  }

  bool advance_messages() {
    bool any = false;
    for (std::size_t i = 0; i < traffic_.size(); ++i) {
      const Transfer& t = g_.transfers()[i];
      std::vector<Traffic>& flows = traffic_[i];
      for (std::size_t l = 0; l < flows.size(); ++l) {
        Traffic& flow = flows[l];
        const FlowRoute& route = (*t.routes)[l];
        const double bytes = t.flows->flows()[l].share * t.size + route.extra;
        if (flow.state == State::kBlocked && flow.delivered < t.flows->flows()[l].count &&
            may_leave(t, flows, l)) {
          any = true;
          flow.state = State::kLatency;
          flow.latency_ends = now_ + static_cast<double>(route.latency.count());
        }
        if (flow.state == State::kLatency && flow.latency_ends <= now_) {
          any = true;
          const Demand& d = g_.demands()[route.demand.index()];
          flow.state = State::kFlowing;
          flow.flow = {&d, d.capacities.empty() ? 0 : bytes};
        }
        if (flow.state == State::kFlowing && flow.flow.done(bytes)) {
          any = true;
          flow.flow.demand = nullptr;
          ++flow.delivered;
          flow.state = State::kBlocked;
        }
      }
      for (std::uint32_t m = 0; m < t.members.size(); ++m) {
        bool all = ops_[t.members[m].index()].state == State::kTakesPart;
        for (std::size_t l = 0; l < flows.size(); ++l) {
          const MessageFlow& flow = t.flows->flows()[l];
          if (flow.from == m || flow.to == m) all = all && flows[l].delivered == flow.count;
        }
        if (!all) continue;
        any = true;
        end(t.members[m].index());
      }
    }
    return any;
  }

  bool serve() {
    bool any = false;
    for (std::size_t s = 0; s < slot_free_.size(); ++s)
      for (double& slot : slot_free_[s]) {
        if (slot > now_) continue;
        std::optional<std::size_t> next;
        for (std::size_t i = 0; i < ops_.size(); ++i) {
          if (ops_[i].state != State::kWaiting || demand(i).server != ServerId(s)) continue;
          const auto rank = [&](std::size_t k) {
            const int priority =
                g_.servers()[s].policy == Policy::kPriority ? demand(k).priority : 0;
            return std::pair(-priority, ops_[k].asked);
          };
          if (!next || rank(i) < rank(*next)) next = i;
        }
        if (!next) continue;
        slot = std::numeric_limits<double>::infinity();
        ops_[*next].slot = static_cast<std::size_t>(&slot - slot_free_[s].data());
        begin(*next);
        any = true;
      }
    return any;
  }

  std::vector<Flow*> flows() {
    std::vector<Flow*> all;
    for (Running& op : ops_)
      if (op.flow.demand) all.push_back(&op.flow);
    for (std::vector<Traffic>& flows : traffic_)
      for (Traffic& flow : flows)
        if (flow.flow.demand) all.push_back(&flow.flow);
    return all;
  }

  /// Assigns turns, by definition.
  void take_turns() {
    for (std::size_t c = 0; c < turns_.size(); ++c) {
      const auto& law = g_.capacities()[c].turns;
      if (!law) continue;
      NaiveTurn& turn = turns_[c];
      std::set<FlowGroupId> there;
      for (const Flow* flow : flows())
        for (const CapacityId used : flow->demand->capacities)
          if (used.index() == c) there.insert(*flow->demand->group);
      if (!turn.holder) {
        if (there.empty()) continue;
        turn = {*there.begin(), true, now_, now_, now_};
      }
      const bool busy = there.contains(*turn.holder);
      if (turn.busy && !busy) turn.idle_since = now_;
      turn.busy = busy;
      if (now_ < turn.changes_until || there.size() < (busy ? 2 : 1)) continue;
      const auto change = static_cast<double>(law->change.count());
      const double ends =
          busy ? turn.since + static_cast<double>(law->quantum.count()) : turn.idle_since + change;
      if (now_ < ends) continue;
      there.erase(*turn.holder);
      auto next = there.upper_bound(*turn.holder);
      if (next == there.end()) next = there.begin();
      turn = {*next, true, now_ + change, now_ + change, now_ + change};
    }
  }

  bool stands_still(const Demand& demand) const {
    return std::any_of(demand.capacities.begin(), demand.capacities.end(), [&](CapacityId c) {
      const NaiveTurn& turn = turns_[c.index()];
      return g_.capacities()[c.index()].turns &&
             (turn.holder != demand.group || now_ < turn.changes_until);
    });
  }

  /// The instants at which turns may end.
  template <class Consider>
  void consider_turns(Consider consider) const {
    for (std::size_t c = 0; c < turns_.size(); ++c) {
      const auto& law = g_.capacities()[c].turns;
      if (!law || !turns_[c].holder) continue;
      consider(turns_[c].changes_until);
      consider(turns_[c].since + static_cast<double>(law->quantum.count()));
      consider(turns_[c].idle_since + static_cast<double>(law->change.count()));
    }
  }

  double rate_now(const Capacity& c) const {
    double rate = c.rate;
    for (const RateChange& change : c.changes)
      if (static_cast<double>(change.at.count()) <= now_) rate = change.rate;
    return rate * 1e-12;
  }

  /// Max-min fair rates by definition: raise all rates together; a flow that meets a limit stops.
  void divide() {
    take_turns();
    std::vector<double> left;
    for (const Capacity& c : g_.capacities()) left.push_back(rate_now(c));
    std::map<int, std::vector<Flow*>, std::greater<>> by_priority;
    for (Flow* flow : flows()) {
      flow->rate = 0;
      if (stands_still(*flow->demand)) continue;
      by_priority[flow->demand->priority].push_back(flow);
    }
    for (auto& [priority, rising] : by_priority)
      while (!rising.empty()) {
        double step = std::numeric_limits<double>::infinity();
        std::vector<double> weight(left.size(), 0);
        for (const Flow* flow : rising)
          for (std::size_t k = 0; k < flow->demand->capacities.size(); ++k)
            weight[flow->demand->capacities[k].index()] +=
                flow->demand->weight * flow->demand->units_taken(k);
        for (std::size_t c = 0; c < left.size(); ++c)
          if (weight[c] > 0) step = std::min(step, std::max(0.0, left[c]) / weight[c]);
        for (const Flow* flow : rising)
          step =
              std::min(step, (flow->demand->rate_cap * 1e-12 - flow->rate) / flow->demand->weight);
        for (Flow* flow : rising) {
          flow->rate += step * flow->demand->weight;
          for (std::size_t k = 0; k < flow->demand->capacities.size(); ++k)
            left[flow->demand->capacities[k].index()] -=
                step * flow->demand->weight * flow->demand->units_taken(k);
        }
        std::erase_if(rising, [&](const Flow* flow) {
          const auto& path = flow->demand->capacities;
          return flow->rate >= flow->demand->rate_cap * 1e-12 * (1 - 1e-12) ||
                 std::any_of(path.begin(), path.end(), [&](CapacityId c) {
                   return left[c.index()] <= 1e-9 * rate_now(g_.capacities()[c.index()]);
                 });
        });
      }
  }

  /// Advances to the next instant at which something may happen.
  void step() {
    double next = std::numeric_limits<double>::infinity();
    const auto consider = [&](double at) {
      if (at > now_) next = std::min(next, at);
    };
    for (const Running& op : ops_)
      if (op.state == State::kLatency) consider(op.latency_ends);
    for (const std::vector<Traffic>& flows : traffic_)
      for (const Traffic& flow : flows)
        if (flow.state == State::kLatency) consider(flow.latency_ends);
    for (const auto& slots : slot_free_)
      for (const double slot : slots) consider(slot);
    for (const Capacity& c : g_.capacities())
      for (const RateChange& change : c.changes) consider(static_cast<double>(change.at.count()));
    consider_turns(consider);
    // Instants are whole picoseconds: without this rule, two ops that end half a picosecond apart
    // could ask for a server in either order.
    for (const Flow* flow : flows())
      if (flow->rate > 0) next = std::min(next, now_ + std::round(flow->left / flow->rate));
    REHEARSE_CHECK(std::isfinite(next), "the graph never ends");
    for (Flow* flow : flows()) flow->left -= flow->rate * (next - now_);
    now_ = next;
  }

  const Graph& g_;
  std::vector<Running> ops_;
  std::vector<NaiveTurn> turns_;               // per capacity
  std::vector<std::vector<Traffic>> traffic_;  // per transfer and flow
  std::vector<std::vector<double>> slot_free_;
  std::uint64_t asked_ = 0;
  double now_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace

Timeline naive_run(const Graph& graph) { return NaiveEngine(graph).run(); }

}  // namespace rehearse::test
