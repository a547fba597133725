#include "profiler/replay/backward.h"

#include <map>

namespace rehearse::replay {
namespace {

using trace::HostOp;

/// Where a forward operator ends.
struct End {
  std::size_t thread;
  std::size_t event;
  Nanoseconds time;
};

}  // namespace

bool is_forward(const HostOp& op) { return op.sequence && op.forward_thread.value_or(0) == 0; }
bool is_backward(const HostOp& op) { return op.sequence && op.forward_thread.value_or(0) != 0; }

std::vector<BackwardLink> find_backward_links(const Recording& r,
                                              const std::vector<EventSequence>& events) {
  std::map<std::uint32_t, std::vector<End>> ends;  // by sequence number
  for (std::size_t t = 0; t < events.size(); ++t)
    for (std::size_t k = 0; k < events[t].events.size(); ++k)
      if (const HostEvent& event = events[t].events[k];
          !event.is_start && is_forward(r.host(event.op)))
        ends[*r.host(event.op).sequence].push_back({t, k, event.time});

  std::vector<BackwardLink> links;
  for (std::size_t t = 0; t < events.size(); ++t) {
    std::map<std::size_t, Nanoseconds> reached;  // by forward thread: the latest end linked to
    for (std::size_t k = 0; k < events[t].events.size(); ++k) {
      const HostEvent& event = events[t].events[k];
      if (!event.is_start || !is_backward(r.host(event.op))) continue;
      const auto found = ends.find(*r.host(event.op).sequence);
      if (found == ends.end()) continue;
      // Nested operators, and those of earlier passes, may share a number. The cause is the one
      // that ended last before this event. Two links at one instant must not wait for each other,
      // so "before" is strict.
      const End* last = nullptr;
      bool one_thread = true;
      for (const End& end : found->second) {
        if (end.thread == t || end.time >= event.time) continue;
        one_thread = one_thread && (!last || last->thread == end.thread);
        if (!last || end.time > last->time) last = &end;
      }
      // Two threads that number alike: whose operator it was cannot be told.
      if (!last || !one_thread) continue;
      const auto [at, is_new] = reached.try_emplace(last->thread, last->time);
      if (!is_new && last->time <= at->second) continue;
      at->second = last->time;
      links.push_back({last->thread, last->event, t, k});
    }
  }
  return links;
}

}  // namespace rehearse::replay
