#include "strategies/step/order_times.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "strategies/launch_queue.h"

namespace rehearse::step {

namespace {

using strategies::PipelineShape;
using strategies::Schedule;
using workload::Pass;
using workload::Slot;

bool is_fuller(const OrderProfile::Moment& a, const OrderProfile::Moment& b) {
  const auto held = [](const OrderProfile::Moment& moment) {
    return std::pair(std::accumulate(moment.held.begin(), moment.held.end(), 0U), moment.chunk);
  };
  return held(a) > held(b);
}

/// From the last slot of the chunk on.
OrderProfile::Rest rest_of(const std::vector<Slot>& order, std::uint32_t chunk,
                           std::uint32_t chunks) {
  OrderProfile::Rest rest{chunk, {}};
  rest.passes.resize(chunks);
  for (auto slot = order.rbegin(); slot != order.rend(); ++slot) {
    ++rest.passes[slot->chunk][static_cast<std::size_t>(slot->pass)];
    if (slot->chunk == chunk) break;
  }
  return rest;
}

using strategies::ChunkPlace;
using workload::Layout;
using workload::Pass;
using workload::Slot;

constexpr std::int64_t kNotYet = -1;

/// The part of an order in which each slot equals the one `period` slots before it, `later`
/// microbatches on.
struct Repeat {
  std::size_t first = 0, end = 0;  ///< slots that have an equal one a period later
  std::size_t period = 0;
  std::uint32_t later = 0;
};

bool repeats(const Slot& a, const Slot& b, std::uint32_t later) {
  return a.pass == b.pass && a.chunk == b.chunk && a.microbatch + later == b.microbatch;
}

/// Around the middle of the order; nothing if that is too short to be worth it.
std::optional<Repeat> repeat_of(const std::vector<Slot>& order) {
  const std::size_t n = order.size(), middle = n / 2;
  constexpr std::size_t kWorthIt = 64;
  if (n < kWorthIt) return std::nullopt;
  for (std::size_t period = 1; period <= n / 8; ++period) {
    const Slot &a = order[middle], &b = order[middle + period];
    if (a.pass != b.pass || a.chunk != b.chunk || b.microbatch <= a.microbatch) continue;
    const std::uint32_t later = b.microbatch - a.microbatch;
    std::size_t end = middle;
    while (end + period < n && repeats(order[end], order[end + period], later)) ++end;
    if (end < middle + period) continue;
    std::size_t first = middle;
    while (first > 0 && repeats(order[first - 1], order[first - 1 + period], later)) --first;
    return Repeat{first, end, period, later};
  }
  return std::nullopt;
}

class Evaluation {
 public:
  Evaluation(const Layout& layout, std::span<const ChunkPlace> chain, const OrderCosts& costs)
      : layout_(layout), chain_(chain), costs_(costs), m_(layout.microbatches) {
    const std::size_t stages = layout.stages.size();
    place_.resize(stages);
    for (std::size_t s = 0; s < stages; ++s) place_[s].resize(layout.stages[s].chunks.size());
    for (std::uint32_t i = 0; i < chain.size(); ++i) place_[chain[i].stage][chain[i].chunk] = i;
    forward_.assign(chain.size() * m_, kNotYet);
    backward_.assign(chain.size() * m_, kNotYet);
    next_.assign(stages, 0);
    now_.assign(stages, 0);
    last_begin_.assign(chain.size(), 0);
    last_host_.assign(chain.size(), 0);
    ends_.resize(stages);
    for (std::size_t s = 0; s < stages; ++s) ends_[s].resize(layout.stages[s].order.size());
  }

  Result<OrderTimes> run(bool skip) {
    if (skip && costs_.ahead.empty()) find_repeats();
    for (bool all = false; !all;) {
      all = true;
      bool progress = false;
      for (std::uint32_t s = 0; s < layout_.stages.size(); ++s) {
        progress = advance(s) || progress;
        all = all && next_[s] == layout_.stages[s].order.size();
      }
      if (!all && !progress) return stuck();
      if (!repeat_.empty()) skip_ahead();
    }
    OrderTimes times;
    for (const std::int64_t now : now_) times.end.push_back(Picoseconds(now));
    for (const std::int64_t begin : last_begin_) times.last_begin.push_back(Picoseconds(begin));
    for (const std::int64_t begin : last_host_) times.last_host.push_back(Picoseconds(begin));
    times.slots = evaluated_;
    return times;
  }

 private:
  /// Runs the slots of a stage that are ready, but only as many as keep stages together.
  bool advance(std::uint32_t s) {
    const std::vector<Slot>& order = layout_.stages[s].order;
    const std::size_t begin = next_[s];
    // The first stage must not run to its end before the repetition of all stages is detected.
    const std::size_t most =
        repeat_.empty() ? order.size() : std::min(order.size(), begin + 2 * repeat_[s].period);
    while (next_[s] < most && run_slot(s, order[next_[s]])) ++next_[s];
    return next_[s] > begin;
  }

  bool run_slot(std::uint32_t s, const Slot& slot) {
    const std::uint32_t place = place_[s][slot.chunk];
    std::int64_t begin = now_[s];
    if (slot.pass == Pass::kForward && place > 0) {
      const std::int64_t before = forward_[(place - 1) * m_ + slot.microbatch];
      if (before == kNotYet) return false;
      begin = std::max(begin, before + costs_.transfers[place - 1].count());
    }
    if (slot.pass == Pass::kBackward) {
      const bool last = place + 1 == chain_.size();
      const std::int64_t before = last ? forward_[place * m_ + slot.microbatch]
                                       : backward_[(place + 1) * m_ + slot.microbatch];
      if (before == kNotYet) return false;
      begin = std::max(begin, last ? before : before + costs_.returns[place].count());
    }
    last_begin_[place] = begin;
    const auto pass = static_cast<std::size_t>(slot.pass);
    if (costs_.ahead.empty()) {
      last_host_[place] = begin;
      now_[s] = begin + costs_.passes[place][pass].count();
    } else {
      const PassAhead& ahead = costs_.ahead[place][pass];
      if (const std::int64_t* ended = queue_.awaited()) host_ = std::max(host_, *ended);
      last_host_[place] = host_;
      now_[s] = std::max(begin + ahead.device.count(), host_ + costs_.passes[place][pass].count());
      host_ += ahead.host.count();
      queue_.add(ahead.launches, now_[s]);
    }
    if (slot.pass == Pass::kForward) forward_[place * m_ + slot.microbatch] = now_[s];
    if (slot.pass == Pass::kBackward) backward_[place * m_ + slot.microbatch] = now_[s];
    ends_[s][next_[s]] = now_[s];
    ++evaluated_;
    return true;
  }

  tl::unexpected<Error> stuck() const {
    std::uint32_t s = 0;
    while (next_[s] == layout_.stages[s].order.size()) ++s;
    const Slot& slot = layout_.stages[s].order[next_[s]];
    return fail(fmt::format("the stage orders deadlock: slot {} of {}, microbatch {}", next_[s],
                            layout_.stages[s].name, slot.microbatch),
                "orders in which every pass follows its dependencies");
  }

  void find_repeats() {
    for (const workload::Stage& stage : layout_.stages) {
      const auto repeat = repeat_of(stage.order);
      if (!repeat || repeat->period != repeat_.front_or(*repeat).period ||
          repeat->later != repeat_.front_or(*repeat).later) {
        repeat_.clear();
        return;
      }
      repeat_.push_back(*repeat);
      warmup_ = std::max(warmup_, repeat->first);
    }
  }

  /// Once every stage has run `window` slots, each a constant after the one a period before, all
  /// stages continue in this way until the first one leaves its repeating part.
  void skip_ahead() {
    const std::size_t period = repeat_.front().period;
    const std::size_t window = 2 * warmup_ + 2 * period;  // what is under way lies within
    std::optional<std::int64_t> shift;
    std::size_t periods = SIZE_MAX;
    for (std::size_t s = 0; s < repeat_.size(); ++s) {
      const std::size_t next = next_[s];
      // The slots that repeat include `end` and one more period.
      if (next < repeat_[s].first + window + period || next >= repeat_[s].end) return;
      if (!shift) shift = ends_[s][next - 1] - ends_[s][next - 1 - period];
      for (std::size_t i = next - window; i < next; ++i)
        if (ends_[s][i] - ends_[s][i - period] != *shift) return;
      periods = std::min(periods, (repeat_[s].end - next) / period);
    }
    if (periods == 0) return;
    for (std::size_t s = 0; s < repeat_.size(); ++s) skip(s, periods, window, *shift);
    repeat_.clear();  // once
  }

  void skip(std::size_t s, std::size_t periods, std::size_t window, std::int64_t shift) {
    const auto later = static_cast<std::uint32_t>(periods) * repeat_[s].later;
    const auto by = static_cast<std::int64_t>(periods) * shift;
    for (std::size_t i = next_[s]; i-- > next_[s] - window;) {
      const Slot& slot = layout_.stages[s].order[i];
      const std::uint32_t place = place_[s][slot.chunk];
      if (slot.pass == Pass::kForward)
        forward_[place * m_ + slot.microbatch + later] =
            forward_[place * m_ + slot.microbatch] + by;
      if (slot.pass == Pass::kBackward)
        backward_[place * m_ + slot.microbatch + later] =
            backward_[place * m_ + slot.microbatch] + by;
    }
    next_[s] += periods * repeat_[s].period;
    now_[s] += by;
  }

  /// The repeats of all stages, with the same period; empty if they do not repeat alike.
  struct Repeats : std::vector<Repeat> {
    const Repeat& front_or(const Repeat& other) const { return empty() ? other : front(); }
  };

  const Layout& layout_;
  std::span<const ChunkPlace> chain_;
  const OrderCosts& costs_;
  const std::uint32_t m_;
  std::vector<std::vector<std::uint32_t>> place_;  // by stage and chunk
  std::vector<std::int64_t> forward_, backward_;   // ends, by place and microbatch
  std::vector<std::size_t> next_;                  // by stage
  std::vector<std::int64_t> now_;                  // by stage
  std::vector<std::int64_t> last_begin_;           // by place
  std::vector<std::int64_t> last_host_;            // by place
  std::vector<std::vector<std::int64_t>> ends_;    // by stage and slot
  std::int64_t host_ = 0;                          // where it runs ahead
  strategies::LaunchQueue<std::int64_t> queue_;
  Repeats repeat_;
  std::size_t warmup_ = 0;
  std::uint64_t evaluated_ = 0;
};

}  // namespace

Result<OrderTimes> order_times(const Layout& layout, std::span<const ChunkPlace> chain,
                               const OrderCosts& costs, bool skip) {
  return Evaluation(layout, chain, costs).run(skip);
}

OrderProfile profile_of(const std::vector<Slot>& order, std::uint32_t chunks) {
  OrderProfile profile;
  profile.first_chunk = order.front().chunk;
  for (const Slot& slot : order) {
    profile.splits_weights |= slot.pass == Pass::kBackwardWeights;
    profile.splits_recompute |= slot.pass == Pass::kRecompute;
    if (slot.pass == Pass::kBackward) {
      profile.last_chunk = slot.chunk;
      profile.weights_after = 0;
    }
    profile.weights_after += slot.pass == Pass::kBackwardWeights;
  }
  std::vector<bool> seen(chunks, false);
  std::uint32_t first_through = order.back().chunk;
  for (auto slot = order.rbegin(); slot != order.rend(); ++slot) {
    if (!seen[slot->chunk]) first_through = slot->chunk;
    seen[slot->chunk] = true;
  }
  profile.first_through = rest_of(order, first_through, chunks);
  profile.last_through = rest_of(order, order.back().chunk, chunks);
  const Pass frees = profile.splits_weights ? Pass::kBackwardWeights : Pass::kBackward;
  std::vector<std::uint32_t> held(chunks, 0);
  for (const Slot& slot : order) {
    if (slot.pass == Pass::kForward) ++held[slot.chunk];
    if (slot.pass == Pass::kForward || slot.pass == Pass::kBackward) {
      OrderProfile::Moment moment{slot.pass == Pass::kBackward, slot.chunk, held};
      OrderProfile::Moment& fullest = profile.fullest[moment.backward];
      if (is_fuller(moment, fullest)) fullest = std::move(moment);
    }
    if (slot.pass == frees && held[slot.chunk] > 0) --held[slot.chunk];
  }
  return profile;
}

const OrderProfile& OrderProfiles::of(Schedule schedule, const PipelineShape& shape,
                                      std::uint32_t stage, bool recomputes) {
  // The passes ahead of the first backward are those of up to two microbatches for each stage, and
  // of as many as there are stages for each further chunk. A multiple of the stages stays one.
  constexpr std::uint32_t kOfEachStage = 4;
  const bool holds_all = schedule == Schedule::kGpipe && shape.chunks == 1;
  PipelineShape shortened = shape;
  if (!holds_all)
    shortened.microbatches = std::min(shape.microbatches, kOfEachStage * shape.stages);
  const Key key{schedule, shape.stages, shortened.microbatches, shape.chunks, stage, recomputes};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  if (holds_all) shortened.microbatches = 1;
  OrderProfile profile =
      profile_of(strategies::order_of(schedule, shortened, stage, recomputes), shape.chunks);
  if (holds_all)
    for (OrderProfile::Moment& moment : profile.fullest) moment.held.front() = shape.microbatches;
  return known_.emplace(key, std::move(profile)).first->second;
}

}  // namespace rehearse::step
