#include "profiler/capture/flusher.h"

#include <algorithm>
#include <bit>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "profiler/capture/announce.h"
#include "profiler/capture/capture_file.h"
#include "profiler/capture/encode.h"
#include "profiler/capture/recording.h"
#include "profiler/capture/step_keeper.h"
#include "profiler/capture/texts.h"

namespace rehearse::capture {
namespace {

constexpr std::size_t kNamesBuffer = 64 * 1024;
constexpr std::size_t kRowsBuffer = kFlusherBuffer - kNamesBuffer;
// The unit that is written at once, or lost at once if the disk is too full for it.
constexpr std::size_t kCommitAt = 32 * 1024;
// A block of rows of a whole chunk, or the texts or the records in it, and the headers.
constexpr std::size_t kMaxPiece = std::size_t{kChunkSlots} * kColumns * (kMaxVarint + 1) + 256;
static_assert(kChunkSlots * (sizeof(Slot) / 8) * kMaxVarint +
                  64 * (sizeof(BlockHeader) + 4 * kMaxVarint) + 256 <
              kMaxPiece + kChunkSlots * sizeof(Slot));
static_assert(kMaxPiece + kChunkSlots * (sizeof(Slot) + 2 * kMaxVarint) < kRowsBuffer - kCommitAt);
static_assert(kRowsBuffer < kMaxBlockBytes && kChunkSlots <= kMaxBlockRows);
// The tag of data that goes to the file whichever steps are kept.
constexpr std::uint64_t kAlways = UINT64_MAX;
constexpr std::uint64_t kLookEvery = 250000000;  // ns, between two looks for announcements

/// A new slot, and the step that it belongs to.
struct Item {
  const Slot* slot;
  std::uint64_t step;
};

class Flusher {
 public:
  /// `keeps_open`: the file stays open between flushes.
  Flusher(Recording& recording, bool keeps_open)
      : recording_(recording),
        file_(recording.path, recording.offset),
        keeps_open_(keeps_open),
        keeper_(recording.keeper),
        announcements_(recording.path),
        unwritten_(recording.number),
        names_(recording.buffer),
        rows_(recording.buffer + kNamesBuffer) {
    if (keeps_open_) file_.open();
  }

  void flush(bool last) {
    CaptureFile& file = file_;
    encode_chunks(file);
    if (last) {
      // Waits for threads that are handing over a chunk, because it is full or they end.
      while (recording_.leaving.load(std::memory_order_acquire) != 0) ::sched_yield();
      encode_chunks(file);
      for (ThreadState* state = recording_.states.load(std::memory_order_acquire); state;
           state = state->next)
        encode_open(*state);
    }
    if (keeper_) keep_steps(file, last);
    commit(file);
    report_steps(file, last);
    if (last) finish(file);
    if (!keeps_open_) file_.close();
  }

 private:
  /// Encodes new slots: those of chunks that were handed over, and of chunks being filled.
  void encode_chunks(CaptureFile& file) {
    for (Chunk* chunk = recording_.queue.take_all(); chunk;) {
      Chunk* next = chunk->next.load(std::memory_order_relaxed);
      encode(*chunk, file);
      chunk->state->flushed = chunk->sequence + 1;
      recording_.pool.give(*chunk);
      chunk = next;
    }
    for (ThreadState* state = recording_.states.load(std::memory_order_acquire); state;
         state = state->next) {
      // A chunk whose predecessor reached the queue only now waits for the next flush.
      Chunk* chunk = state->chunk.load(std::memory_order_acquire);
      if (chunk && chunk->sequence == state->flushed) encode(*chunk, file);
    }
  }

  /// Encodes the new slots of a chunk.
  void encode(Chunk& chunk, CaptureFile& file) {
    const std::uint32_t end = chunk.used.load(std::memory_order_acquire);
    learn_steps();
    Item items[kChunkSlots];
    std::size_t n = 0;
    std::uint64_t step = kAlways;  // the earliest of them
    for (std::uint32_t i = chunk.encoded; i < end; i += 1 + following_slots(chunk.slots[i])) {
      items[n] = {&chunk.slots[i], step_of(chunk.slots[i])};
      step = std::min(step, items[n++].step);
    }
    chunk.encoded = end;
    if (n == 0) return;
    encode_texts(items, n);
    for (;;) {
      encode_step(chunk.thread, items, n, step);
      std::uint64_t next = kAlways;
      bool more = false;
      for (std::size_t i = 0; i < n; ++i) {
        if (items[i].step <= step) continue;
        more = true;
        next = std::min(next, items[i].step);
      }
      if (!more) break;
      step = next;
    }
    if (rows_.size() > kCommitAt) commit(file);
  }

  /// The step to which a slot belongs. Only a ring distinguishes steps.
  std::uint64_t step_of(const Slot& slot) const {
    if (!keeper_) return kAlways;
    switch (slot.kind) {
      case SlotKind::kThreadName: return kAlways;
      case SlotKind::kText: return keeper_->current();
      case SlotKind::kRecord: return slot.row.reduction ? kAlways : keeper_->step_at(slot.row.time);
      case SlotKind::kRow: break;
    }
    const bool is_fact =
        slot.row.kind == RowKind::kCategoryName || slot.row.kind == RowKind::kCommunicator;
    return is_fact ? kAlways : keeper_->step_at(slot.row.time);
  }

  /// Encodes a block for the file or, if it belongs to a step of the ring, for the ring.
  template <class Fill>
  void emit(BlockType type, std::uint64_t step, std::size_t rows, std::uint32_t last_text,
            Fill fill) {
    const std::size_t before = rows_.size();
    rows_.add(type, fill);
    if (step == kAlways) {
      rows_in_buffer_ += rows;
      last_text_ = std::max(last_text_, last_text);
      return;
    }
    RingBlock block = {};
    block.step = step;
    block.bytes = static_cast<std::uint32_t>(rows_.size() - before);
    block.rows = static_cast<std::uint32_t>(rows);
    block.last_text = last_text;
    block.texts = type == BlockType::kTexts;
    keeper_->add(block, rows_.data() + before);
    rows_.cut(before);
  }

  /// Encodes the slots of one step.
  void encode_step(std::uint32_t thread, const Item* items, std::size_t n, std::uint64_t step) {
    const Row* rows[kChunkSlots];
    std::size_t count = 0;
    bool has_names = false;
    std::uint64_t tables = 0;  // a bit each
    for (std::size_t i = 0; i < n; ++i) {
      const Slot& slot = *items[i].slot;
      if (items[i].step != step) continue;
      if (slot.kind == SlotKind::kRow) rows[count++] = &slot.row;
      has_names = has_names || slot.kind == SlotKind::kThreadName;
      if (slot.kind == SlotKind::kRecord) tables |= std::uint64_t{1} << slot.row.category;
    }
    if (has_names) encode_names(items, n);
    if (count > 0) encode_rows_of(thread, rows, count, step);
    for (; tables != 0; tables &= tables - 1)
      encode_records(thread, items, n, step, static_cast<std::uint32_t>(std::countr_zero(tables)));
  }

  /// Encodes texts that are written along with rows. They go before the rows, so all at once.
  void encode_texts(const Item* items, std::size_t n) {
    const auto is_text = [](const Item& item) { return item.slot->kind == SlotKind::kText; };
    const Item* first = std::find_if(items, items + n, is_text);
    if (first == items + n) return;
    emit(BlockType::kTexts, first->step, 0, 0, [&](Encoder& out) {
      for (const Item* item = first; item < items + n; ++item) {
        if (!is_text(*item)) continue;
        out.varint(item->slot->row.text);
        out.text({reinterpret_cast<const char*>(item->slot + 1), item->slot->row.span});
      }
    });
  }

  /// Encodes the records of one table.
  void encode_records(std::uint32_t thread, const Item* items, std::size_t n, std::uint64_t step,
                      std::uint32_t table) {
    const std::uint64_t* records[kChunkSlots];
    std::size_t count = 0;
    const Row* head = nullptr;
    std::uint32_t last_text = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Slot& slot = *items[i].slot;
      if (items[i].step != step || slot.kind != SlotKind::kRecord || slot.row.category != table)
        continue;
      head = &slot.row;
      records[count++] = reinterpret_cast<const std::uint64_t*>(&slot + 1);
      for (std::uint32_t text = 0; text < slot.row.peer; ++text)
        last_text = std::max(last_text, static_cast<std::uint32_t>(records[count - 1][text]));
    }
    if (!head) return;
    const std::size_t fields = head->span / sizeof(std::uint64_t);
    emit(BlockType::kRecords, step, count, last_text, [&](Encoder& out) {
      out.varint(table);
      out.varint(thread);
      out.varint(count);
      out.varint(fields);
      std::uint64_t values[kChunkSlots];
      for (std::size_t field = 0; field < fields; ++field) {
        for (std::size_t i = 0; i < count; ++i) values[i] = records[i][field];
        encode_column(out, values, count);
      }
    });
  }

  void encode_names(const Item* items, std::size_t n) {
    emit(BlockType::kThreads, kAlways, 0, 0, [&](Encoder& out) {
      for (std::size_t i = 0; i < n; ++i) {
        const Slot& slot = *items[i].slot;
        if (slot.kind != SlotKind::kThreadName) continue;
        out.varint(slot.row.span);
        out.varint(slot.row.text);
        last_text_ = std::max(last_text_, slot.row.text);
      }
    });
  }

  void encode_rows_of(std::uint32_t thread, const Row* const* rows, std::size_t n,
                      std::uint64_t step) {
    std::uint32_t last_text = 0;
    for (std::size_t i = 0; i < n; ++i)
      last_text = std::max({last_text, rows[i]->text, rows[i]->domain});
    emit(BlockType::kRows, step, n, last_text,
         [&](Encoder& out) { encode_rows(out, thread, rows, n); });
  }

  /// Encodes the ranges that a thread has open at the end of the process.
  void encode_open(const ThreadState& state) {
    if (!state.in_use.load(std::memory_order_acquire)) return;
    const std::uint32_t depth = state.depth.load(std::memory_order_acquire);
    for (std::uint32_t begin = 0; begin < depth; begin += kChunkSlots) {
      Row open[kChunkSlots];
      const Row* rows[kChunkSlots];
      std::size_t n = 0;
      for (std::uint32_t i = begin; i < depth && i < begin + kChunkSlots; ++i) {
        if (state.open[i].text == kLostText) continue;
        open[n] = state.open[i];
        open[n].kind = RowKind::kOpen;
        if (!wanted(open[n])) continue;
        rows[n] = &open[n];
        ++n;
      }
      if (n > 0) encode_rows_of(state.thread, rows, n, keeper_ ? keeper_->current() : kAlways);
    }
  }

  static void encode_clock(Encoder& out) {
    out.varint(clock_ns(CLOCK_REALTIME));
    out.varint(clock_ns(CLOCK_MONOTONIC_RAW));
  }

  /// Writes the texts that the rows in the buffer need, then the rows, and the data that belongs to
  /// them. Rows that do not reach the file are counted as lost. Texts of later rows are written
  /// later: on a disk that is nearly full they would take the space of rows that could be read.
  void commit(CaptureFile& file) {
    if (rows_.size() != 0) {
      rows_.add(BlockType::kClock, encode_clock);
      count_rows(rows_in_buffer_,
                 write_texts(file, last_text_) && file.append(rows_.data(), rows_.size()));
      rows_.clear();
      rows_in_buffer_ = 0;
    }
    report_loss(file);
  }

  void count_rows(std::uint64_t rows, bool written) {
    (written ? rows_written_ : rows_refused_) += rows;
  }

  /// Writes texts with numbers up to `last`.
  bool write_texts(CaptureFile& file, std::uint32_t last) {
    if (!unwritten_.rewind()) return true;
    Text* texts[kNamesBuffer / 32];
    for (Text* text = unwritten_.next(last); text;) {
      std::size_t n = 0;
      names_.add(BlockType::kTexts, [&](Encoder& out) {
        for (; text && n < std::size(texts) &&
               out.size() + text->bytes + 2 * kMaxVarint < kNamesBuffer - sizeof(BlockHeader);
             text = unwritten_.next(last)) {
          out.varint(text->number);
          out.text(text->view());
          texts[n++] = text;
        }
      });
      const bool written = file.append(names_.data(), names_.size());
      names_.clear();
      if (!written) return false;
      for (std::size_t i = 0; i < n; ++i) unwritten_.written(*texts[i]);
    }
    return true;
  }

  /// Takes over the steps that ended meanwhile, and announces the kept ones to the other ranks.
  void learn_steps() {
    if (!keeper_) return;
    Step step;
    for (const std::uint64_t ended = steps_ended(); learned_ < ended; ++learned_) {
      if (!ended_step(learned_, step)) continue;  // too many steps ended since then
      if (const KnownStep* old = keeper_->leaving(); old && old->announced)
        announcements_.remove(old->step.number, old->round);
      KnownStep& known = keeper_->end(step);
      if (known.cause != KeepCause::kTrigger || keeper_->trigger().kind == Trigger::Kind::kEvery)
        continue;  // by their numbers the other ranks keep the same
      char reason[kReasonBytes];
      announcements_.make(step.number, known.round, reason_of(known, reason));
      known.announced = true;
    }
  }

  /// Writes the kept steps of the ring to the file.
  void keep_steps(CaptureFile& file, bool last) {
    learn_steps();
    look_for_announcements(last);
    emit(BlockType::kClock, keeper_->current(), 0, 0, encode_clock);
    commit(file);
    bool texts = false;
    keeper_->write_kept([&](std::uint32_t last_text) { texts = write_texts(file, last_text); },
                        [&](const RingBlock& block, const unsigned char* bytes) {
                          const bool written = texts && file.append(bytes, block.bytes);
                          count_rows(block.rows, written);
                          return written;
                        });
    keeper_->each_note(last, [&](const KnownStep& step) { note(file, step); });
  }

  /// Reads the announcements of other ranks, but not at every flush: the folder may be on another
  /// machine, and flushes are frequent under load.
  void look_for_announcements(bool last) {
    const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (!last && now < next_look_) return;
    next_look_ = now + kLookEvery;
    announcements_.each(
        [&](std::uint64_t number, std::uint32_t round) { keeper_->announced(number, round); });
  }

  void note(CaptureFile& file, const KnownStep& step) {
    char reason[kReasonBytes];
    const std::string_view text = reason_of(step, reason);
    const std::uint32_t number = new_text_number();
    const KeptStepRecord record = {.reason = number,
                                   .step = step.step.number,
                                   .start = step.step.begin,
                                   .end = step.step.end,
                                   .cause = static_cast<std::uint64_t>(step.cause),
                                   .recorded = step.added,
                                   .kept = step.kept};
    names_.add(BlockType::kTexts, [&](Encoder& out) {
      out.varint(number);
      out.text(text);
    });
    names_.add(BlockType::kRecords, [&](Encoder& out) {
      out.varint(static_cast<std::uint64_t>(KeptStepRecord::kTable));
      out.varint(static_cast<std::uint64_t>(recording_.owner));
      out.varint(1);
      out.varint(kFieldsOf<KeptStepRecord>);
      const auto* values = reinterpret_cast<const std::uint64_t*>(&record);
      for (unsigned field = 0; field < kFieldsOf<KeptStepRecord>; ++field)
        encode_column(out, values + field, 1);
    });
    count_rows(1, file.append(names_.data(), names_.size()));
    names_.clear();
  }

  static constexpr std::size_t kReasonBytes = 128;

  /// The reason for keeping a step, for people.
  std::string_view reason_of(const KnownStep& step, char (&into)[kReasonBytes]) const {
    if (step.cause == KeepCause::kAnnounced) return "another rank keeps it";
    if (step.cause == KeepCause::kNeighbor) return "a neighbouring step is kept";
    const Trigger& trigger = keeper_->trigger();
    const double value = static_cast<double>(trigger.value);
    const double took = static_cast<double>(step.step.end - step.step.begin) * 1e-6;
    const double limit = static_cast<double>(step.limit) * 1e-6;
    int n = 0;
    switch (trigger.kind) {
      case Trigger::Kind::kNone: break;
      case Trigger::Kind::kPercentile:
        n = ::snprintf(into, sizeof into, "step_time %.3f ms > p%g, %.3f ms", took, value * 1e-3,
                       limit);
        break;
      case Trigger::Kind::kLonger:
        n = ::snprintf(into, sizeof into, "step_time %.3f ms > %g ms", took, limit);
        break;
      case Trigger::Kind::kTimesMedian:
        n = ::snprintf(into, sizeof into, "step_time %.3f ms > %gx median, %.3f ms", took,
                       value * 1e-3, limit);
        break;
      case Trigger::Kind::kEvery: n = ::snprintf(into, sizeof into, "every %g", value); break;
    }
    return {into, static_cast<std::size_t>(std::clamp(n, 0, static_cast<int>(sizeof into) - 1))};
  }

  std::uint64_t lost() const {
    std::uint64_t rows = rows_refused_ + recording_.lost.load(std::memory_order_relaxed);
    for (const ThreadState* state = recording_.states.load(std::memory_order_acquire); state;
         state = state->next)
      rows += state->lost.load(std::memory_order_relaxed);
    return rows;
  }

  void report_loss(CaptureFile& file) {
    const std::uint64_t rows = lost();
    if (rows == rows_reported_) return;
    names_.add(BlockType::kLoss, [&](Encoder& out) { out.varint(rows); });
    if (file.append(names_.data(), names_.size())) rows_reported_ = rows;
    names_.clear();
  }

  /// Reports the state of the steps so far: whenever one was kept, and at the end.
  void report_steps(CaptureFile& file, bool last) {
    if (!keeper_ && !has_window()) return;
    StepCounts counts;
    if (keeper_) {
      counts = keeper_->counts();
    } else {
      counts.kept = steps_in_window();
      counts.seen = steps_ended();
    }
    const std::uint64_t done = counts.kept + counts.in_part + counts.gone;
    if (done == steps_reported_ && !last) return;
    names_.add(BlockType::kSteps, [&](Encoder& out) {
      for (const std::uint64_t number :
           {counts.seen, counts.kept, counts.in_part, counts.gone, counts.rows})
        out.varint(number);
    });
    if (file.append(names_.data(), names_.size())) steps_reported_ = done;
    names_.clear();
  }

  void finish(CaptureFile& file) {
    names_.add(BlockType::kTrailer, [&](Encoder& out) {
      out.varint(rows_written_);
      out.varint(lost());
      encode_clock(out);
    });
    file.append_last(names_.data(), names_.size());
    file.trim();
  }

  Recording& recording_;
  CaptureFile file_;
  const bool keeps_open_;
  StepKeeper* keeper_;  // null where all goes to the file
  Announcements announcements_;
  UnwrittenTexts unwritten_;
  BlockBuffer names_;
  BlockBuffer rows_;
  std::uint64_t rows_in_buffer_ = 0;
  std::uint32_t last_text_ =
      0;  ///< the highest number of a text that rows for the file so far have
  std::uint64_t rows_written_ = 0;
  std::uint64_t rows_refused_ = 0;
  std::uint64_t rows_reported_ = 0;
  std::uint64_t steps_reported_ = 0;
  std::uint64_t next_look_ = 0;
  std::uint64_t learned_ = 0;  ///< steps that the keeper knows of, or that came too fast for it
};

/// Gives this thread an empty table of descriptors of its own. The program may close descriptors that
/// it did not open, use all that its limit allows, or change its root. False if the kernel has no such
/// call: then an open file could be closed by the program, and its number mean another file.
bool has_own_descriptors() {
  return ::syscall(SYS_close_range, 0U, ~0U, 2U /* CLOSE_RANGE_UNSHARE */) == 0;
}

}  // namespace

void* run_flusher(void* argument) {
  auto& recording = *static_cast<Recording*>(argument);
  ::pthread_setname_np(::pthread_self(), "rehearse");
  Flusher flusher(recording, has_own_descriptors());
  for (bool last = false; !last;) {
    recording.flusher_sleeps.store(1, std::memory_order_seq_cst);
    if (recording.closing.load(std::memory_order_seq_cst) == 0 &&
        recording.queue.waiting() < kWakeAtChunks)
      futex_wait(recording.flusher_sleeps, 1, kFlushEvery);
    recording.flusher_sleeps.store(0, std::memory_order_relaxed);
    last = recording.closing.load(std::memory_order_acquire) != 0;
    flusher.flush(last);
  }
  recording.closed.store(1, std::memory_order_release);
  futex_wake(recording.closed);
  return nullptr;
}

}  // namespace rehearse::capture
