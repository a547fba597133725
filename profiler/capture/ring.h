// Ring: encoded blocks in bounded memory, where the newest replace the oldest.
//
// Invariants:
//  1. Blocks are consecutive, each after a RingBlock, in the order in which they were
//     added; none wraps around the end of the memory.
//  2. The ring has the newest blocks: adding drops only the oldest ones, and only as many
//     as are in the way. At most one block's length at the end of the memory is unused.
//  3. One thread uses it.
#pragma once

#include <cstdint>
#include <cstring>

#include "profiler/capture/system.h"

namespace rehearse::capture {

/// Metadata of a block.
struct RingBlock {
  std::uint64_t step;       ///< the ordinal of the step that it belongs to
  std::uint32_t bytes;      ///< size of the block with its header
  std::uint32_t rows;       ///< rows and records in it
  std::uint32_t last_text;  ///< the highest number of a text in it
  bool texts;               ///< it has texts, which later blocks may need
  bool written;             ///< to the file
  bool filler;              ///< the ring's own
};

class Ring {
 public:
  /// Reserves the memory. False if that fails.
  bool open(std::uint64_t bytes) {
    capacity_ = bytes & ~std::uint64_t{7};
    memory_ = static_cast<unsigned char*>(reserve_memory(capacity_));
    return memory_ != nullptr;
  }
  void close() {
    if (memory_) ::munmap(memory_, capacity_);
    memory_ = nullptr;
  }

  std::uint64_t capacity() const { return capacity_; }
  /// The space that a block with this many bytes takes.
  static std::uint64_t room_of(std::uint32_t bytes) {
    return (sizeof(RingBlock) + bytes + 7) & ~std::uint64_t{7};
  }

  /// Adds a block of block.bytes bytes. False if it is longer than the ring.
  bool add(const RingBlock& block, const void* bytes) {
    const std::uint64_t room = room_of(block.bytes);
    if (room > capacity_) return false;
    const std::uint64_t rest = capacity_ - head_ % capacity_;
    if (rest < room) {
      make_room(rest);
      if (rest >= sizeof(RingBlock)) {
        RingBlock filler = {};
        filler.bytes = static_cast<std::uint32_t>(rest - sizeof(RingBlock));
        filler.filler = true;
        std::memcpy(at(head_), &filler, sizeof filler);
      }
      head_ += rest;
    }
    make_room(room);
    std::memcpy(at(head_), &block, sizeof block);
    std::memcpy(at(head_) + sizeof block, bytes, block.bytes);
    head_ += room;
    return true;
  }

  /// Calls visit(RingBlock&, bytes) for each block, the oldest first, until it returns false.
  template <class Visit>
  void each(Visit visit) {
    for (std::uint64_t place = tail_; place < head_; place = next(place)) {
      RingBlock& block = *reinterpret_cast<RingBlock*>(at(place));
      if (at_end(place) || block.filler) continue;
      if (!visit(block, at(place) + sizeof block)) return;
    }
  }

 private:
  unsigned char* at(std::uint64_t place) const { return memory_ + place % capacity_; }
  /// Whether less than a RingBlock remains up to the end of the memory.
  bool at_end(std::uint64_t place) const {
    return capacity_ - place % capacity_ < sizeof(RingBlock);
  }
  std::uint64_t next(std::uint64_t place) const {
    if (at_end(place)) return place + capacity_ - place % capacity_;
    const auto& block = *reinterpret_cast<const RingBlock*>(at(place));
    return place + room_of(block.bytes);
  }
  /// Drops the oldest blocks until `n` bytes after the newest are free.
  void make_room(std::uint64_t n) {
    while (tail_ < head_ && head_ + n - tail_ > capacity_) tail_ = next(tail_);
    if (tail_ > head_) tail_ = head_;
  }

  unsigned char* memory_ = nullptr;
  std::uint64_t capacity_ = 0;
  // They only grow; the remainder by the capacity is the place in memory.
  std::uint64_t head_ = 0;  // where the next block goes
  std::uint64_t tail_ = 0;  // where the oldest one is
};

}  // namespace rehearse::capture
