// Recording: the recording of one process, between the threads that fill chunks and the flusher
// that writes them to the file. The hot path of every callback is here.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include <limits.h>
#include <sys/types.h>

#include "profiler/capture/chunks.h"
#include "profiler/capture/format.h"
#include "profiler/capture/records.h"
#include "profiler/capture/steps.h"
#include "profiler/capture/system.h"

namespace rehearse::capture {

inline constexpr std::uint32_t kMaxDepth =
    1024;  ///< open ranges of one thread; deeper ones are lost
inline constexpr std::uint32_t kPoolChunks = 4096;      ///< 64 MiB
inline constexpr std::uint32_t kWakeAtChunks = 8;       ///< full chunks that wake the flusher
inline constexpr std::uint64_t kFlushEvery = 40000000;  ///< ns; two are less than 100 ms
inline constexpr std::size_t kFlusherBuffer = 576 * 1024;
inline constexpr std::uint32_t kLostText = UINT32_MAX;  ///< a row whose name could not be kept

/// State of one thread. States are reused, never freed.
struct ThreadState {
  ThreadState* next;  ///< in Recording::states
  std::atomic<bool> in_use;
  std::atomic<Chunk*> chunk;  ///< being filled; null at first and when the pool is empty
  std::atomic<std::uint64_t> lost;
  std::uint32_t sequence;  ///< number of the next chunk
  std::uint32_t flushed;   ///< sequence of the first chunk not fully encoded; for the flusher
  std::uint32_t thread;    ///< system id
  std::uint32_t started;   ///< ranges started so far, for their numbers
  std::uint32_t overflow;  ///< open ranges beyond kMaxDepth
  bool busy;               ///< a callback is running: a signal handler must not start another
  StepText step;           ///< of the text that was named last
  std::atomic<std::uint32_t> depth;
  Row open[kMaxDepth];  ///< pushed and not yet popped, of all domains; `time` is the start
};

class StepKeeper;

struct Recording {
  ChunkPool pool;
  ChunkQueue queue;
  std::atomic<ThreadState*> states{nullptr};
  std::atomic<std::uint32_t> idle_states{0};
  std::atomic<std::uint32_t> leaving{0};  ///< threads that are moving their chunk to the queue
  std::atomic<std::uint64_t> lost{0};     ///< rows that are not counted in any thread's state
  Futex flusher_sleeps{0};
  Futex closing{0};
  Futex closed{0};
  std::uint32_t number = 0;  ///< counts recordings, including those before forks
  pid_t owner = 0;
  bool forked = false;              ///< from a process that records
  unsigned char* buffer = nullptr;  ///< kFlusherBuffer bytes to encode in
  std::uint64_t offset = 0;         ///< bytes of the file that are completely written
  StepKeeper* keeper = nullptr;     ///< for a recording into a ring
  char path[PATH_MAX + 1] = {};
};

/// False once the process ends: later calls are not recorded.
extern std::atomic<bool> accepting;

/// The state of this thread; null before its first record, after its last, and after a fork.
extern constinit thread_local ThreadState* this_thread_state;

/// Starts the recording of this process if it has none. False if it cannot be recorded; the reason
/// has then been reported on stderr.
bool attach();

/// Creates the state of this thread, and the recording if the process has none. Null if nothing can
/// be recorded.
ThreadState* register_thread();

/// Starts a thread of ours, which gets no signals and ends with the process. False if that fails.
bool start_thread(void* (*run)(void*), void* argument);

/// Hands over the recorded rows of this thread. Our own threads call it before they report that
/// they are done, because the process may end before they do.
void leave_recording();

/// Counts rows that were lost before they reached one of our threads.
void count_lost(std::uint64_t rows);

/// Hands over the full chunk and takes an empty one. Null if the pool is empty.
Chunk* next_chunk(ThreadState& state);

inline void count_lost(ThreadState& state) {
  state.lost.store(state.lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// Marks the thread as busy during its lifetime. False if nothing is to be recorded.
class Callback {
 public:
  Callback() {
    if (!accepting.load(std::memory_order_relaxed)) return;
    ThreadState* state = this_thread_state;
    if (!state && !(state = register_thread())) return;
    if (state->busy) {
      count_lost(*state);
      return;
    }
    state->busy = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    state_ = state;
  }
  ~Callback() {
    if (!state_) return;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    state_->busy = false;
  }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  explicit operator bool() const { return state_ != nullptr; }
  ThreadState& thread() const { return *state_; }

 private:
  ThreadState* state_ = nullptr;
};

/// Room for `slots` slots in the thread's chunk; null if there is none.
inline Slot* room(ThreadState& state, std::uint32_t slots) {
  Chunk* chunk = state.chunk.load(std::memory_order_relaxed);
  if (!chunk || chunk->used.load(std::memory_order_relaxed) + slots > kChunkSlots) [[unlikely]]
    chunk = next_chunk(state);
  if (!chunk) return nullptr;
  return &chunk->slots[chunk->used.load(std::memory_order_relaxed)];
}

/// Makes the `slots` slots that room() returned, now filled, visible to the flusher.
inline void publish(ThreadState& state, std::uint32_t slots) {
  std::atomic<std::uint32_t>& used = state.chunk.load(std::memory_order_relaxed)->used;
  used.store(used.load(std::memory_order_relaxed) + slots, std::memory_order_release);
}

/// Whether a row of this kind and time goes to the file.
inline bool wanted(const Row& row) {
  switch (row.kind) {
    case RowKind::kMark:
    case RowKind::kStart:
    case RowKind::kStrayPop: return in_window(row.time, row.time);
    case RowKind::kRange: return in_window(row.time - row.span, row.time);
    case RowKind::kOpen: return in_window(row.time, UINT64_MAX);
    case RowKind::kEnd:  // only of starts that were recorded
    case RowKind::kCategoryName:
    case RowKind::kCommunicator: return true;
  }
  return true;
}

/// Adds the row, or counts it as lost; skips it if it is outside of the window.
inline bool append(ThreadState& state, const Row& row, SlotKind kind = SlotKind::kRow) {
  if (kind == SlotKind::kRow && !wanted(row)) return false;
  Slot* slot = row.text == kLostText ? nullptr : room(state, 1);
  if (!slot) {
    if (kind == SlotKind::kRow) count_lost(state);
    return false;
  }
  slot->row = row;
  slot->kind = kind;
  publish(state, 1);
  return true;
}

/// The same for a record. Device work whose times are lost counts as happening now.
template <class Record>
bool wanted(const Record& record) {
  if constexpr (kHasTimes<Record>) {
    if (record.end != 0) return in_window(record.start, record.end);
  } else if constexpr (kHasTime<Record>) {
    if (record.time != 0) return in_window(record.time, record.time);
  }
  return kIsFact<Record> || window_begun();
}

/// The time of the record, if it has one.
template <class Record>
std::uint64_t time_of(const Record& record) {
  if constexpr (kHasTimes<Record>) return record.end;
  if constexpr (kHasTime<Record>) return record.time;
  return 0;
}

/// Adds the record, or counts it as lost; skips it if it is outside of the window.
template <class Record>
bool append(ThreadState& state, const Record& record) {
  static_assert(sizeof(Record) % sizeof(std::uint64_t) == 0 && kFieldsOf<Record> <= kMaxFields);
  constexpr auto kFollowing =
      static_cast<std::uint32_t>((sizeof(Record) + sizeof(Slot) - 1) / sizeof(Slot));
  const auto* fields = reinterpret_cast<const std::uint64_t*>(&record);
  if (!wanted(record)) return false;
  bool whole = true;
  for (unsigned i = 0; i < Record::kTexts; ++i) whole = whole && fields[i] != kLostText;
  Slot* slot = whole ? room(state, 1 + kFollowing) : nullptr;
  if (!slot) {
    count_lost(state);
    return false;
  }
  slot->row = {.time = time_of(record),
               .span = sizeof record,
               .category = static_cast<std::uint32_t>(Record::kTable),
               .peer = Record::kTexts,
               .reduction = kIsFact<Record>};
  slot->kind = SlotKind::kRecord;
  std::memcpy(static_cast<void*>(slot + 1), &record, sizeof record);
  publish(state, 1 + kFollowing);
  return true;
}

/// The number of a text, which is stored or written along with the row. kLostText if there is no
/// room for it; 0 for the empty text.
std::uint32_t text_number(ThreadState& state, std::string_view content);

/// Whether a range of this domain, with the text that was just named, marks a step.
inline bool may_be_step(const ThreadState& state, std::uint32_t domain) {
  return state.step.is_mark() || domain == step_domain.load(std::memory_order_relaxed);
}

/// Opens a range of `domain`, described by `fill(Row&)`. Returns its level: the number of open
/// ranges of the domain around it.
template <class Fill>
int push(ThreadState& state, std::uint32_t domain, Fill fill) {
  const std::uint32_t depth = state.depth.load(std::memory_order_relaxed);
  if (depth == kMaxDepth) {
    count_lost(state);
    return static_cast<int>(kMaxDepth + state.overflow++);
  }
  // In place, because copying the row would cost more than writing it.
  Row& row = state.open[depth];
  row = {.domain = domain, .kind = RowKind::kRange};
  state.step = {};
  fill(row);
  std::uint32_t at = depth;
  while (at > 0 && state.open[at - 1].domain != domain) --at;
  row.level = at == 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(state.open[at - 1].level + 1);
  row.time = realtime_ns();
  if (may_be_step(state, domain)) [[unlikely]]
    row.step = open_step(state.step, row);
  state.depth.store(depth + 1, std::memory_order_release);
  return row.level;
}

/// Closes the innermost range of `domain`; `amend(Row&)` adds later data. Returns its
/// level, or -1 for a pop without a push.
template <class Amend>
int pop(ThreadState& state, std::uint32_t domain, Amend amend) {
  const std::uint64_t now = realtime_ns();
  if (state.overflow > 0) {
    --state.overflow;
    return static_cast<int>(kMaxDepth + state.overflow);
  }
  const std::uint32_t depth = state.depth.load(std::memory_order_relaxed);
  std::uint32_t at = depth;
  while (at > 0 && state.open[at - 1].domain != domain) --at;
  if (at == 0) {
    append(state, {.time = now, .domain = domain, .kind = RowKind::kStrayPop});
    return -1;
  }
  Row& row = state.open[at - 1];
  const std::uint32_t text = row.text;
  amend(row);
  const int level = row.level;
  if (row.step) [[unlikely]] {
    // A caller that opens a mark may learn only at its end that it was none, and give it another
    // name.
    if (row.text == text || state.step.is_mark())
      close_step(now);
    else
      abandon_step();
  }
  if (!in_window(row.time, now)) {
    // Left out.
  } else if (Slot* slot = row.text == kLostText ? nullptr : room(state, 1)) {
    slot->row = row;
    slot->row.span = now - row.time;
    slot->row.time = now;
    slot->kind = SlotKind::kRow;
    publish(state, 1);
  } else {
    count_lost(state);
  }
  for (; at < depth; ++at) state.open[at - 1] = state.open[at];
  state.depth.store(depth - 1, std::memory_order_release);
  return level;
}

}  // namespace rehearse::capture
