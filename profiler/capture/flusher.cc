#include "profiler/capture/flusher.h"

#include <algorithm>
#include <bit>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/capture/recording.h"
#include "profiler/capture/texts.h"

namespace rehearse::capture {
namespace {

constexpr std::size_t kNamesBuffer = 64 * 1024;
constexpr std::size_t kRowsBuffer = kFlusherBuffer - kNamesBuffer;
// Written at once, or lost at once where the disk is too full for it.
constexpr std::size_t kCommitAt = 32 * 1024;
// A block of rows of a whole chunk, or the texts or the records in it, and the headers.
constexpr std::size_t kMaxPiece = std::size_t{kChunkSlots} * kColumns * (kMaxVarint + 1) + 256;
static_assert(kChunkSlots * (sizeof(Slot) / 8) * kMaxVarint +
                  64 * (sizeof(BlockHeader) + 4 * kMaxVarint) + 256 <
              kMaxPiece + kChunkSlots * sizeof(Slot));
static_assert(kMaxPiece + kChunkSlots * (sizeof(Slot) + 2 * kMaxVarint) < kRowsBuffer - kCommitAt);
static_assert(kRowsBuffer < kMaxBlockBytes && kChunkSlots <= kMaxBlockRows);
// What the last blocks take, kept free behind the rows so that a full disk cannot keep them out.
constexpr std::size_t kReserve = 256;

/// Blocks one behind the other in a piece of memory.
class BlockBuffer {
 public:
  explicit BlockBuffer(void* memory) : begin_(static_cast<unsigned char*>(memory)) {}

  /// `fill(Encoder&)` writes the payload.
  template <class Fill>
  void add(BlockType type, Fill fill) {
    unsigned char* payload = begin_ + size_ + sizeof(BlockHeader);
    Encoder out(payload);
    fill(out);
    const auto bytes = static_cast<std::uint32_t>(out.size());
    const BlockHeader header = {.type = static_cast<std::uint32_t>(type),
                                .bytes = bytes,
                                .crc = block_crc(type, payload, bytes)};
    std::memcpy(begin_ + size_, &header, sizeof header);
    size_ += sizeof header + bytes;
  }

  const unsigned char* data() const { return begin_; }
  std::size_t size() const { return size_; }
  void clear() { size_ = 0; }

 private:
  unsigned char* begin_;
  std::size_t size_ = 0;
};

/// The capture file. It is opened anew for each flush: a program may close descriptors that it did
/// not open, and what it opens next must not be written to.
class File {
 public:
  explicit File(Recording& recording) : recording_(recording) {}
  ~File() {
    if (file_ >= 0) ::close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Appends `n` bytes or nothing, and leaves kReserve more that can be written.
  bool append(const void* bytes, std::size_t n) { return reserve(n) && write(bytes, n); }
  /// The same from the reserve.
  bool append_last(const void* bytes, std::size_t n) { return is_open() && write(bytes, n); }
  /// Gives back what was reserved.
  void trim() {
    if (file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(recording_.offset)) != 0) errno = 0;
  }

 private:
  bool is_open() {
    if (file_ < 0) file_ = ::open(recording_.path, O_WRONLY | O_CLOEXEC);
    return file_ >= 0;
  }

  bool reserve(std::size_t n) {
    if (!is_open()) return false;
    const std::uint64_t end = recording_.offset + n + kReserve;
    rlimit limit;
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < end) return false;
    if (::fallocate(file_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(recording_.offset),
                    static_cast<off_t>(n + kReserve)) == 0)
      return true;
    return errno != ENOSPC && errno != EDQUOT && errno != EFBIG;  // others: it cannot reserve
  }

  bool write(const void* bytes, std::size_t n) {
    const auto* from = static_cast<const char*>(bytes);
    for (std::size_t done = 0; done < n;) {
      const ssize_t wrote =
          ::pwrite(file_, from + done, n - done, static_cast<off_t>(recording_.offset + done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) {
        trim();
        return false;
      }
      done += static_cast<std::size_t>(wrote);
    }
    recording_.offset += n;
    return true;
  }

  Recording& recording_;
  int file_ = -1;
};

std::uint64_t value_of(const Row& row, Column column) {
  switch (column) {
    case Column::kKind:
      return static_cast<std::uint64_t>(row.kind);
    case Column::kTime:
      return row.time;
    case Column::kSpan:
      return row.span;
    case Column::kText:
      return row.text;
    case Column::kDomain:
      return row.domain;
    case Column::kCategory:
      return row.category;
    case Column::kPayloadKind:
      return static_cast<std::uint64_t>(row.payload_kind);
    case Column::kPayload:
      return row.payload;
    case Column::kGroup:
      return row.group;
    case Column::kPeer:
      return row.peer;
    case Column::kReduction:
      return row.reduction;
  }
  return 0;
}

/// The shortest of the three encodings.
void encode_column(Encoder& out, const std::uint64_t* values, std::size_t n) {
  bool constant = true;
  std::size_t plain = 0, delta = 0;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < n; ++i) {
    constant = constant && values[i] == values[0];
    plain += varint_bytes(values[i]);
    delta += varint_bytes(zigzag(static_cast<std::int64_t>(values[i] - before)));
    before = values[i];
  }
  if (constant) {
    out.byte(static_cast<unsigned>(Encoding::kConstant));
    out.varint(values[0]);
  } else if (plain <= delta) {
    out.byte(static_cast<unsigned>(Encoding::kPlain));
    for (std::size_t i = 0; i < n; ++i) out.varint(values[i]);
  } else {
    out.byte(static_cast<unsigned>(Encoding::kDelta));
    before = 0;
    for (std::size_t i = 0; i < n; ++i) {
      out.varint(zigzag(static_cast<std::int64_t>(values[i] - before)));
      before = values[i];
    }
  }
}

class Flusher {
 public:
  explicit Flusher(Recording& recording)
      : recording_(recording),
        unwritten_(recording.number),
        names_(recording.buffer),
        rows_(recording.buffer + kNamesBuffer) {}

  void flush(bool last) {
    File file(recording_);
    for (Chunk* chunk = recording_.queue.take_all(); chunk;) {
      Chunk* next = chunk->next.load(std::memory_order_relaxed);
      encode(*chunk, file);
      chunk->state->flushed = chunk->sequence + 1;
      recording_.pool.give(*chunk);
      chunk = next;
    }
    for (ThreadState* state = recording_.states.load(std::memory_order_acquire); state;
         state = state->next) {
      // A chunk whose predecessor came to the queue just now waits for the next flush.
      Chunk* chunk = state->chunk.load(std::memory_order_acquire);
      if (chunk && chunk->sequence == state->flushed) encode(*chunk, file);
      if (last) encode_open(*state);
    }
    commit(file);
    if (last) finish(file);
  }

 private:
  /// The slots of a chunk that are new.
  void encode(Chunk& chunk, File& file) {
    const std::uint32_t end = chunk.used.load(std::memory_order_acquire);
    const Row* rows[kChunkSlots];
    std::size_t n = 0;
    bool has_texts = false, has_names = false;
    std::uint64_t tables = 0;  // a bit each
    each_slot(chunk, end, [&](const Slot& slot) {
      if (slot.kind == SlotKind::kRow) rows[n++] = &slot.row;
      has_names = has_names || slot.kind == SlotKind::kThreadName;
      has_texts = has_texts || slot.kind == SlotKind::kText;
      if (slot.kind == SlotKind::kRecord) tables |= std::uint64_t{1} << slot.row.category;
    });
    if (has_texts) encode_texts(chunk, end);
    if (has_names) encode_names(chunk, end);
    if (n > 0) encode_rows(chunk.thread, rows, n);
    for (; tables != 0; tables &= tables - 1)
      encode_records(chunk, end, static_cast<std::uint32_t>(std::countr_zero(tables)));
    chunk.encoded = end;
    if (rows_.size() > kCommitAt) commit(file);
  }

  /// Calls visit(slot) for each slot that is new, but not for what they carry.
  template <class Visit>
  static void each_slot(const Chunk& chunk, std::uint32_t end, Visit visit) {
    for (std::uint32_t i = chunk.encoded; i < end; i += 1 + slots_behind(chunk.slots[i]))
      visit(chunk.slots[i]);
  }

  void encode_texts(const Chunk& chunk, std::uint32_t end) {
    rows_.add(BlockType::kTexts, [&](Encoder& out) {
      each_slot(chunk, end, [&](const Slot& slot) {
        if (slot.kind != SlotKind::kText) return;
        out.varint(slot.row.text);
        out.text({reinterpret_cast<const char*>(&slot + 1), slot.row.span});
      });
    });
  }

  /// The records of one table.
  void encode_records(const Chunk& chunk, std::uint32_t end, std::uint32_t table) {
    const std::uint64_t* records[kChunkSlots];
    std::size_t n = 0;
    const Row* head = nullptr;
    each_slot(chunk, end, [&](const Slot& slot) {
      if (slot.kind != SlotKind::kRecord || slot.row.category != table) return;
      head = &slot.row;
      records[n++] = reinterpret_cast<const std::uint64_t*>(&slot + 1);
    });
    const std::size_t fields = head->span / sizeof(std::uint64_t);
    rows_.add(BlockType::kRecords, [&](Encoder& out) {
      out.varint(table);
      out.varint(chunk.thread);
      out.varint(n);
      out.varint(fields);
      std::uint64_t values[kChunkSlots];
      for (std::size_t field = 0; field < fields; ++field) {
        for (std::size_t i = 0; i < n; ++i) values[i] = records[i][field];
        encode_column(out, values, n);
        if (field >= head->peer) continue;
        for (std::size_t i = 0; i < n; ++i)
          last_text_ = std::max(last_text_, static_cast<std::uint32_t>(values[i]));
      }
    });
    rows_in_buffer_ += n;
  }

  void encode_names(const Chunk& chunk, std::uint32_t end) {
    rows_.add(BlockType::kThreads, [&](Encoder& out) {
      each_slot(chunk, end, [&](const Slot& slot) {
        if (slot.kind != SlotKind::kThreadName) return;
        out.varint(slot.row.span);
        out.varint(slot.row.text);
        last_text_ = std::max(last_text_, slot.row.text);
      });
    });
  }

  void encode_rows(std::uint32_t thread, const Row* const* rows, std::size_t n) {
    rows_.add(BlockType::kRows, [&](Encoder& out) {
      out.varint(thread);
      out.varint(n);
      std::uint64_t values[kChunkSlots];
      for (unsigned column = 0; column < kColumns; ++column) {
        for (std::size_t i = 0; i < n; ++i)
          values[i] = value_of(*rows[i], static_cast<Column>(column));
        encode_column(out, values, n);
      }
    });
    for (std::size_t i = 0; i < n; ++i)
      last_text_ = std::max({last_text_, rows[i]->text, rows[i]->domain});
    rows_in_buffer_ += n;
  }

  /// The ranges that a thread has open at the end of the process.
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
        rows[n] = &open[n];
        ++n;
      }
      if (n > 0) encode_rows(state.thread, rows, n);
    }
  }

  /// Writes the texts that the rows in the buffer need, the rows, and what goes with them. Rows
  /// that do not get to the file are counted as lost. Texts of later rows wait for those: on a disk
  /// that is nearly full they would take the room of rows that could be read.
  void commit(File& file) {
    if (rows_.size() == 0) return;
    rows_.add(BlockType::kClock, [](Encoder& out) {
      out.varint(clock_ns(CLOCK_REALTIME));
      out.varint(clock_ns(CLOCK_MONOTONIC_RAW));
    });
    if (write_texts(file) && file.append(rows_.data(), rows_.size())) {
      rows_written_ += rows_in_buffer_;
    } else {
      rows_refused_ += rows_in_buffer_;
    }
    rows_.clear();
    rows_in_buffer_ = 0;
    report_loss(file);
  }

  bool write_texts(File& file) {
    if (!unwritten_.rewind()) return true;
    Text* texts[kNamesBuffer / 32];
    for (Text* text = unwritten_.next(last_text_); text;) {
      std::size_t n = 0;
      names_.add(BlockType::kTexts, [&](Encoder& out) {
        for (; text && n < std::size(texts) &&
               out.size() + text->bytes + 2 * kMaxVarint < kNamesBuffer - sizeof(BlockHeader);
             text = unwritten_.next(last_text_)) {
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

  std::uint64_t lost() const {
    std::uint64_t rows = rows_refused_ + recording_.lost.load(std::memory_order_relaxed);
    for (const ThreadState* state = recording_.states.load(std::memory_order_acquire); state;
         state = state->next)
      rows += state->lost.load(std::memory_order_relaxed);
    return rows;
  }

  void report_loss(File& file) {
    const std::uint64_t rows = lost();
    if (rows == rows_reported_) return;
    names_.add(BlockType::kLoss, [&](Encoder& out) { out.varint(rows); });
    if (file.append(names_.data(), names_.size())) rows_reported_ = rows;
    names_.clear();
  }

  void finish(File& file) {
    names_.add(BlockType::kTrailer, [&](Encoder& out) {
      out.varint(rows_written_);
      out.varint(lost());
      out.varint(clock_ns(CLOCK_REALTIME));
      out.varint(clock_ns(CLOCK_MONOTONIC_RAW));
    });
    file.append_last(names_.data(), names_.size());
    file.trim();
  }

  Recording& recording_;
  UnwrittenTexts unwritten_;
  BlockBuffer names_;
  BlockBuffer rows_;
  std::uint64_t rows_in_buffer_ = 0;
  std::uint32_t last_text_ = 0;  ///< the highest number of a text that rows so far have
  std::uint64_t rows_written_ = 0;
  std::uint64_t rows_refused_ = 0;
  std::uint64_t rows_reported_ = 0;
};

}  // namespace

void* run_flusher(void* argument) {
  auto& recording = *static_cast<Recording*>(argument);
  ::pthread_setname_np(::pthread_self(), "rehearse");
  Flusher flusher(recording);
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
