#include "tests/support/naive_fleet.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <random>

namespace rehearse::test {
namespace {

using fleet::Fleet;
using fleet::Job;
using fleet::Options;
using fleet::Placement;
using fleet::Policy;
using fleet::SliceKind;

using Gpus = std::vector<std::uint32_t>;  // positions taken, by GPU

struct Place {
  std::vector<std::uint32_t> gpus;
  std::uint32_t positions = 0;
  double rate = 1;
};

class Naive {
 public:
  Naive(const Fleet& f, const std::vector<Job>& jobs, const Options& options)
      : f_(f), jobs_(jobs), o_(options), gpus_(f.gpus(), 0), states_(jobs.size()) {
    for (std::uint32_t i = 0; i < jobs.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return jobs[a].submit < jobs[b].submit;
    });
    for (std::uint32_t i = 0; i < jobs.size(); ++i) states_[i].left = jobs[i].work.count();
  }

  std::vector<NaiveStay> run() {
    for (;;) {
      std::optional<std::int64_t> next;
      for (const std::uint32_t j : order_) {
        const State& s = states_[j];
        if (s.phase == Phase::kToCome) next = least(next, jobs_[j].submit.count());
        if (s.phase == Phase::kRuns) next = least(next, s.end);
      }
      if (!next) return stays_;
      now_ = *next;
      for (const std::uint32_t j : order_)
        if (states_[j].phase == Phase::kRuns && states_[j].end == now_) {
          leave(j);
          states_[j].phase = Phase::kDone;
        }
      for (const std::uint32_t j : order_)
        if (states_[j].phase == Phase::kToCome && jobs_[j].submit.count() == now_) arrive(j);
      schedule();
    }
  }

 private:
  enum class Phase { kToCome, kWaits, kRuns, kDone };
  struct State {
    Phase phase = Phase::kToCome;
    std::int64_t left = 0, overhead = 0, from = 0, end = 0;
    Place place = {};
  };

  static std::int64_t least(std::optional<std::int64_t> a, std::int64_t b) {
    return a ? std::min(*a, b) : b;
  }

  std::uint32_t free_in(const Gpus& gpus, std::uint32_t node) const {
    std::uint32_t free = 0;
    for (std::uint32_t i = 0; i < f_.gpus_per_node; ++i)
      free += gpus[node * f_.gpus_per_node + i] == 0;
    return free;
  }

  void take(const Gpus& gpus, std::uint32_t node, std::uint32_t count, Place& place) const {
    for (std::uint32_t i = 0; i < f_.gpus_per_node && count > 0; ++i) {
      const std::uint32_t gpu = node * f_.gpus_per_node + i;
      if (gpus[gpu] != 0) continue;
      place.gpus.push_back(gpu);
      --count;
    }
  }

  /// The node with the least free capacity that is sufficient.
  std::optional<std::uint32_t> tightest(const Gpus& gpus, const std::vector<std::uint32_t>& nodes,
                                        std::uint32_t count) const {
    std::optional<std::uint32_t> best;
    for (const std::uint32_t n : nodes)
      if (free_in(gpus, n) >= count && (!best || free_in(gpus, n) < free_in(gpus, *best))) best = n;
    return best;
  }

  std::optional<Place> whole(const Gpus& gpus, std::uint32_t count) const {
    Place place{{}, (1U << f_.positions) - 1, 1};
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t n = 0; n < f_.nodes; ++n) nodes.push_back(n);
    const auto total = [&](const std::vector<std::uint32_t>& of) {
      std::uint32_t sum = 0;
      for (const std::uint32_t n : of) sum += free_in(gpus, n);
      return sum;
    };
    if (total(nodes) < count) return std::nullopt;
    if (o_.placement == Placement::kSpread) {
      std::vector<std::uint32_t> of(f_.nodes, 0);
      for (std::uint32_t k = 0; k < count; ++k) {
        std::uint32_t best = 0;
        for (const std::uint32_t n : nodes)
          if (free_in(gpus, n) - of[n] > free_in(gpus, best) - of[best]) best = n;
        ++of[best];
      }
      for (const std::uint32_t n : nodes) take(gpus, n, of[n], place);
      return place;
    }
    if (count <= f_.gpus_per_node) {
      if (const auto node = tightest(gpus, nodes, count)) {
        take(gpus, *node, count, place);
        return place;
      }
      if (o_.placement == Placement::kRail) return std::nullopt;
    } else if (o_.placement == Placement::kRail) {
      const std::uint32_t per_pod = f_.nodes_per_pod == 0 ? f_.nodes : f_.nodes_per_pod;
      std::vector<std::uint32_t> best;
      for (std::uint32_t first = 0; first < f_.nodes; first += per_pod) {
        std::vector<std::uint32_t> pod;
        for (std::uint32_t n = first; n < std::min(first + per_pod, f_.nodes); ++n)
          pod.push_back(n);
        if (total(pod) >= count && (best.empty() || total(pod) < total(best))) best = pod;
      }
      if (best.empty()) return std::nullopt;
      nodes = best;
    }
    while (count > 0) {
      std::uint32_t most = nodes.front();
      for (const std::uint32_t n : nodes)
        if (free_in(gpus, n) > free_in(gpus, most)) most = n;
      if (free_in(gpus, most) > count) most = *tightest(gpus, nodes, count);
      const std::uint32_t taken = std::min(count, free_in(gpus, most));
      take(gpus, most, taken, place);
      count -= taken;
      std::erase(nodes, most);
    }
    return place;
  }

  std::uint32_t room(std::uint32_t taken) const {
    std::uint32_t sum = 0;
    for (const SliceKind& k : f_.slices)
      for (const std::uint32_t s : k.starts)
        if ((((1U << k.size) - 1) << s & taken) == 0) sum += k.size;
    return sum;
  }

  std::uint32_t start_on(const SliceKind& kind, std::uint32_t taken) const {
    std::uint32_t best = 0;
    for (const std::uint32_t s : kind.starts) {
      const std::uint32_t bits = ((1U << kind.size) - 1) << s;
      if ((bits & taken) != 0) continue;
      if (best == 0 || room(taken | bits) > room(taken | best)) best = bits;
    }
    return best;
  }

  std::optional<Place> find(const Gpus& gpus, std::uint32_t j) const {
    const Job& job = jobs_[j];
    bool any = false;
    if (job.gpus == 1 && job.memory)
      for (const SliceKind& kind : f_.slices) {
        if (*job.memory > kind.memory) continue;
        any = true;
        const std::uint32_t all = (1U << f_.positions) - 1;
        std::optional<std::uint32_t> best;
        for (std::uint32_t g = 0; g < gpus.size(); ++g) {
          if (gpus[g] == 0 || gpus[g] == all || start_on(kind, gpus[g]) == 0) continue;
          const auto key = [&](std::uint32_t x) {
            return std::pair(-std::popcount(gpus[x]), gpus[x]);
          };
          if (!best || key(g) < key(*best)) best = g;
        }
        if (best) return Place{{*best}, start_on(kind, gpus[*best]), kind.rate};
        if (const auto fresh = whole(gpus, 1))
          return Place{fresh->gpus, start_on(kind, 0), kind.rate};
      }
    return any ? std::nullopt : whole(gpus, job.gpus);
  }

  static void free_up(Gpus& gpus, const Place& place) {
    for (const std::uint32_t g : place.gpus) gpus[g] &= ~place.positions;
  }

  void arrive(std::uint32_t j) {
    // A user who comes back starts from the charge of the least charged of the others.
    const std::string& user = jobs_[j].user;
    std::optional<std::int64_t> others;
    bool active = false;
    for (const std::uint32_t k : order_) {
      const Phase phase = states_[k].phase;
      if (phase != Phase::kWaits && phase != Phase::kRuns) continue;
      if (jobs_[k].user == user)
        active = true;
      else
        others = least(others, charged_[jobs_[k].user]);
    }
    charged_[user] = active ? charged_[user] : std::max(charged_[user], others.value_or(0));
    states_[j].phase = Phase::kWaits;
  }

  void leave(std::uint32_t j) {
    State& s = states_[j];
    free_up(gpus_, s.place);
    stays_.push_back({j, s.from, now_, s.place.gpus, s.place.positions});
  }

  void start(std::uint32_t j, const Place& place) {
    State& s = states_[j];
    for (const std::uint32_t g : place.gpus) gpus_[g] |= place.positions;
    s.phase = Phase::kRuns;
    s.from = now_;
    s.place = place;
    s.end = now_ + s.overhead +
            static_cast<std::int64_t>(std::ceil(static_cast<double>(s.left) / place.rate));
    charged_[jobs_[j].user] += std::popcount(place.positions) *
                               static_cast<std::int64_t>(place.gpus.size()) *
                               ((s.left + 999) / 1000);
  }

  std::vector<std::uint32_t> waiting() const {
    std::vector<std::uint32_t> who;
    for (const std::uint32_t j : order_)
      if (states_[j].phase == Phase::kWaits) who.push_back(j);
    const auto cost = [&](std::uint32_t j) { return states_[j].left + states_[j].overhead; };
    if (o_.policy == Policy::kShortest)
      std::stable_sort(who.begin(), who.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return cost(a) < cost(b); });
    if (o_.policy == Policy::kFairShare)
      std::stable_sort(who.begin(), who.end(), [&](std::uint32_t a, std::uint32_t b) {
        return charged_.at(jobs_[a].user) < charged_.at(jobs_[b].user);
      });
    return who;
  }

  /// Running jobs, the first to end first; jobs that end together in the order of arrival.
  std::vector<std::uint32_t> by_end() const {
    std::vector<std::uint32_t> who;
    for (const std::uint32_t j : order_)
      if (states_[j].phase == Phase::kRuns) who.push_back(j);
    std::stable_sort(who.begin(), who.end(), [&](std::uint32_t a, std::uint32_t b) {
      return states_[a].end < states_[b].end;
    });
    return who;
  }

  bool make_room(std::uint32_t j) {
    std::vector<std::uint32_t> who = by_end(), victims;
    std::reverse(who.begin(), who.end());
    Gpus gpus = gpus_;
    for (const std::uint32_t v : who) {
      if (states_[v].end - now_ <= states_[j].left + states_[j].overhead) return false;
      victims.push_back(v);
      free_up(gpus, states_[v].place);
      if (!find(gpus, j)) continue;
      for (const std::uint32_t victim : victims) {
        State& s = states_[victim];
        leave(victim);
        const std::int64_t passed = now_ - s.from, work = jobs_[victim].work.count();
        const std::int64_t done = work - s.left + std::max<std::int64_t>(0, passed - s.overhead);
        const std::int64_t every = o_.checkpoint.count();
        s.left = every == 0 ? work - done : std::min(s.left, work - done / every * every);
        s.overhead = o_.restart.count();
        s.phase = Phase::kWaits;
      }
      return true;
    }
    return false;
  }

  void schedule() {
    for (;;) {
      const std::vector<std::uint32_t> who = waiting();
      if (who.empty()) return;
      if (const auto place = find(gpus_, who.front())) {
        start(who.front(), *place);
      } else if (!o_.preempt || !make_room(who.front())) {
        break;
      }
    }
    if (o_.policy != Policy::kBackfill) return;
    const std::vector<std::uint32_t> who = waiting();
    for (std::size_t i = 1; i < who.size(); ++i) {
      const auto place = find(gpus_, who[i]);
      if (!place) continue;
      const State saved = states_[who[i]];
      const std::int64_t before = starts_at(who.front());
      start(who[i], *place);
      if (starts_at(who.front()) <= before) continue;
      free_up(gpus_, *place);
      states_[who[i]] = saved;
    }
  }

  /// The first instant at which a job fits, if nothing else starts.
  std::int64_t starts_at(std::uint32_t j) const {
    Gpus gpus = gpus_;
    for (const std::uint32_t other : by_end()) {
      free_up(gpus, states_[other].place);
      if (find(gpus, j)) return states_[other].end;
    }
    return -1;
  }

  const Fleet& f_;
  const std::vector<Job>& jobs_;
  const Options& o_;
  Gpus gpus_;
  std::vector<std::uint32_t> order_ = {};
  std::vector<State> states_;
  std::map<std::string, std::int64_t> charged_ = {};
  std::vector<NaiveStay> stays_ = {};
  std::int64_t now_ = 0;
};

}  // namespace

std::vector<NaiveStay> naive_fleet(const Fleet& fleet, const std::vector<Job>& jobs,
                                   const Options& options) {
  return Naive(fleet, jobs, options).run();
}

std::vector<SliceKind> a100_slices() {
  return {{"1g.5gb", Bytes::gib(4.75), 1, {0, 1, 2, 3, 4, 5, 6}, 1.0 / 7},
          {"1g.10gb", Bytes::gib(9.62), 2, {0, 2, 4, 6}, 1.0 / 7},
          {"2g.10gb", Bytes::gib(9.62), 2, {0, 2, 4}, 2.0 / 7},
          {"3g.20gb", Bytes::gib(19.5), 4, {0, 4}, 3.0 / 7},
          {"4g.20gb", Bytes::gib(19.5), 4, {0}, 4.0 / 7}};
}

RandomFleet random_fleet(std::uint64_t seed, bool slices, bool rail) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t n) {
    return static_cast<std::uint32_t>(random() % (n + 1));
  };
  RandomFleet made;
  made.fleet = {.nodes = 1 + up_to(5), .gpus_per_node = 1 + up_to(3)};
  made.fleet.nodes_per_pod = up_to(1) == 0 ? 0 : 1 + up_to(made.fleet.nodes - 1);
  if (slices) {
    made.fleet.positions = 8;
    made.fleet.slices = a100_slices();
  }
  const std::uint32_t pod_nodes =
      made.fleet.nodes_per_pod == 0 ? made.fleet.nodes : made.fleet.nodes_per_pod;
  const std::uint32_t largest =
      rail ? std::min(pod_nodes, made.fleet.nodes) * made.fleet.gpus_per_node : made.fleet.gpus();
  const std::uint32_t count = 1 + up_to(39);
  std::int64_t now = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (up_to(2) != 0) now += up_to(20);
    fleet::Job job{.name = "job " + std::to_string(i),
                   .user = std::string(1, static_cast<char>('a' + up_to(3))),
                   .submit = Nanoseconds(now * 1000),
                   .work = Nanoseconds(std::int64_t{up_to(40)} * 1000),
                   .gpus = up_to(2) == 0 ? 1 + up_to(largest - 1) : 1};
    if (slices && up_to(3) != 0) job.memory = Bytes::gib(up_to(24));
    made.jobs.push_back(std::move(job));
  }
  // Not all lists are in the order of arrival.
  if (up_to(1) == 0) std::reverse(made.jobs.begin(), made.jobs.end());
  return made;
}

}  // namespace rehearse::test
