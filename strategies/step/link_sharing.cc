#include "strategies/step/link_sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace rehearse::step {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Sharing {
 public:
  Sharing(std::span<const Burst> bursts, std::size_t links)
      : bursts_(bursts), ends_(bursts.size(), kNever), speed_(bursts.size(), 1) {
    for (const Burst& burst : bursts) left_.push_back(burst.length);
    keep_full(links);
  }

  std::vector<double> run() {
    for (double now = 0; now < kNever;) {
      const double next_begin = activate(now);
      divide();
      double until = next_begin;
      for (const std::uint32_t b : active_) until = std::min(until, now + left_[b] / speed_[b]);
      for (const std::uint32_t b : active_) left_[b] -= speed_[b] * (until - now);
      // The remainder is rounding.
      std::erase_if(active_, [&](std::uint32_t b) {
        if (left_[b] > bursts_[b].length * 1e-12) return false;
        ends_[b] = until;
        return true;
      });
      now = until;
    }
    return std::move(ends_);
  }

 private:
  /// Keeps each set of shares of a link that may be full; most links have one burst, or equal ones.
  void keep_full(std::size_t links) {
    std::set<std::vector<double>> kept;
    for (std::size_t link = 0; link < links; ++link) {
      std::vector<double> shares;
      for (const Burst& burst : bursts_)
        shares.push_back(burst.shares.empty() ? 0 : burst.shares[link]);
      if (std::accumulate(shares.begin(), shares.end(), 0.0) > 1) kept.insert(std::move(shares));
    }
    shares_.assign(kept.begin(), kept.end());
  }

  double begin_of(const Burst& burst) const {
    double begin = burst.begin;
    for (const Burst::After& after : burst.after)
      begin = std::max(begin, ends_[after.burst] + after.later);
    return begin;
  }

  /// Begins the bursts that can begin; returns when the next one does.
  double activate(double now) {
    double next = kNever;
    bool ended = false;  // at once: others may begin then
    for (std::uint32_t b = 0; b < bursts_.size(); ++b) {
      if (ends_[b] < kNever || std::find(active_.begin(), active_.end(), b) != active_.end())
        continue;
      const double begin = begin_of(bursts_[b]);
      if (begin > now) {
        next = std::min(next, begin);
      } else if (bursts_[b].length > 0) {
        active_.push_back(b);
      } else {
        ends_[b] = now;
        ended = true;
      }
    }
    return ended ? activate(now) : next;
  }

  /// All speeds rise together, up to 1 or until a link is full.
  void divide() {
    std::vector<double> room(shares_.size(), 1);
    for (const std::uint32_t b : active_) speed_[b] = 1;
    std::vector<std::uint32_t> open = shares_.empty() ? std::vector<std::uint32_t>() : active_;
    while (!open.empty()) {
      double lowest = 1;
      const std::vector<double>* full = nullptr;
      for (std::size_t link = 0; link < shares_.size(); ++link) {
        double sum = 0;
        for (const std::uint32_t b : open) sum += shares_[link][b];
        if (room[link] < sum * lowest) {
          lowest = room[link] / sum;
          full = &shares_[link];
        }
      }
      if (full == nullptr) return;
      std::erase_if(open, [&](std::uint32_t b) {
        if ((*full)[b] == 0) return false;
        speed_[b] = lowest;
        for (std::size_t link = 0; link < shares_.size(); ++link)
          room[link] = std::max(0.0, room[link] - lowest * shares_[link][b]);
        return true;
      });
    }
  }

  std::span<const Burst> bursts_;
  std::vector<std::vector<double>> shares_;  // by link that may be full, by burst
  std::vector<double> left_;                 // seconds at full speed
  std::vector<double> ends_, speed_;
  std::vector<std::uint32_t> active_;
};

}  // namespace

std::vector<double> ends_of(std::span<const Burst> bursts, std::size_t links) {
  return Sharing(bursts, links).run();
}

bool find_slower(std::span<LinkUser> users, std::size_t links) {
  constexpr int kRounds = 20;
  constexpr double kSettled = 1e-4;
  std::vector<double> own(users.size() * links), all(links);
  bool any = false;
  double change = 1;
  for (int round = 0; round < kRounds && change > kSettled; ++round) {
    std::fill(own.begin(), own.end(), 0);
    std::fill(all.begin(), all.end(), 0);
    for (std::size_t u = 0; u < users.size(); ++u) {
      const LinkUser& user = users[u];
      double working = user.working;
      for (const LinkUse& use : user.streams) working += (use.slower - 1) * use.time;
      const double length = user.length * (working / user.working);
      for (const LinkUse& use : user.streams)
        for (std::size_t l = 0; l < use.busy.size(); ++l)
          own[u * links + l] += use.slower * use.busy[l] / length;
      for (std::size_t l = 0; l < links; ++l) all[l] += own[u * links + l];
    }
    change = 0;
    for (std::size_t u = 0; u < users.size(); ++u)
      for (LinkUse& use : users[u].streams) {
        double slower = 1;
        for (std::size_t l = 0; l < use.busy.size(); ++l)
          if (use.busy[l] > 0)
            slower = std::max(slower, use.busy[l] / use.time + all[l] - own[u * links + l]);
        change = std::max(change, std::abs(slower - use.slower));
        use.slower = slower;
        any = any || slower > 1;
      }
  }
  return any;
}

}  // namespace rehearse::step
