#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/core.h>

#include "sim/base/watch.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet/places.h"
#include "sim/fleet/running.h"
#include "sim/fleet/waiting.h"

namespace rehearse::fleet {
namespace {

/// The number of instants between two reports, some tens of milliseconds.
constexpr std::size_t kInstantsPerReport = 1 << 14;
constexpr Nanoseconds kForever(std::numeric_limits<std::int64_t>::max());

/// The progress of a job that has not ended.
struct Progress {
  Nanoseconds left{0};      ///< work
  Nanoseconds overhead{0};  ///< before it goes on
  std::uint32_t demand = 0;
  std::uint32_t user = 0;
  std::set<std::pair<Nanoseconds, Rank>>::iterator waits = {};
};

class Scheduler {
 public:
  Scheduler(const Fleet& fleet, std::span<const Job> jobs, const Options& options)
      : fleet_(fleet),
        jobs_(jobs),
        options_(options),
        order_(order_of(jobs)),
        places_(fleet, options.placement),
        running_(fleet, order_, options, places_),
        progress_(order_.size()),
        shares_(name_users()) {
    outcome_.jobs.resize(jobs.size());
    sort_demands();
  }

  Result<Outcome> run() {
    Rank arrived = 0;
    for (std::size_t instants = 1; arrived < order_.size() || !running_.ends().empty();
         ++instants) {
      if (instants % kInstantsPerReport == 0 &&
          !report(static_cast<double>(ended_) / static_cast<double>(order_.size())))
        return fail("stopped");
      const Nanoseconds next =
          std::min(arrived < order_.size() ? job(arrived).submit : kForever,
                   running_.ends().empty() ? kForever : running_.ends().begin()->first);
      if (next - job(0).submit > kLongestRun)
        return fail("the jobs take more than 31 years", {}, "more GPUs, or fewer jobs");
      measure(next);
      now_ = next;
      while (!running_.ends().empty() && running_.ends().begin()->first == now_)
        end(running_.ends().begin()->second);
      for (; arrived < order_.size() && job(arrived).submit == now_; ++arrived) arrive(arrived);
      schedule();
    }
    return finish();
  }

 private:
  static std::vector<std::uint32_t> order_of(std::span<const Job> jobs) {
    std::vector<std::uint32_t> order(jobs.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(
        order, [&](std::uint32_t a, std::uint32_t b) { return jobs[a].submit < jobs[b].submit; });
    return order;
  }

  const Job& job(Rank rank) const { return jobs_[order_[rank]]; }
  const Need& need(Rank rank) const { return needs_[progress_[rank].demand]; }
  JobRun& run_of(Rank rank) { return *outcome_.jobs[order_[rank]]; }

  std::size_t name_users() {
    std::map<std::string_view, std::uint32_t> users;
    for (Rank rank = 0; rank < order_.size(); ++rank)
      progress_[rank].user =
          users.emplace(job(rank).user, static_cast<std::uint32_t>(users.size())).first->second;
    return users.size();
  }

  Need need_of(const Job& job) const {
    Need need{.gpus = job.gpus};
    if (job.gpus != 1 || !job.memory) return need;
    for (std::size_t kind = 0; kind < fleet_.slices.size(); ++kind)
      if (*job.memory <= fleet_.slices[kind].memory) need.kinds |= 1U << kind;
    return need;
  }

  void sort_demands() {
    std::map<Need, std::vector<Rank>> ranks;
    for (Rank rank = 0; rank < order_.size(); ++rank) ranks[need_of(job(rank))].push_back(rank);
    for (auto& [need, of_need] : ranks) {
      for (const Rank rank : of_need)
        progress_[rank].demand = static_cast<std::uint32_t>(needs_.size());
      needs_.push_back(need);
      short_.emplace_back(options_.policy == Policy::kBackfill ? std::move(of_need)
                                                               : std::vector<Rank>());
    }
  }

  bool too_large(const Job& job) const {
    return job.gpus == 0 || (job.memory && fleet_.memory && *job.memory > *fleet_.memory);
  }

  // Waiting jobs.

  void arrive(Rank rank) {
    progress_[rank].left = job(rank).work;
    if (too_large(job(rank)) || !places_.possible(need(rank))) return;
    outcome_.jobs[order_[rank]] = JobRun{};
    wait(rank);
  }

  void wait(Rank rank) {
    Progress& p = progress_[rank];
    ++waiting_;
    if (options_.policy == Policy::kFairShare) return shares_.wait(p.user, rank);
    const bool by_work = options_.policy == Policy::kShortest;
    p.waits = queue_.emplace(by_work ? p.left + p.overhead : Nanoseconds(0), rank).first;
    if (options_.policy == Policy::kBackfill) short_[p.demand].set(rank, p.left);
  }

  Rank front() const {
    return options_.policy == Policy::kFairShare ? shares_.front() : queue_.begin()->second;
  }

  // Running jobs.

  void start(Rank rank, Spot spot) {
    Progress& p = progress_[rank];
    --waiting_;
    const std::int64_t parts = std::popcount(spot.positions);
    if (options_.policy == Policy::kFairShare) {
      shares_.start(
          p.user, rank,
          parts * static_cast<std::int64_t>(spot.gpus.size()) * ((p.left.count() + 999) / 1000));
    } else {
      queue_.erase(p.waits);
    }
    if (options_.policy == Policy::kBackfill) short_[p.demand].set(rank, std::nullopt);
    JobRun& run = run_of(rank);
    if (run.preemptions == 0) run.start = now_;
    run.nodes = running_.nodes_of(spot);
    run.slice = spot.slice;
    run.gpus = spot.gpus;
    places_.take(spot);
    held_ += static_cast<double>(parts) * static_cast<double>(spot.gpus.size());
    running_.start(rank, std::move(spot), p.left, p.overhead, now_);
    since_.resize(order_.size(), Nanoseconds(0));
    since_[rank] = now_;
  }

  Running::Left stop(Rank rank) {
    Running::Left left = running_.stop(rank, now_);
    JobRun& run = run_of(rank);
    run.held += left.held;
    run.restarting += left.restarting;
    places_.give_back(left.spot);
    held_ -= static_cast<double>(std::popcount(left.spot.positions)) *
             static_cast<double>(left.spot.gpus.size());
    outcome_.stays.push_back(
        {order_[rank], since_[rank], now_, left.spot.gpus, left.spot.positions});
    return left;
  }

  void end(Rank rank) {
    stop(rank);
    run_of(rank).end = now_;
    ++ended_;
    if (options_.policy == Policy::kFairShare) shares_.end(progress_[rank].user);
  }

  void preempt(Rank rank) {
    const Running::Left left = stop(rank);
    Progress& p = progress_[rank];
    JobRun& run = run_of(rank);
    const Nanoseconds done = job(rank).work - left.work;
    const Nanoseconds kept = options_.checkpoint.count() == 0
                                 ? done
                                 // A kept checkpoint stays, whatever the interval.
                                 : std::max(job(rank).work - p.left,
                                            Nanoseconds(done.count() / options_.checkpoint.count() *
                                                        options_.checkpoint.count()));
    run.lost += done - kept;
    ++run.preemptions;
    ++outcome_.preemptions;
    p.left = job(rank).work - kept;
    p.overhead = options_.restart;
    wait(rank);
  }

  // The order of starts.

  void schedule() {
    bool blocked = false;
    while (waiting_ > 0 && !blocked) {
      const Rank next = front();
      if (std::optional<Spot> spot = places_.find(need(next))) {
        start(next, std::move(*spot));
      } else {
        blocked = !(options_.preempt && make_room(next));
      }
    }
    if (blocked && options_.policy == Policy::kBackfill) backfill();
    fragmented_ = waiting_ > 0 && places_.positions_of(need(front())) <= places_.free_positions();
  }

  /// Preempts the jobs with the most remaining work, if that makes room and each of them has more
  /// remaining work than the job.
  bool make_room(Rank rank) {
    const Nanoseconds cost = progress_[rank].left + progress_[rank].overhead;
    Ahead ahead(places_, options_.placement, need(rank), fleet_.gpus_per_node);
    std::vector<Rank> victims;
    std::optional<Keep> room;
    for (auto at = running_.ends().rbegin(); at != running_.ends().rend() && !room; ++at) {
      if (at->first - now_ <= cost) return false;
      // A job that is slow in its place may have less remaining work than this job, and would
      // preempt it again.
      if (running_.work_left(at->second, now_) + options_.restart <= cost) continue;
      victims.push_back(at->second);
      ahead.give_back(running_.spot(at->second));
      room = ahead.fits();
    }
    if (!room) return false;
    const bool whole = need(rank).kinds == 0;
    for (const Rank victim : victims) {
      const Spot& spot = running_.spot(victim);
      // A slice whose neighbours stay makes no room for a job that needs the whole GPU.
      if (whole && spot.slice && !room->counted.contains(spot.gpus.front())) continue;
      if (std::ranges::any_of(spot.gpus,
                              [&](std::uint32_t gpu) { return places_.is_in(*room, gpu); }))
        preempt(victim);
    }
    return true;
  }

  struct Reservation {
    Rank rank;
    Nanoseconds at{0};
    Keep keep;
  };

  /// Reserves the time and place at which the first waiting job will fit, if running jobs keep to
  /// their ends.
  void reserve(Rank rank) {
    if (reserved_ && reserved_->rank == rank) return;
    Ahead ahead(places_, options_.placement, need(rank), fleet_.gpus_per_node);
    for (auto at = running_.ends().begin(); at != running_.ends().end();) {
      const Nanoseconds instant = at->first;
      for (; at != running_.ends().end() && at->first == instant; ++at)
        ahead.give_back(running_.spot(at->second));
      if (std::optional<Keep> keep = ahead.fits()) {
        reserved_ = Reservation{rank, instant, std::move(*keep)};
        return;
      }
    }
    REHEARSE_CHECK(false, "job {} does not fit even on an empty fleet", rank);
  }

  void backfill() {
    const Rank first = front();
    reserve(first);
    std::vector<Rank> from(needs_.size(), first + 1);
    for (;;) {
      const Nanoseconds window = reserved_->at - now_;
      std::optional<Rank> best;
      for (std::size_t demand = 0; demand < needs_.size(); ++demand) {
        if (short_[demand].empty() || !places_.fits(needs_[demand])) continue;
        const bool any = places_.fits(needs_[demand], &reserved_->keep);
        const auto found = short_[demand].first(from[demand], any ? kForever : window);
        if (found && (!best || *found < *best)) best = found;
      }
      if (!best) return;
      if (!go_before(*best)) from[progress_[*best].demand] = *best + 1;
    }
  }

  /// Starts the job if that delays no reservation.
  bool go_before(Rank rank) {
    const Progress& p = progress_[rank];
    Keep& keep = reserved_->keep;
    const auto is_short = [&](const Spot& spot) {
      return now_ + running_.time_on(rank, spot, p.left, p.overhead) <= reserved_->at;
    };
    std::optional<Spot> spot = places_.find(need(rank));
    const bool in_time = spot && is_short(*spot);
    if (!in_time) spot = places_.find(need(rank), &keep);
    if (!spot) return false;
    for (const std::uint32_t gpu : spot->gpus) {
      const bool counts =
          (places_.taken(gpu) == 0 || keep.counted.contains(gpu)) && places_.is_in(keep, gpu);
      if (!counts) continue;
      if (in_time) {
        if (spot->slice) keep.counted.insert(gpu);
      } else {
        keep.counted.erase(gpu);
        if (keep.domain != Keep::Domain::kGpu) --keep.spare;
      }
    }
    start(rank, std::move(*spot));
    return true;
  }

  // Results.

  void measure(Nanoseconds next) {
    const double time = static_cast<double>((next - now_).count());
    held_time_ += held_ * time;
    if (fragmented_) fragmented_time_ += static_cast<double>(places_.free_positions()) * time;
  }

  Outcome finish() {
    std::optional<Nanoseconds> first, last;
    for (Rank rank = 0; rank < order_.size(); ++rank) {
      const std::optional<JobRun>& run = outcome_.jobs[order_[rank]];
      if (!run) continue;
      if (!first) first = job(rank).submit;
      last = std::max(last.value_or(run->end), run->end);
    }
    if (!first) return std::move(outcome_);
    outcome_.makespan = *last - *first;
    const double all = static_cast<double>(outcome_.makespan.count()) * fleet_.gpus() *
                       static_cast<double>(fleet_.positions);
    if (all > 0) {
      outcome_.utilization = held_time_ / all;
      outcome_.fragmentation = fragmented_time_ / all;
    }
    return std::move(outcome_);
  }

  const Fleet& fleet_;
  std::span<const Job> jobs_;
  const Options& options_;
  std::vector<std::uint32_t> order_;  // indices of jobs by rank
  Places places_;
  Running running_;
  std::vector<Progress> progress_;  // by rank, as since_
  std::vector<Nanoseconds> since_ = {};
  Shares shares_;
  std::vector<Need> needs_ = {};
  std::vector<FirstShort> short_ = {};  // by demand
  std::set<std::pair<Nanoseconds, Rank>> queue_ = {};
  std::optional<Reservation> reserved_ = {};
  Nanoseconds now_{0};
  std::size_t waiting_ = 0, ended_ = 0;
  double held_ = 0, held_time_ = 0, fragmented_time_ = 0;
  bool fragmented_ = false;
  Outcome outcome_ = {};
};

Status check(const Fleet& fleet, std::span<const Job> jobs, const Options& options) {
  if (fleet.nodes == 0 || fleet.gpus_per_node == 0 || fleet.gpus_per_node > 64)
    return fail(
        fmt::format("{} nodes of {} GPUs is out of range", fleet.nodes, fleet.gpus_per_node),
        "1 node or more, with 1 to 64 GPUs each");
  if (fleet.positions == 0 || fleet.positions > 8)
    return fail(fmt::format("a GPU of {} positions", fleet.positions), "1 to 8");
  if (fleet.slices.size() > 32) return fail("too many kinds of slices", "32 at most");
  for (const SliceKind& kind : fleet.slices) {
    if (kind.size == 0 || kind.starts.empty() || !(kind.rate > 0) || !std::isfinite(kind.rate))
      return fail(fmt::format("slice {} lacks a size, a position or a rate", kind.name));
    for (const std::uint32_t start : kind.starts)
      if (start + kind.size > fleet.positions)
        return fail(fmt::format("slice {} at {} reaches beyond the GPU", kind.name, start),
                    fmt::format("{} positions", fleet.positions));
  }
  if (options.preempt && options.policy != Policy::kShortest)
    return fail("preemption needs the policy 'shortest'", "policy: shortest");
  if (options.restart.count() < 0 || options.checkpoint.count() < 0)
    return fail("the time to restart or between checkpoints is negative", "0 or more");
  for (const Job& job : jobs)
    if (job.work > kLongestWork || job.submit > kLatestSubmit || job.submit.count() < 0)
      return fail(fmt::format("job '{}' takes too long, or arrives too late", job.name),
                  "work of 3e8 s at most, arrival from 0 s to 5e9 s");
  if (options.restart > kLongestWork || options.checkpoint > kLongestWork)
    return fail("the time to restart or between checkpoints is too long", "3e8 s at most");
  for (const Job& job : jobs)
    if (job.work.count() < 0)
      return fail(fmt::format("job '{}' has a negative duration", job.name));
  return {};
}

}  // namespace

Result<Outcome> run(const Fleet& fleet, std::span<const Job> jobs, const Options& options) {
  TRY(check(fleet, jobs, options));
  return Scheduler(fleet, jobs, options).run();
}

double slowdown_of(const Job& job, const JobRun& run) {
  return job.work.count() == 0 ? 1 : (run.end - job.submit) / job.work;
}

Nanoseconds queued(const Job& job, const JobRun& run) { return run.end - job.submit - run.held; }

}  // namespace rehearse::fleet
