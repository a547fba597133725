// Reading capture files: the blocks of a file, and the contents of each kind of block. For the
// importer and the launcher, which decide how to handle damage.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/capture/format.h"
#include "profiler/capture/records.h"

namespace rehearse::capture {

struct Block {
  BlockType type;  ///< may be one that this version does not know
  std::span<const unsigned char> payload;
};

/// Reads a file in bounded memory. Blocks with a wrong checksum are counted and skipped,
/// as long as their lengths are plausible.
class BlockReader {
 public:
  /// Fills `into` from its beginning; returns fewer bytes than requested only at the end of the
  /// file.
  using Read = std::function<std::size_t(std::span<char>)>;

  explicit BlockReader(Read read) : read_(std::move(read)) {}

  enum class Begin { kCapture, kOther, kUnknownVersion, kTooShort };
  /// Reads the file's header. Call it once, before anything else.
  Begin begin();

  /// The next valid block, which stays valid until the next call; nothing at the end.
  std::optional<Block> next();

  std::uint64_t offset() const { return offset_; }    ///< file offset of the last block, bytes
  std::uint64_t damaged() const { return damaged_; }  ///< blocks skipped so far
  bool cut() const { return cut_; }                   ///< the file ends inside a block

 private:
  bool fill(void* into, std::size_t n);

  Read read_;
  std::vector<unsigned char> payload_;
  std::uint64_t offset_ = 0;
  std::uint64_t next_offset_ = 0;
  std::uint64_t damaged_ = 0;
  bool cut_ = false;
  bool ended_ = false;
};

/// Contents of BlockType::kProcess.
struct ProcessFacts {
  std::string host;
  std::uint32_t process = 0;
  std::uint32_t parent = 0;
  std::uint32_t forked_from = 0;  ///< the recorded process; 0: none
  std::optional<std::uint32_t> rank = {};
  std::optional<std::uint32_t> world_size = {};
  std::optional<std::uint32_t> local_rank = {};
  std::uint64_t realtime_ns = 0;
  std::uint64_t monotonic_ns = 0;
  std::vector<std::string> command = {};
  std::uint32_t cpus = 0;  ///< that it may use; 0: not known, as in captures of older versions
};

/// Contents of BlockType::kClock: CLOCK_REALTIME and CLOCK_MONOTONIC_RAW at one moment.
struct ClockPair {
  std::uint64_t realtime_ns = 0;
  std::uint64_t monotonic_ns = 0;
};

/// Contents of BlockType::kTrailer.
struct Trailer {
  std::uint64_t rows = 0;
  std::uint64_t lost = 0;
  ClockPair clock = {};
};

/// An entry of BlockType::kTexts or kThreads: a number and its text.
struct NumberedText {
  std::uint32_t number;
  std::string_view text;  ///< into the payload
};
struct ThreadName {
  std::uint32_t thread;
  std::uint32_t text;
};

/// Contents of BlockType::kRows.
struct RowsBlock {
  std::uint32_t thread = 0;
  std::vector<Row> rows = {};
};

/// Contents of BlockType::kRecords.
struct RecordsBlock {
  TableId table = {};  ///< may be one that this version does not know
  std::uint32_t thread = 0;
  std::size_t count = 0;
  std::size_t fields = 0;                  ///< fields of each record, in the file
  std::vector<std::uint64_t> values = {};  ///< field by field

  /// Record `i`, with the fields that this version knows.
  template <class Record>
  Record at(std::size_t i) const {
    std::array<std::uint64_t, kFieldsOf<Record>> known = {};
    for (std::size_t f = 0; f < std::min(fields, known.size()); ++f)
      known[f] = values[f * count + i];
    return std::bit_cast<Record>(known);
  }
};

// Each returns the contents of a payload, or nothing for an invalid one.
std::optional<ProcessFacts> decode_process(std::span<const unsigned char> payload);
std::optional<std::vector<NumberedText>> decode_texts(std::span<const unsigned char> payload);
std::optional<std::vector<ThreadName>> decode_threads(std::span<const unsigned char> payload);
std::optional<ClockPair> decode_clock(std::span<const unsigned char> payload);
std::optional<std::uint64_t> decode_loss(std::span<const unsigned char> payload);
std::optional<StepCounts> decode_steps(std::span<const unsigned char> payload);
std::optional<Trailer> decode_trailer(std::span<const unsigned char> payload);
/// The same for rows and records, into memory that is reused. False if the payload is invalid.
bool decode_rows(std::span<const unsigned char> payload, RowsBlock& into);
bool decode_records(std::span<const unsigned char> payload, RecordsBlock& into);

}  // namespace rehearse::capture
