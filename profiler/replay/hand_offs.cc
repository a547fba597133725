#include "profiler/replay/hand_offs.h"

#include <algorithm>
#include <map>
#include <set>

namespace rehearse::replay {
namespace {

using trace::HostKind;
using trace::HostOp;

/// A stretch of a worker's events between two instants at which it has no op open.
struct Block {
  std::size_t first;
  std::size_t last;
  bool backward;  // holds an operator that autograd runs or will run backward
};

/// Kineto's forward operators (forward thread 0) count too: the thread of backward passes is silent
/// around them because it waits for the next pass.
bool is_backward(const Recording& r, const HostOp& op) {
  return (op.sequence && op.forward_thread) || r.name(op).starts_with("autograd::engine");
}

std::vector<Block> top_level_blocks(const Recording& r, const EventSequence& sequence) {
  std::vector<Block> blocks;
  std::size_t depth = 0;
  for (std::size_t k = 0; k < sequence.events.size(); ++k) {
    const HostEvent& event = sequence.events[k];
    if (event.is_start) {
      if (depth++ == 0) blocks.push_back({k, k, false});
      blocks.back().backward = blocks.back().backward || is_backward(r, r.host(event.op));
    } else if (--depth == 0) {
      blocks.back().last = k;
    }
  }
  return blocks;
}

/// The event of `owner` whose following silence holds [start, end]; nothing when the owner acts in
/// between, or is silent because it sits in a call.
std::optional<std::size_t> silence_around(const Recording& r, const EventSequence& owner,
                                          Nanoseconds start, Nanoseconds end) {
  const auto& events = owner.events;
  const auto after =
      std::upper_bound(events.begin(), events.end(), start,
                       [](Nanoseconds time, const HostEvent& event) { return time < event.time; });
  if (after == events.begin() || after == events.end()) return std::nullopt;
  const auto gap = static_cast<std::size_t>(after - events.begin()) - 1;
  if (after->time < end) return std::nullopt;
  if (const auto op = owner.innermost[gap]) {
    const HostKind kind = r.host(*op).kind;
    if (kind == HostKind::kRuntime || kind == HostKind::kDriver || communicates(r, *op))
      return std::nullopt;
  }
  return gap;
}

// A thread that is silent for less than this may just work between two ops.
constexpr Nanoseconds kShortestWait{100000};

/// The thread that acted last up to `time` and does more than communicate, with that event.
std::optional<std::pair<std::size_t, std::size_t>> last_to_act(
    const Recording& r, const std::vector<EventSequence>& events, std::size_t worker,
    Nanoseconds time) {
  std::optional<std::pair<std::size_t, std::size_t>> best;
  for (std::size_t t = 0; t < events.size(); ++t) {
    const std::vector<HostEvent>& of = events[t].events;
    if (t == worker ||
        std::ranges::all_of(of, [&](const HostEvent& event) { return communicates(r, event.op); }))
      continue;
    const auto after = std::ranges::upper_bound(of, time, {}, &HostEvent::time);
    if (after == of.begin()) continue;
    const auto event = static_cast<std::size_t>(after - of.begin()) - 1;
    if (!best || of[event].time > events[best->first].events[best->second].time) best = {t, event};
  }
  return best;
}

/// The owner's event that waited for something that ended at `end`: most of the silence before it lies
/// before that end, and is neither one operator nor a call.
std::optional<std::size_t> waiting_event(const Recording& r, const EventSequence& owner,
                                         std::size_t gap, Nanoseconds end) {
  const std::vector<HostEvent>& of = owner.events;
  const auto at = std::ranges::lower_bound(of, end, {}, &HostEvent::time);
  const auto back = static_cast<std::size_t>(at - of.begin());
  if (at == of.end() || back <= gap) return std::nullopt;
  const HostEvent& before = of[back - 1];
  const Nanoseconds silence = at->time - before.time;
  if (silence < kShortestWait || (at->time - end) * 2 > silence) return std::nullopt;
  if (before.is_start && !at->is_start && before.op == at->op &&
      r.host(at->op).kind != HostKind::kAnnotation)
    return std::nullopt;
  if (owner.innermost[back - 1] && communicates(r, *owner.innermost[back - 1])) return std::nullopt;
  return back;
}

/// Collectives on threads of their own, as gloo's, begin when another thread hands them over, and run
/// alongside its work until it waits for them.
void hand_collectives(const Recording& r, const std::vector<EventSequence>& events,
                      std::vector<HandOff>& found) {
  const std::size_t others = found.size();
  const auto known = [&](std::size_t w, const Block& block) {
    return std::any_of(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(others),
                       [&](const HandOff& h) {
                         return h.worker == w && h.first <= block.first && block.last <= h.last;
                       });
  };
  std::map<std::pair<std::size_t, std::size_t>, std::size_t>
      waits;  // owner, event: the last awaited
  for (std::size_t w = 0; w < events.size(); ++w) {
    const std::vector<HostEvent>& work = events[w].events;
    for (const Block& block : top_level_blocks(r, events[w])) {
      if (block.last != block.first + 1 || !communicates(r, work[block.first].op) ||
          known(w, block))
        continue;
      const auto owner = last_to_act(r, events, w, work[block.first].time);
      if (!owner) continue;
      const Nanoseconds end = work[block.last].time;
      HandOff h{owner->first, owner->second, w, block.first, block.last};
      h.back = waiting_event(r, events[h.owner], h.gap, end);
      if (h.back) {
        const auto [last, first] = waits.try_emplace({h.owner, *h.back}, found.size());
        if (!first) {
          HandOff& other = found[last->second];
          const bool later = end > events[other.worker].events[other.last].time;
          (later ? other : h).back.reset();
          if (later) last->second = found.size();
        }
      }
      found.push_back(h);
    }
  }
}

}  // namespace

std::vector<HandOff> find_hand_offs(const Recording& r, const std::vector<EventSequence>& events) {
  std::vector<HandOff> found;
  for (std::size_t w = 0; w < events.size(); ++w) {
    const std::vector<HostEvent>& work = events[w].events;
    const std::vector<Block> blocks = top_level_blocks(r, events[w]);
    std::optional<HandOff> current;
    bool backward = false;
    std::set<std::pair<std::size_t, std::size_t>> known;  // owners and their gaps
    std::size_t from = 0, next = 0;  // blocks of `current`: the first, the one after the last
    const auto close = [&] {
      if (!current) return;
      HandOff h = *current;
      const std::vector<HostEvent>& owner = events[h.owner].events;
      const Nanoseconds begin = owner[h.gap].time, end = owner[h.gap + 1].time;
      const Nanoseconds busy = work[h.last].time - work[h.first].time;
      // A thread that happens to act while another is silent was not waited for: the owner must
      // have been silent for little else, unless the work is a backward pass.
      if ((backward || busy * 2 > end - begin) && known.emplace(h.owner, h.gap).second) {
        // Everything that the worker does within the silence belongs to it. The time before and
        // after that is waiting: neither work of the worker nor a call that blocks it.
        while (from > 0 && work[blocks[from - 1].first].time > begin) --from;
        while (next < blocks.size() && work[blocks[next].last].time < end) ++next;
        h.first = blocks[from].first;
        h.last = blocks[next - 1].last;
        h.back = h.gap + 1;
        found.push_back(h);
      }
      current.reset();
      backward = false;
    };
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const Block& block = blocks[b];
      const Nanoseconds start = work[block.first].time, end = work[block.last].time;
      std::optional<HandOff> best;
      Nanoseconds best_silence(INT64_MAX);
      for (std::size_t m = 0; m < events.size(); ++m) {
        // An owner was there before its worker, unless the recording begins within a backward pass.
        const bool earlier = events[m].events.front().time <= events[w].events.front().time;
        if (m == w || !(earlier || block.backward)) continue;
        const auto gap = silence_around(r, events[m], start, end);
        if (!gap) continue;
        const Nanoseconds silence = events[m].events[*gap + 1].time - events[m].events[*gap].time;
        if (silence > Nanoseconds(0) && silence < best_silence) {
          best = HandOff{m, *gap, w, block.first, block.last};
          best_silence = silence;
        }
      }
      if (best && current && best->owner == current->owner && best->gap == current->gap) {
        current->last = block.last;
        backward = backward || block.backward;
        next = b + 1;
        continue;
      }
      close();
      current = best;
      backward = block.backward;
      from = b;
      next = b + 1;
    }
    close();
  }
  hand_collectives(r, events, found);
  return found;
}

}  // namespace rehearse::replay
