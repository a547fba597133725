#include "tests/support/naive_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace rehearse::test {
namespace {

using namespace graph;

enum class State { kBlocked, kWaiting, kLatency, kFlowing, kEnded };

struct Running {
  State state = State::kBlocked;
  std::uint32_t ended_before = 0;  // predecessors that have ended
  std::uint64_t asked = 0;         // order of asking for the server
  double latency_ends = 0;         // ps
  double left = 0;                 // work
  double rate = 0;                 // work per ps
  double start = 0;
  double end = 0;
};

/// Max-min fair rates by definition: raise all rates together; whoever meets a limit stops.
void share(const Graph& g, std::vector<Running>& ops) {
  std::vector<double> left;
  for (const Capacity& c : g.capacities()) left.push_back(c.rate * 1e-12);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].rate = 0;
    if (ops[i].state == State::kFlowing) open.push_back(i);
  }
  std::vector<int> priorities;
  for (const std::size_t i : open) priorities.push_back(g.demand(OpId(i)).priority);
  std::sort(priorities.rbegin(), priorities.rend());
  priorities.erase(std::unique(priorities.begin(), priorities.end()), priorities.end());
  for (const int priority : priorities) {
    std::vector<std::size_t> rising;
    for (const std::size_t i : open)
      if (g.demand(OpId(i)).priority == priority) rising.push_back(i);
    while (!rising.empty()) {
      double step = std::numeric_limits<double>::infinity();
      std::vector<double> weight(left.size(), 0);
      for (const std::size_t i : rising)
        for (const CapacityId c : g.demand(OpId(i)).capacities)
          weight[c.index()] += g.demand(OpId(i)).weight;
      for (std::size_t c = 0; c < left.size(); ++c)
        if (weight[c] > 0) step = std::min(step, std::max(0.0, left[c]) / weight[c]);
      for (const std::size_t i : rising) {
        ops[i].rate += step * g.demand(OpId(i)).weight;
        for (const CapacityId c : g.demand(OpId(i)).capacities)
          left[c.index()] -= step * g.demand(OpId(i)).weight;
      }
      std::erase_if(rising, [&](std::size_t i) {
        const auto& path = g.demand(OpId(i)).capacities;
        return std::any_of(path.begin(), path.end(), [&](CapacityId c) {
          return left[c.index()] <= 1e-9 * g.capacities()[c.index()].rate * 1e-12;
        });
      });
    }
  }
}

}  // namespace

Timeline naive_run(const Graph& g) {
  std::vector<Running> ops(g.size());
  std::vector<std::vector<OpId>> before(g.size());
  for (std::size_t i = 0; i < g.size(); ++i)
    for (const OpId to : g.successors(OpId(i))) before[to.index()].push_back(OpId(i));
  std::vector<std::vector<double>> slot_free(g.servers().size());
  for (std::size_t s = 0; s < g.servers().size(); ++s) slot_free[s].assign(g.servers()[s].slots, 0);
  std::uint64_t asked = 0;
  double now = 0;
  std::size_t ended = 0;

  const auto begin = [&](std::size_t i) {
    ops[i].start = now;
    ops[i].state = State::kLatency;
    ops[i].latency_ends = now + static_cast<double>(g.duration(OpId(i)).count());
  };
  while (ended < g.size()) {
    // All that happens at this instant, until nothing more does.
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        Running& op = ops[i];
        if (op.state == State::kLatency && op.latency_ends <= now) {
          op.state = State::kFlowing;
          op.left = g.work(OpId(i));
          again = true;
        }
        if (op.state == State::kFlowing &&
            op.left <= std::max(op.rate * 0.51, 1e-12 * g.work(OpId(i)))) {
          op.state = State::kEnded;
          op.end = now;
          ++ended;
          again = true;
          if (const auto s = g.demand(OpId(i)).server) {
            auto& slots = slot_free[s->index()];
            const auto busy =
                std::find(slots.begin(), slots.end(), std::numeric_limits<double>::infinity());
            *busy = now + static_cast<double>(g.servers()[s->index()].turnaround.count());
          }
          for (const OpId to : g.successors(OpId(i))) ++ops[to.index()].ended_before;
        }
      }
      for (std::size_t i = 0; i < ops.size(); ++i)
        if (ops[i].state == State::kBlocked && ops[i].ended_before >= g.need(OpId(i))) {
          ops[i].state = State::kWaiting;
          ops[i].asked = ++asked;
          again = true;
        }
      for (std::size_t i = 0; i < ops.size(); ++i)
        if (ops[i].state == State::kWaiting && !g.demand(OpId(i)).server) {
          begin(i);
          again = true;
        }
      if (again) continue;  // servers choose when all that is due has asked
      for (std::size_t s = 0; s < slot_free.size(); ++s)
        for (double& slot : slot_free[s]) {
          if (slot > now) continue;
          std::optional<std::size_t> next;
          for (std::size_t i = 0; i < ops.size(); ++i) {
            if (ops[i].state != State::kWaiting || g.demand(OpId(i)).server != ServerId(s))
              continue;
            const auto rank = [&](std::size_t k) {
              const int priority =
                  g.servers()[s].policy == Policy::kPriority ? g.demand(OpId(k)).priority : 0;
              return std::pair(-priority, ops[k].asked);
            };
            if (!next || rank(i) < rank(*next)) next = i;
          }
          if (!next) continue;
          slot = std::numeric_limits<double>::infinity();
          begin(*next);
          again = true;
        }
    }
    share(g, ops);
    double next = std::numeric_limits<double>::infinity();
    for (const Running& op : ops) {
      if (op.state == State::kLatency) next = std::min(next, op.latency_ends);
      // Instants are whole picoseconds: without this rule, two ops that end half a picosecond apart
      // could ask for a server in either order.
      if (op.state == State::kFlowing && op.rate > 0)
        next = std::min(next, now + std::round(op.left / op.rate));
    }
    for (const auto& slots : slot_free)
      for (const double slot : slots)
        if (slot > now) next = std::min(next, slot);
    if (ended == g.size()) break;
    REHEARSE_CHECK(std::isfinite(next), "the graph never ends");
    for (Running& op : ops)
      if (op.state == State::kFlowing) op.left -= op.rate * (next - now);
    now = next;
  }
  Timeline timeline;
  for (const Running& op : ops)
    timeline.ops.push_back(
        {Picoseconds(std::llround(op.start)), Picoseconds(std::llround(op.end)), std::nullopt});
  return timeline;
}

}  // namespace rehearse::test
