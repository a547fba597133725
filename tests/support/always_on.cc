#include "tests/support/always_on.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace rehearse::test {
namespace {

using capture::KeepCause;
using capture::KnownStep;
using capture::Ring;
using capture::RingBlock;
using capture::Step;
using capture::StepKeeper;

/// Uniform in [0, 1); the distributions of the library differ between implementations.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

std::uint64_t ns(double seconds) { return static_cast<std::uint64_t>(std::llround(seconds * 1e9)); }

struct PlannedStep {
  double begin, end;
  bool slow;
  std::uint32_t only_on;  ///< the rank whose marks show it as slow; else all
};

std::vector<PlannedStep> plan(const AlwaysOn& job, std::mt19937_64& random) {
  std::vector<PlannedStep> steps;
  double time = 1;
  for (std::uint64_t i = 0; i < job.steps; ++i) {
    const bool slow = uniform(random) < job.slow_share;
    const double usual = job.step_s * (0.95 + 0.1 * uniform(random));
    const double took = slow ? usual * job.slow_factor * (1 + uniform(random)) : usual;
    const bool alone = slow && uniform(random) < job.on_one_rank;
    steps.push_back({time, time + took, slow,
                     alone ? static_cast<std::uint32_t>(random() % job.ranks) : job.ranks});
    time += took;
  }
  return steps;
}

struct Announcement {
  double seen_from;
  std::uint64_t number;
};

class Rank {
 public:
  Rank(const AlwaysOn& job, const std::vector<PlannedStep>& steps, std::uint32_t number)
      : job_(job), steps_(steps), number_(number), random_(job.seed * 1000 + number) {
    keeper_.open(job.trigger, job.ring);
    bytes_.resize(job.block * 2);
    next_flush_ = 1 + job.flush_s * uniform(random_);
    block_begin_ = 1;
    next_size();
  }
  ~Rank() { keeper_.close(); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  double next_flush() const { return next_flush_; }

  /// Does the flusher's work: learns which steps ended, encodes new rows, looks for announcements,
  /// writes.
  void flush(std::vector<Announcement>& announcements, AlwaysOnResult& result) {
    const double now = next_flush_;
    next_flush_ = now + job_.flush_s;
    for (; ended_ < steps_.size() && steps_[ended_].end <= now; ++ended_) {
      const PlannedStep& step = steps_[ended_];
      // On the ranks that wait for the slow one, the mark begins when they continue.
      const bool hidden = step.only_on < job_.ranks && step.only_on != number_;
      const double begin = hidden ? step.end - job_.step_s : step.begin;
      KnownStep& known = keeper_.end({.number = ended_, .begin = ns(begin), .end = ns(step.end)});
      if (known.cause != KeepCause::kTrigger) continue;
      keeps(ended_, now);
      if (job_.trigger.kind != capture::Trigger::Kind::kEvery)
        announcements.push_back({now + job_.announce_s, ended_});
    }
    while (block_begin_ < now) add_block(now, result);
    for (const Announcement& announcement : announcements)
      if (announcement.seen_from <= now && keeper_.announced(announcement.number, 0))
        keeps(announcement.number, now);
    keeper_.write_kept([](std::uint32_t) {},
                       [&](const RingBlock& block, const unsigned char*) {
                         result.bytes_written += block.bytes;
                         return true;
                       });
    keeper_.each_note(false, [&](const KnownStep& step) { note(step, result); });
  }

 private:
  /// A neighbour of a kept step counts as kept from then on, whatever is announced of it later.
  void keeps(std::uint64_t number, double now) {
    for (std::uint64_t step = number > 0 ? number - 1 : 0; step <= number + 1; ++step)
      known_at_.try_emplace(step, now);
  }

  void note(const KnownStep& step, AlwaysOnResult& result) {
    const std::uint64_t number = step.step.number;
    const PlannedStep& planned = steps_[number];
    if (planned.slow && step.kept == step.added) whole_.insert(number);
    if (step.cause == KeepCause::kNeighbor) return;
    result.kept.push_back({number_, number, step.cause == KeepCause::kAnnounced, planned.slow,
                           planned.end - planned.begin, known_at_[number] - planned.end, step.added,
                           step.kept});
  }

  void next_size() {
    size_ = job_.block * (0.5 + uniform(random_));
    size_ = std::floor(size_ / 8) * 8;
  }

  /// A block ends at the end of a step and at a flush, when the flusher encodes all rows there are.
  void add_block(double now, AlwaysOnResult& result) {
    while (filling_ + 1 < steps_.size() && steps_[filling_].end <= block_begin_) ++filling_;
    const double limit =
        std::min(now, steps_[filling_].end > block_begin_ ? steps_[filling_].end : now);
    double room = size_;
    double end = block_begin_ + room / job_.rate;
    if (end > limit) {
      end = limit;
      room = std::floor((limit - block_begin_) * job_.rate / 8) * 8;
    }
    RingBlock block = {};
    block.bytes = static_cast<std::uint32_t>(std::max(room - sizeof(RingBlock), 8.0));
    block.step = keeper_.step_at(ns((block_begin_ + end) / 2));
    keeper_.add(block, bytes_.data());
    result.bytes += block.bytes;
    block_begin_ = end;
    next_size();
  }

  const AlwaysOn& job_;
  const std::vector<PlannedStep>& steps_;
  std::uint32_t number_;
  std::mt19937_64 random_;
  StepKeeper keeper_;
  std::vector<unsigned char> bytes_;
  double next_flush_ = 0;
  double block_begin_ = 0;  // time up to which everything is in the ring
  double size_ = 0;         // of the next block
  std::size_t ended_ = 0, filling_ = 0;
  std::map<std::uint64_t, double> known_at_;

 public:
  std::set<std::uint64_t> whole_;
};

}  // namespace

AlwaysOnResult simulate(const AlwaysOn& job) {
  std::mt19937_64 random(job.seed);
  const std::vector<PlannedStep> steps = plan(job, random);
  AlwaysOnResult result = {};
  result.horizon_s = static_cast<double>(job.ring) / job.rate;
  result.longest_block = job.block + job.block / 2;
  std::vector<std::unique_ptr<Rank>> ranks;
  for (std::uint32_t i = 0; i < job.ranks; ++i)
    ranks.push_back(std::make_unique<Rank>(job, steps, i));
  std::vector<Announcement> announcements;
  const double end = steps.back().end;
  for (;;) {
    Rank& next = **std::min_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
      return a->next_flush() < b->next_flush();
    });
    if (next.next_flush() > end) break;
    next.flush(announcements, result);
    // An announcement matters only for some time: one that all ranks have seen can be dropped.
    std::erase_if(announcements, [&](const Announcement& a) {
      return a.seen_from + 2 * job.flush_s < next.next_flush() - job.flush_s;
    });
  }
  // Steps near the end have not been noted by all ranks.
  for (std::uint64_t step = 0; step < steps.size(); ++step) {
    if (!steps[step].slow || steps[step].end > end - 4 * job.flush_s - job.announce_s) continue;
    result.slow_steps += job.ranks;
    for (const auto& rank : ranks) result.slow_whole += rank->whole_.count(step);
  }
  return result;
}

}  // namespace rehearse::test
