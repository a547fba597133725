#include "models/sharing/pack.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

#include "sim/base/watch.h"

namespace rehearse::sharing {
namespace {

constexpr std::size_t kMostInTurns = 4;
constexpr std::size_t kMostSlices = 7;
/// The least gain of a join.
constexpr double kWorth = 1e-6;

/// Jobs that share, and their course from the common start.
struct Group {
  SharedHow how = SharedHow::kAlone;
  std::vector<std::size_t> jobs = {};
  std::vector<std::string> slices = {};
  std::vector<double> rates = {};
  std::vector<std::pair<double, double>> ranges = {};
  std::vector<Seconds> ends = {};
  Seconds length = Seconds::s(0);
};

class Packer {
 public:
  Packer(std::span<const PackJob> jobs, const Site& site, Goal goal)
      : jobs_(jobs), site_(site), goal_(goal) {}

  Result<Packing> run() {
    std::vector<Group> groups;
    for (std::size_t j = 0; j < jobs_.size(); ++j)
      groups.push_back(
          {.jobs = {j}, .rates = {1}, .ends = {jobs_[j].work}, .length = jobs_[j].work});
    Packing best = schedule(groups);
    const Packing alone = best;
    for (;;) {
      // A join leaves fewer groups. Usually several remain at the end.
      if (!report(1 - static_cast<double>(groups.size()) / static_cast<double>(jobs_.size())))
        return fail("stopped");
      std::optional<std::vector<Group>> better;
      for (const std::vector<std::size_t>& members : candidates(groups))
        for (const Group& joined : joins(groups, members)) {
          std::vector<Group> tried = {joined};
          for (std::size_t g = 0; g < groups.size(); ++g)
            if (std::ranges::find(members, g) == members.end()) tried.push_back(groups[g]);
          Packing packing = schedule(tried);
          if (!improves(packing, best)) continue;
          best = std::move(packing);
          better = std::move(tried);
        }
      if (!better) break;
      groups = std::move(*better);
    }
    best.makespan_alone = alone.makespan;
    best.held_alone = alone.held;
    best.late_alone = alone.late;
    return best;
  }

 private:
  using Worth = std::tuple<double, double, double>;

  Worth worth(const Packing& p) const {
    double ends = 0;
    for (const Seconds end : p.finish) ends += end.s();
    switch (goal_) {
      case Goal::kThroughput: return {p.makespan.s(), ends, p.held.s()};
      case Goal::kDeadline: return {p.late.s(), p.makespan.s(), ends};
      case Goal::kCost: return {p.held.s(), p.makespan.s(), ends};
    }
    return {};
  }

  bool improves(const Packing& a, const Packing& b) const {
    const auto [a1, a2, a3] = worth(a);
    const auto [b1, b2, b3] = worth(b);
    const auto less = [](double x, double y) { return x < y - kWorth * y; };
    if (less(a1, b1) || less(b1, a1)) return less(a1, b1);
    if (less(a2, b2) || less(b2, a2)) return less(a2, b2);
    return less(a3, b3);
  }

  /// The groups to join: all pairs, and sets of several unshared jobs of similar length, since two
  /// small slices may gain nothing where seven do.
  std::vector<std::vector<std::size_t>> candidates(const std::vector<Group>& groups) const {
    std::vector<std::vector<std::size_t>> found;
    std::vector<std::size_t> alone;
    for (std::size_t a = 0; a < groups.size(); ++a) {
      for (std::size_t b = a + 1; b < groups.size(); ++b) found.push_back({a, b});
      if (groups[a].how == SharedHow::kAlone) alone.push_back(a);
    }
    std::ranges::stable_sort(
        alone, [&](std::size_t a, std::size_t b) { return groups[a].length > groups[b].length; });
    for (std::size_t count = 3; count <= std::min(kMostSlices, alone.size()); ++count)
      for (std::size_t at = 0; at + count <= alone.size(); ++at)
        found.emplace_back(alone.begin() + static_cast<std::ptrdiff_t>(at),
                           alone.begin() + static_cast<std::ptrdiff_t>(at + count));
    return found;
  }

  const std::vector<Group>& joins(const std::vector<Group>& groups,
                                  const std::vector<std::size_t>& members) {
    std::vector<std::size_t> jobs;
    for (const std::size_t g : members)
      jobs.insert(jobs.end(), groups[g].jobs.begin(), groups[g].jobs.end());
    std::ranges::sort(jobs);
    const auto [at, fresh] = known_.try_emplace(jobs);
    if (fresh) {
      for (const auto way : {&Packer::on_slices, &Packer::together, &Packer::in_turns})
        if (std::optional<Group> group = (this->*way)(jobs))
          at->second.push_back(std::move(*group));
    }
    return at->second;
  }

  std::optional<Bytes> memory_of(const std::vector<std::size_t>& jobs) const {
    Bytes sum = Bytes::b(0);
    for (const std::size_t j : jobs) {
      if (!jobs_[j].memory) return std::nullopt;
      sum += *jobs_[j].memory;
    }
    return sum;
  }

  bool fit_together(const std::vector<std::size_t>& jobs) const {
    const std::optional<Bytes> memory = memory_of(jobs);
    return memory && *memory <= site_.memory;
  }

  std::optional<Group> together(const std::vector<std::size_t>& jobs) {
    if (jobs.size() != 2 || !site_.pair || !fit_together(jobs)) return std::nullopt;
    if (jobs_[jobs[0]].gpus != 1 || jobs_[jobs[1]].gpus != 1) return std::nullopt;
    const auto shares = site_.pair(jobs[0], jobs[1]);
    if (!shares) return std::nullopt;
    const std::vector<double> rates = {shares->first, shares->second};
    return shared(SharedHow::kTogether, jobs, rates, [&](const std::vector<std::size_t>& left) {
      return left.size() == 2 ? rates : std::vector<double>{1};
    });
  }

  std::optional<std::vector<double>> turn_rates(const std::vector<std::size_t>& jobs) const {
    std::vector<TurnTaker> takers;
    for (const std::size_t j : jobs) {
      const PackJob& job = jobs_[j];
      if (!job.exposed || !job.like) return std::nullopt;
      takers.push_back({.name = job.name,
                        .compute = job.like->step - *job.exposed,
                        .exposed = *job.exposed,
                        .hidden = job.hidden});
    }
    const Result<Turns> turns = take_turns(takers, site_.links);
    if (!turns) return std::nullopt;  // iterations are too unequal
    return turns->rates;
  }

  std::optional<Group> in_turns(const std::vector<std::size_t>& jobs) {
    if (jobs.size() > kMostInTurns || !fit_together(jobs)) return std::nullopt;
    for (const std::size_t j : jobs)
      if (jobs_[j].gpus != jobs_[jobs.front()].gpus) return std::nullopt;
    const auto rates = turn_rates(jobs);
    if (!rates) return std::nullopt;
    return shared(SharedHow::kCrossover, jobs, *rates, [&](const std::vector<std::size_t>& left) {
      return turn_rates(left).value_or(std::vector<double>(left.size(), 0));
    });
  }

  /// Runs a group whose rates change when a job of it ends.
  template <class RatesOf>
  std::optional<Group> shared(SharedHow how, const std::vector<std::size_t>& jobs,
                              const std::vector<double>& rates, const RatesOf& rates_of) const {
    Group group{.how = how,
                .jobs = jobs,
                .rates = rates,
                .ends = std::vector<Seconds>(jobs.size(), Seconds::s(0))};
    std::vector<std::size_t> left = jobs;
    std::map<std::size_t, double> work;
    for (const std::size_t j : jobs) work[j] = jobs_[j].work.s();
    double now = 0;
    while (!left.empty()) {
      const std::vector<double> speed = left.size() == jobs.size() ? rates : rates_of(left);
      std::size_t first = 0;
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (!(speed[i] > 0)) return std::nullopt;
        if (work[left[i]] / speed[i] < work[left[first]] / speed[first]) first = i;
      }
      const double passed = work[left[first]] / speed[first];
      now += passed;
      for (std::size_t i = 0; i < left.size(); ++i) work[left[i]] -= passed * speed[i];
      const auto at = std::ranges::find(jobs, left[first]) - jobs.begin();
      group.ends[static_cast<std::size_t>(at)] = Seconds::s(now);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(first));
    }
    group.length = Seconds::s(now);
    return group;
  }

  Estimate<double> slice_rate(std::size_t job, std::size_t kind) const {
    const auto& own = jobs_[job].slice_rates;
    const auto found = own.find(site_.slices[kind].name);
    const double rate = site_.slices[kind].rate;
    return found == own.end() ? Estimate<double>{rate, rate, rate, Provenance::kDatasheet}
                              : found->second;
  }

  /// Whether instances of these kinds fit on one GPU. REQUIRES: the largest first.
  bool placeable(const std::vector<std::size_t>& kinds, std::size_t at, std::uint32_t taken) const {
    if (at == kinds.size()) return true;
    const fleet::SliceKind& kind = site_.slices[kinds[at]];
    for (const std::uint32_t start : kind.starts) {
      const std::uint32_t bits = ((1U << kind.size) - 1) << start;
      if ((bits & taken) == 0 && placeable(kinds, at + 1, taken | bits)) return true;
    }
    return false;
  }

  bool lie_on_a_gpu(std::vector<std::size_t> kinds) const {
    std::ranges::sort(kinds, [&](std::size_t a, std::size_t b) {
      return std::pair(site_.slices[b].size, b) < std::pair(site_.slices[a].size, a);
    });
    return placeable(kinds, 0, 0);
  }

  /// Puts each job on the smallest slice that it fits. Then the last job to end gets a faster
  /// slice, as long as there is one.
  std::optional<Group> on_slices(const std::vector<std::size_t>& jobs) {
    if (site_.slices.empty() || jobs.size() > kMostSlices) return std::nullopt;
    std::vector<std::size_t> kinds;
    for (const std::size_t j : jobs) {
      if (jobs_[j].gpus != 1 || !jobs_[j].memory) return std::nullopt;
      std::size_t kind = 0;
      while (kind < site_.slices.size() && *jobs_[j].memory > site_.slices[kind].memory) ++kind;
      if (kind == site_.slices.size()) return std::nullopt;
      kinds.push_back(kind);
    }
    if (!lie_on_a_gpu(kinds)) return std::nullopt;
    const auto end = [&](std::size_t i) {
      return jobs_[jobs[i]].work / slice_rate(jobs[i], kinds[i]).value;
    };
    for (;;) {
      std::size_t last = 0;
      for (std::size_t i = 1; i < jobs.size(); ++i)
        if (end(i) > end(last)) last = i;
      const std::size_t before = kinds[last];
      const Seconds slow = end(last);
      do ++kinds[last];
      while (kinds[last] < site_.slices.size() &&
             !(site_.slices[kinds[last]].memory >= *jobs_[jobs[last]].memory && end(last) < slow &&
               lie_on_a_gpu(kinds)));
      if (kinds[last] < site_.slices.size()) continue;
      kinds[last] = before;
      break;
    }
    Group group{.how = SharedHow::kSlices, .jobs = jobs};
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      group.slices.push_back(site_.slices[kinds[i]].name);
      const Estimate<double> rate = slice_rate(jobs[i], kinds[i]);
      group.rates.push_back(rate.value);
      group.ranges.emplace_back(rate.low, rate.high);
      group.ends.push_back(end(i));
      group.length = std::max(group.length, group.ends.back());
    }
    return group;
  }

  Packing schedule(const std::vector<Group>& groups) const {
    std::vector<std::size_t> order(groups.size());
    for (std::size_t g = 0; g < order.size(); ++g) order[g] = g;
    const auto due = [&](const Group& g) {
      double first = std::numeric_limits<double>::infinity();
      for (const std::size_t j : g.jobs)
        if (jobs_[j].deadline) first = std::min(first, jobs_[j].deadline->s());
      return first;
    };
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      if (goal_ == Goal::kDeadline && due(groups[a]) != due(groups[b]))
        return due(groups[a]) < due(groups[b]);
      return groups[a].length > groups[b].length;
    });
    Packing packing;
    packing.finish.assign(jobs_.size(), Seconds::s(0));
    packing.started = packing.finish;
    std::vector<std::pair<Seconds, std::uint32_t>> free;
    for (std::uint32_t gpu = 0; gpu < site_.gpus; ++gpu) free.emplace_back(Seconds::s(0), gpu);
    for (const std::size_t g : order) {
      const Group& group = groups[g];
      std::ranges::sort(free);
      const std::uint32_t count = jobs_[group.jobs.front()].gpus;
      Placed placed{.how = group.how,
                    .jobs = group.jobs,
                    .slices = group.slices,
                    .rates = group.rates,
                    .ranges = group.ranges,
                    .start = free[count - 1].first};
      placed.end = placed.start + group.length;
      for (std::uint32_t i = 0; i < count; ++i) {
        free[i].first = placed.end;
        placed.gpus.push_back(free[i].second);
      }
      std::ranges::sort(placed.gpus);
      Seconds work = Seconds::s(0);
      for (std::size_t i = 0; i < group.jobs.size(); ++i) {
        const std::size_t j = group.jobs[i];
        packing.started[j] = placed.start;
        packing.finish[j] = placed.start + group.ends[i];
        if (jobs_[j].deadline)
          packing.late += std::max(Seconds::s(0), packing.finish[j] - *jobs_[j].deadline);
        work += jobs_[j].work;
      }
      if (group.length.s() > 0) placed.gain = work / group.length;
      packing.held += group.length * static_cast<double>(count);
      packing.makespan = std::max(packing.makespan, placed.end);
      packing.placements.push_back(std::move(placed));
    }
    std::ranges::stable_sort(packing.placements, {}, &Placed::start);
    return packing;
  }

  std::span<const PackJob> jobs_;
  const Site& site_;
  Goal goal_;
  std::map<std::vector<std::size_t>, std::vector<Group>> known_ = {};  // what sets of jobs can do
};

}  // namespace

Result<Packing> pack(std::span<const PackJob> jobs, const Site& site, Goal goal) {
  if (jobs.empty()) return fail("no job to place");
  if (jobs.size() > kMostPacked)
    return fail(fmt::format("{} jobs to place", jobs.size()),
                fmt::format("{} at most", kMostPacked),
                "rehearse fleet runs longer lists under a policy");
  for (const PackJob& job : jobs) {
    if (job.gpus == 0 || job.gpus > site.gpus)
      return fail(fmt::format("job '{}' asks for {} GPUs", job.name, job.gpus),
                  fmt::format("1 to {}", site.gpus));
    if (job.memory && *job.memory > site.memory)
      return fail(fmt::format("job '{}' needs {}, and a GPU has {}", job.name,
                              to_string(*job.memory), to_string(site.memory)));
    if (!(job.work.s() >= 0) || !std::isfinite(job.work.s()))
      return fail(fmt::format("job '{}' has no duration", job.name));
    if (job.exposed && job.like && *job.exposed > job.like->step)
      return fail(fmt::format("job '{}' exposes more communication than its step takes", job.name));
    if (job.exposed && job.like && job.hidden > (job.like->step - *job.exposed) * (1 + 1e-9))
      return fail(fmt::format("job '{}' overlaps more communication than it computes", job.name));
    for (const auto& [kind, rate] : job.slice_rates)
      if (!(rate.value > 0) || !std::isfinite(rate.value))
        return fail(fmt::format("job '{}' makes no progress on {}", job.name, kind));
  }
  return Packer(jobs, site, goal).run();
}

}  // namespace rehearse::sharing
