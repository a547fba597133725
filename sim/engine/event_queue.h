// EventQueue: the future events in simulated time.
//
// Invariant: events leave in order of time, and at one time in the order in which they were added.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/time.h"

namespace rehearse::engine {

enum class EventKind : std::uint32_t {
  kOpEnds,         ///< index: the op
  kWorkBegins,     ///< index: the op; its fixed duration is over and its work starts to flow
  kSlotFrees,      ///< index: the queue of a server; its turnaround is over
  kGrant,          ///< index: the queue of a server; choose among the ops that wait in it
  kShare,          ///< divide anew the capacities whose flows have changed
  kFlowEnds,       ///< index: the component of flows (flows.h)
  kMessageBegins,  ///< index: the slot (messages.h); its latency is over and it begins to flow
  kMessageEnds,    ///< index: the slot; it has arrived
};

struct Event {
  Picoseconds time;
  EventKind kind;
  std::uint32_t index;
};

class EventQueue {
 public:
  static constexpr std::uint32_t kMaxIndex = (1U << 29) - 1;

  bool empty() const { return heap_.size() == (hole_ ? 1 : 0); }

  /// When the next event is. REQUIRES: not empty.
  Picoseconds next_time() {
    close_hole();
    return Picoseconds(static_cast<std::int64_t>(heap_.front().time));
  }

  /// REQUIRES: time >= 0, index <= kMaxIndex.
  void push(Picoseconds time, EventKind kind, std::uint32_t index) {
    REHEARSE_CHECK(sequence_ != UINT32_MAX, "more than 4 G events in one run");
    const Entry entry{
        static_cast<std::uint64_t>(time.count()),
        (std::uint64_t{++sequence_} << 32) | (static_cast<std::uint32_t>(kind) << 29) | index};
    // Most events follow from the one just taken: the entry takes its place at the top.
    if (hole_) {
      hole_ = false;
      return sink(entry);
    }
    std::size_t at = heap_.size();
    heap_.push_back(entry);
    while (at > 0) {
      const std::size_t parent = (at - 1) / kArity;
      if (!before(entry, heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = entry;
  }

  /// REQUIRES: not empty.
  Event pop() {
    close_hole();
    hole_ = true;
    const Entry& top = heap_.front();
    const auto what = static_cast<std::uint32_t>(top.order);
    return {Picoseconds(static_cast<std::int64_t>(top.time)), static_cast<EventKind>(what >> 29),
            what & kMaxIndex};
  }

 private:
  // A wide, shallow heap of 16-byte entries: the four children of an entry share a cache line.
  static constexpr std::size_t kArity = 4;
  struct Entry {
    std::uint64_t time;
    std::uint64_t order;  // sequence number, then kind and index
  };
  // As one wide number, so that the comparison compiles without a branch: which of two events comes
  // first is as good as random, and a wrong guess costs more than the heap itself.
  static bool before(const Entry& a, const Entry& b) {
    using Wide = unsigned __int128;
    return ((Wide{a.time} << 64) | a.order) < ((Wide{b.time} << 64) | b.order);
  }

  void close_hole() {
    if (!std::exchange(hole_, false)) return;
    const Entry last = heap_.back();
    heap_.pop_back();
    sink(last);
  }

  /// Puts `entry` where it belongs from the top down.
  void sink(const Entry& entry) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    while (true) {
      const std::size_t first = at * kArity + 1;
      std::size_t least = first;
      if (first + kArity <= size) [[likely]] {
        const std::size_t a = before(heap_[first + 1], heap_[first]) ? first + 1 : first;
        const std::size_t b = before(heap_[first + 3], heap_[first + 2]) ? first + 3 : first + 2;
        least = before(heap_[b], heap_[a]) ? b : a;
      } else {
        if (first >= size) break;
        for (std::size_t child = first + 1; child < size; ++child)
          if (before(heap_[child], heap_[least])) least = child;
      }
      if (!before(heap_[least], entry)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    if (size > 0) heap_[at] = entry;
  }

  std::vector<Entry> heap_;
  bool hole_ = false;  // the entry at the top has been taken
  std::uint32_t sequence_ = 0;
};

}  // namespace rehearse::engine
