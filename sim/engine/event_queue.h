// EventQueue: the future events in simulated time.
//
// Few events are one heap. Many are spread over *buckets* of equal spans of time, three to six to a
// bucket, so that the cost of an event does not depend on their number. An event is put into its
// bucket, sorted with the others of the bucket when time reaches it, and taken from the front of
// that *run*. The heap then holds only events that fall into the span of the current run. A *year*
// of buckets spans at least the earlier half of the events; later events wait for the next year.
//
// Invariant: events leave in order of time, and at one time in the order in which they were added.
// No event is added before the time of the last that left.
#pragma once

#include <algorithm>
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

  bool empty() const {
    return heap_.size() == (hole_ ? 1 : 0) && taken_ == run_.size() && in_buckets_ == 0 &&
           beyond_.empty();
  }

  /// The time of the next event. REQUIRES: not empty.
  Picoseconds next_time() {
    close_hole();
    if (heap_.empty() && taken_ == run_.size()) take_bucket();
    std::uint64_t next = UINT64_MAX;
    if (taken_ < run_.size()) next = run_[taken_].time;
    if (!heap_.empty()) next = std::min(next, heap_.front().time);
    return Picoseconds(static_cast<std::int64_t>(next));
  }

  /// REQUIRES: time >= 0, index <= kMaxIndex.
  void push(Picoseconds time, EventKind kind, std::uint32_t index) {
    REHEARSE_CHECK(sequence_ != UINT32_MAX, "more than 4 G events in one run");
    const Entry entry{
        static_cast<std::uint64_t>(time.count()),
        (std::uint64_t{++sequence_} << 32) | (static_cast<std::uint32_t>(kind) << 29) | index};
    if (entry.time >= horizon_) return put_far(entry);
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
    if (heap_.size() > kMany && sequence_ - spread_at_ > size()) spread();
  }

  /// REQUIRES: not empty. If there are many events, it calls `soon(event, stage)` before most of
  /// them leave, with stages from kStages down to 1, some pops apart.
  template <class Soon>
  Event pop(Soon soon) {
    close_hole();
    if (taken_ == run_.size()) {
      if (!heap_.empty()) return take_top();
      take_bucket();
      for (std::size_t stage = buckets_.size() < kCached ? 0 : kStages; stage > 0; --stage)
        if (next_bucket_ + stage <= buckets_.size())
          for (const Entry& entry : buckets_[next_bucket_ + stage - 1])
            soon(event_of(entry), stage);
    } else if (!heap_.empty() && before(heap_.front(), run_[taken_])) {
      return take_top();
    }
    if (run_.size() > kCached)
      for (std::size_t stage = kStages; stage > 0; --stage)
        if (taken_ + stage * kAhead < run_.size())
          soon(event_of(run_[taken_ + stage * kAhead]), stage);
    return event_of(run_[taken_++]);
  }

 private:
  struct Entry {
    std::uint64_t time;
    std::uint64_t order;  // sequence number, then kind and index
  };
  // A wide, shallow heap of 16-byte entries: the four children of an entry share a cache line.
  static constexpr std::size_t kArity = 4;
  static constexpr std::size_t kMany = 40;        // events that are spread over buckets
  static constexpr std::uint64_t kPerBucket = 3;  // events
  static constexpr std::size_t kAhead = 4;        // events of a run between two stages
  static constexpr std::size_t kStages = 3;       // in which memory is asked for
  // Buckets, or events of a run: the memory of fewer is still in the caches.
  static constexpr std::size_t kCached = 512;

  // As one wide number, so that the comparison compiles without a branch: the order of two events
  // is as good as random, and a mispredicted branch costs more than the heap itself.
  static bool before(const Entry& a, const Entry& b) {
    using Wide = unsigned __int128;
    return ((Wide{a.time} << 64) | a.order) < ((Wide{b.time} << 64) | b.order);
  }
  static Event event_of(const Entry& entry) {
    const auto what = static_cast<std::uint32_t>(entry.order);
    return {Picoseconds(static_cast<std::int64_t>(entry.time)), static_cast<EventKind>(what >> 29),
            what & kMaxIndex};
  }

  std::size_t size() const {
    return heap_.size() - (hole_ ? 1 : 0) + (run_.size() - taken_) + in_buckets_ + beyond_.size();
  }

  Event take_top() {
    hole_ = true;
    return event_of(heap_.front());
  }

  void close_hole() {
    if (!std::exchange(hole_, false)) return;
    const Entry last = heap_.back();
    heap_.pop_back();
    sink(last);
  }

  /// Moves `entry` from the top down to its place.
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

  void put_far(const Entry& entry) {
    const std::uint64_t bucket = (entry.time - year_) >> span_;
    if (bucket >= buckets_.size()) return beyond_.push_back(entry);
    buckets_[bucket].push_back(entry);
    ++in_buckets_;
  }

  void take_bucket();
  void begin_year();
  void spread();

  std::vector<Entry> heap_;
  bool hole_ = false;  // the entry at the top of the heap has been taken
  std::uint32_t sequence_ = 0;

  std::vector<Entry> run_;  // sorted
  std::size_t taken_ = 0;   // of the run
  /// Earlier events are in the heap or the run, the rest in buckets or beyond them.
  std::uint64_t horizon_ = UINT64_MAX;
  std::vector<std::vector<Entry>> buckets_;
  std::size_t next_bucket_ = 0, in_buckets_ = 0;
  std::uint64_t year_ = 0;  // start of the first bucket
  std::uint32_t span_ = 0;  // span of a bucket, as a binary logarithm of picoseconds
  std::vector<Entry> beyond_, dealt_;
  std::uint32_t spread_at_ = 0;  // sequence number when events were last dealt out
};

}  // namespace rehearse::engine
