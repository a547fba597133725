// Chunks: the memory in which rows wait for the flusher. A thread fills one at a time; a full one
// goes to the flusher by a queue, and back to the pool when its rows are encoded.
//
// Invariants:
//  1. No lock; taking, filling and handing over a chunk never waits.
//  2. Only the flusher gives chunks back, so it may read any chunk that it can reach.
//  3. The pool bounds the memory; untouched chunks take none.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/capture/format.h"

namespace rehearse::capture {

/// Contents of a slot of a chunk.
enum class SlotKind : std::uint8_t {
  kRow,
  kText,        ///< row.text is the number of a text of row.span bytes in the following slots
  kThreadName,  ///< row.text names the thread row.span
  kRecord,      ///< a record of row.span bytes in the following slots; row.category is its TableId,
                ///< its first row.peer fields are numbers of texts, row.time is its time (0:
                ///< unknown), and row.reduction says whether it applies to the whole process
};

struct alignas(64) Slot {
  Row row;
  SlotKind kind;
};
static_assert(sizeof(Slot) == 64);

/// The number of following slots that hold its bytes.
constexpr std::uint32_t following_slots(const Slot& slot) {
  const bool carries = slot.kind == SlotKind::kText || slot.kind == SlotKind::kRecord;
  return carries ? static_cast<std::uint32_t>((slot.row.span + sizeof(Slot) - 1) / sizeof(Slot))
                 : 0;
}

inline constexpr std::uint32_t kChunkSlots = 255;

struct Chunk {
  std::atomic<std::uint32_t> used;  ///< slots that are complete; the owner adds to them
  std::uint32_t encoded;            ///< slots that the flusher has seen
  std::uint32_t sequence;           ///< counts the chunks of its ThreadState
  std::uint32_t thread;             ///< system id of the thread that fills it
  struct ThreadState* state;        ///< state of that thread
  std::atomic<Chunk*> next;         ///< in the queue
  std::atomic<std::uint32_t> next_free;
  Slot slots[kChunkSlots];
};
static_assert(sizeof(Chunk) == 16 * 1024);

/// The free chunks: a stack whose head carries a count against the ABA problem.
class ChunkPool {
 public:
  /// Reserves the memory. False if that fails.
  bool open(std::uint32_t chunks);
  void close();

  Chunk* take() {
    std::uint64_t head = head_.load(std::memory_order_acquire);
    while (static_cast<std::uint32_t>(head) != 0) {
      Chunk& chunk = chunks_[static_cast<std::uint32_t>(head) - 1];
      const std::uint64_t next = tagged(head, chunk.next_free.load(std::memory_order_relaxed));
      if (head_.compare_exchange_weak(head, next, std::memory_order_acq_rel)) return &chunk;
    }
    if (begun_.load(std::memory_order_relaxed) >= capacity_) return nullptr;
    const std::uint32_t fresh = begun_.fetch_add(1, std::memory_order_relaxed);
    return fresh < capacity_ ? &chunks_[fresh] : nullptr;
  }

  void give(Chunk& chunk) {
    const auto number = static_cast<std::uint32_t>(&chunk - chunks_) + 1;
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    do {
      chunk.next_free.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    } while (!head_.compare_exchange_weak(head, tagged(head, number), std::memory_order_acq_rel));
  }

 private:
  static std::uint64_t tagged(std::uint64_t old, std::uint32_t number) {
    return ((old >> 32) + 1) << 32 | number;
  }

  Chunk* chunks_ = nullptr;
  std::uint32_t capacity_ = 0;
  std::atomic<std::uint32_t> begun_{0};  // chunks that were ever taken; later ones are untouched
  std::atomic<std::uint64_t> head_{0};   // count of changes, and number of the first chunk; 0 none
};

/// Full chunks on their way to the flusher, in the order in which they were handed over.
class ChunkQueue {
 public:
  /// Returns the number of waiting chunks, this one included.
  std::uint32_t push(Chunk& chunk) {
    Chunk* head = head_.load(std::memory_order_relaxed);
    do {
      chunk.next.store(head, std::memory_order_relaxed);
    } while (!head_.compare_exchange_weak(head, &chunk, std::memory_order_acq_rel));
    return waiting_.fetch_add(1, std::memory_order_seq_cst) + 1;
  }

  /// Takes all of them, linked by `next`. Only the flusher calls it.
  Chunk* take_all() {
    Chunk* newest = head_.exchange(nullptr, std::memory_order_acq_rel);
    waiting_.store(0, std::memory_order_relaxed);
    Chunk* oldest = nullptr;
    while (newest) {
      Chunk* before = newest->next.load(std::memory_order_relaxed);
      newest->next.store(oldest, std::memory_order_relaxed);
      oldest = newest;
      newest = before;
    }
    return oldest;
  }

  std::uint32_t waiting() const { return waiting_.load(std::memory_order_seq_cst); }

 private:
  std::atomic<Chunk*> head_{nullptr};
  std::atomic<std::uint32_t> waiting_{0};
};

}  // namespace rehearse::capture
