#include "profiler/compare/match.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace rehearse::compare {
namespace {

// Without a name or an origin in common, two slots are the same only where they come at the same
// place of a step, as often, and their names are more alike than not.
constexpr double kSamePlace = 0.1;
constexpr double kAlike = 0.5;

using Text = std::string OpSlot::*;

/// Slots that agree in these texts, which are all there, may be paired.
struct Pass {
  std::vector<Text> equal = {};
  bool by_place = false;  ///< and only where they are in the same place, as often
  double alike = 0;       ///< and only with names that are so much alike
};

double total(const OpSlot& slot) {
  return std::accumulate(slot.times.begin(), slot.times.end(), 0.0);
}

double steps(const Run& run) { return static_cast<double>(run.steps()); }

class Matcher {
 public:
  Matcher(const Run& baseline, const Run& candidate)
      : b_(baseline.slots), c_(candidate.slots), b_taken_(b_.size()), c_taken_(c_.size()) {
    for (const OpSlot& slot : b_) b_total_.push_back(total(slot) / steps(baseline));
    for (const OpSlot& slot : c_) c_total_.push_back(total(slot) / steps(candidate));
  }

  void run(const Pass& pass) {
    using Key = std::pair<OpKind, std::vector<std::string>>;
    std::map<Key, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> buckets;
    const auto collect = [&](const std::vector<OpSlot>& slots, const std::vector<bool>& taken,
                             auto side) {
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (taken[i]) continue;
        Key key{slots[i].kind, {}};
        for (const Text text : pass.equal) key.second.push_back(slots[i].*text);
        // An origin or shape that was not recorded is nothing in common.
        const bool all =
            std::ranges::none_of(key.second, [](const std::string& text) { return text.empty(); });
        if (all) (buckets[key].*side).push_back(i);
      }
    };
    using Bucket = std::pair<std::vector<std::size_t>, std::vector<std::size_t>>;
    collect(b_, b_taken_, &Bucket::first);
    collect(c_, c_taken_, &Bucket::second);
    for (const auto& [key, bucket] : buckets) pair(pass, bucket.first, bucket.second);
  }

  Matches finish(bool on_devices) {
    Matches matches;
    double shaped = 0, same = 0;
    for (const SlotPair& pair : pairs_) {
      matches.pairs.push_back(pair);
      const OpSlot &b = b_[pair.baseline], &c = c_[pair.candidate];
      if (b.shapes.empty() || c.shapes.empty()) continue;
      shaped += total(b);
      if (b.shapes == c.shapes) same += total(b);
    }
    matches.same_shapes = shaped > 0 ? same / shaped : 1;
    const auto share = [&](const std::vector<OpSlot>& slots, const std::vector<bool>& taken) {
      double all = 0, part = 0;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (on_devices && slots[i].kind == OpKind::kHost) continue;
        all += total(slots[i]);
        if (taken[i]) part += total(slots[i]);
      }
      return all > 0 ? part / all : 1;
    };
    matches.matched_share = std::min(share(b_, b_taken_), share(c_, c_taken_));
    return matches;
  }

 private:
  /// The nearest first: by place, length and name. Work that takes as long is more likely the same.
  void pair(const Pass& pass, const std::vector<std::size_t>& left,
            const std::vector<std::size_t>& right) {
    if (left.empty() || right.empty()) return;
    struct Distance {
      double value;
      std::size_t b, c;
    };
    std::vector<Distance> distances;
    for (const std::size_t b : left)
      for (const std::size_t c : right) {
        const double apart = std::abs(b_[b].place - c_[c].place);
        if (pass.by_place && (apart > kSamePlace || std::abs(b_[b].calls - c_[c].calls) > 0.5))
          continue;
        // Many alike: the place decides, and names need not be looked at.
        const bool few = left.size() * right.size() <= 10000;
        const double alike = b_[b].name == c_[c].name ? 1
                             : few || pass.alike > 0  ? likeness(b_[b].name, c_[c].name)
                                                      : 0;
        if (alike < pass.alike) continue;
        const double longer = std::max(b_total_[b], c_total_[c]);
        const double length = longer > 0 ? std::min(b_total_[b], c_total_[c]) / longer : 1;
        distances.push_back({apart + 0.1 * (1 - alike) + 0.3 * (1 - length), b, c});
      }
    std::ranges::stable_sort(distances, {}, &Distance::value);
    for (const Distance& d : distances) {
      if (b_taken_[d.b] || c_taken_[d.c]) continue;
      b_taken_[d.b] = c_taken_[d.c] = true;
      pairs_.push_back({d.b, d.c});
    }
  }

  const std::vector<OpSlot>&b_, &c_;
  std::vector<bool> b_taken_, c_taken_;
  std::vector<double> b_total_, c_total_;  ///< s, in an average step
  std::vector<SlotPair> pairs_;
};

}  // namespace

double likeness(std::string_view a, std::string_view b) {
  if (a == b) return 1;
  if (a.size() < 2 || b.size() < 2) return 0;
  const auto letters = [](std::string_view text) {
    std::vector<std::pair<char, char>> pairs;
    for (std::size_t i = 1; i < text.size(); ++i) pairs.push_back({text[i - 1], text[i]});
    std::ranges::sort(pairs);
    return pairs;
  };
  const auto x = letters(a), y = letters(b);
  std::vector<std::pair<char, char>> both;
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
  return 2.0 * static_cast<double>(both.size()) / static_cast<double>(x.size() + y.size());
}

Matches match_ops(const Run& baseline, const Run& candidate) {
  constexpr Text kName = &OpSlot::name, kFrom = &OpSlot::from, kLayer = &OpSlot::layer,
                 kShapes = &OpSlot::shapes, kGrid = &OpSlot::grid;
  Matcher matcher(baseline, candidate);
  for (const Pass& pass : {
           Pass{{kName, kFrom, kLayer, kShapes, kGrid}},
           Pass{{kName, kFrom, kShapes, kGrid}},
           Pass{{kName, kFrom, kShapes}},
           Pass{{kName, kFrom, kLayer}},
           Pass{{kName, kFrom}},
           Pass{{kName, kGrid}},
           Pass{{kFrom, kLayer, kShapes, kGrid}},
           Pass{{kFrom, kShapes, kGrid}},
           Pass{{kFrom, kLayer, kShapes}},
           Pass{{kFrom, kShapes}},
           Pass{{kName}},
           Pass{{kFrom, kGrid}},
           Pass{.equal = {kGrid}, .by_place = true},
           Pass{.by_place = true, .alike = kAlike},
       })
    matcher.run(pass);
  return matcher.finish(!baseline.devices.empty() || !candidate.devices.empty());
}

}  // namespace rehearse::compare
