// The capture file, written by the injected library and read by readers and the launcher.
//
// A file is a FileHeader and blocks: a BlockHeader, then its payload. docs/formats/capture.md gives
// the layout byte by byte. All numbers are little-endian; inside payloads they are varints (LEB128,
// signed ones zigzag), texts are a length and that many bytes.
//
// This header is part of the injected library, which needs only libc: nothing here allocates,
// throws, or calls into the C++ runtime.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace rehearse::capture {

static_assert(std::endian::native == std::endian::little);

inline constexpr char kMagic[8] = {'\x89', 'R', 'H', 'C', 'A', 'P', '\r', '\n'};
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kMaxBlockBytes = 1 << 20;  ///< no payload is longer
inline constexpr std::uint32_t kMaxBlockRows = 256;       ///< no block of rows holds more
inline constexpr std::size_t kMaxTextBytes = 1024;        ///< longer texts are cut

inline constexpr char kCaptureSuffix[] = ".cap";
inline constexpr char kHelloSuffix[] = ".hello";
inline constexpr char kFolderVariable[] = "REHEARSE_CAPTURE_DIR";

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
};
static_assert(sizeof(FileHeader) == 16);

enum class BlockType : std::uint32_t {
  kProcess = 1,  ///< which process this is; always the first block
  kTexts = 2,    ///< numbers and their texts
  kThreads = 3,  ///< names of threads
  kRows = 4,     ///< rows of one thread, column by column
  kClock = 5,    ///< the wall clock and the monotonic clock at one moment
  kLoss = 6,     ///< how many rows were lost so far
  kTrailer = 7,  ///< the process ended in order; always the last block
  kRecords = 8,  ///< records of one table (records.h), field by field
  kSteps = 9,    ///< how many steps were seen and kept so far; of a recording of chosen steps
};

struct BlockHeader {
  std::uint32_t type;
  std::uint32_t bytes;  ///< length of the payload
  std::uint32_t crc;    ///< CRC-32C of type, bytes and payload
};
static_assert(sizeof(BlockHeader) == 12);

enum class RowKind : std::uint8_t {
  kRange = 1,         ///< a range: `time` is its end, `span` its duration
  kMark = 2,          ///< an instant
  kStart = 3,         ///< a range of any thread starts: `span` is its number
  kEnd = 4,           ///< the range with the number `span` ends
  kOpen = 5,          ///< a range that was still open when its thread or the process ended
  kStrayPop = 6,      ///< a pop without a push
  kCategoryName = 7,  ///< `text` names `category` of `domain`
  kCommunicator = 8,  ///< `group` has `payload` ranks, and this process is rank `span` of it
};
inline constexpr unsigned kRowKinds = 9;  ///< one more than the last

enum class PayloadKind : std::uint8_t {
  kNone = 0,
  kUint64 = 1,
  kInt64 = 2,
  kDouble = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat = 6,
  kMessageBytes = 7,  ///< of a communication call, per rank, as the library counts it
};
inline constexpr unsigned kPayloadKinds = 8;

/// One record. Fields that a kind does not use are zero.
struct Row {
  std::uint64_t time = 0;     ///< CLOCK_REALTIME, ns
  std::uint64_t span = 0;     ///< ns, or a number: see RowKind
  std::uint64_t payload = 0;  ///< its bits, as PayloadKind says
  std::uint64_t group = 0;    ///< hash of the communicator; 0 none
  std::uint32_t text = 0;     ///< number of a text; 0 none
  std::uint32_t domain = 0;   ///< number of the text that names the domain; 0 the default one
  std::uint32_t category = 0;
  std::uint32_t peer = 0;       ///< root or peer rank plus one; 0 none
  std::uint32_t reduction = 0;  ///< reduction operation plus one; 0 none
  RowKind kind = RowKind::kRange;
  PayloadKind payload_kind = PayloadKind::kNone;
  // Not written:
  std::uint16_t level : 15 = 0;  ///< open ranges of its domain below it
  std::uint16_t step : 1 = 0;    ///< its end is the end of a step (steps.h)
};

/// Columns of a block of rows, in the order in which they are written.
enum class Column : std::uint8_t {
  kKind,
  kTime,
  kSpan,
  kText,
  kDomain,
  kCategory,
  kPayloadKind,
  kPayload,
  kGroup,
  kPeer,
  kReduction,
};
inline constexpr unsigned kColumns = 11;

enum class Encoding : std::uint8_t {
  kConstant = 0,  ///< one varint for all rows
  kPlain = 1,     ///< a varint per row
  kDelta = 2,     ///< a zigzag varint per row: the difference to the row before (the first: to 0)
};

constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

/// BlockType::kSteps, of a recording of chosen steps.
struct StepCounts {
  std::uint64_t seen = 0;
  std::uint64_t kept = 0;     ///< whole; for a ring, those that a trigger named, here or elsewhere
  std::uint64_t in_part = 0;  ///< steps that were partly in the ring
  std::uint64_t gone = 0;     ///< steps that had left the ring entirely
  std::uint64_t rows = 0;     ///< rows and records that went into the ring, kept or not
};

inline constexpr std::size_t kMaxVarint = 10;  ///< bytes of the longest

constexpr std::size_t varint_bytes(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

/// Writes into memory that the caller owns. REQUIRES: the written data fits.
class Encoder {
 public:
  explicit Encoder(unsigned char* begin) : begin_(begin), at_(begin) {}

  void byte(unsigned value) { *at_++ = static_cast<unsigned char>(value); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<unsigned>(value) | 0x80);
    byte(static_cast<unsigned>(value));
  }
  void raw(const void* from, std::size_t n) {
    std::memcpy(at_, from, n);
    at_ += n;
  }
  void text(std::string_view value) {
    varint(value.size());
    raw(value.data(), value.size());
  }

  std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }

 private:
  unsigned char* begin_;
  unsigned char* at_;
};

/// Reads the output of Encoder. Past the end, or on invalid data, it reads zeros and ok()
/// stays false.
class Decoder {
 public:
  explicit Decoder(std::span<const unsigned char> bytes) : bytes_(bytes) {}

  unsigned byte() {
    if (at_ == bytes_.size()) ok_ = false;
    return ok_ ? bytes_[at_++] : 0;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const unsigned next = byte();
      if (shift == 63 && next > 1) break;
      value |= std::uint64_t{next & 0x7F} << shift;
      if (next < 0x80) return ok_ ? value : 0;
    }
    ok_ = false;
    return 0;
  }
  std::string_view text() {
    const std::uint64_t n = varint();
    if (n > bytes_.size() - at_) ok_ = false;
    if (!ok_) return {};
    const std::string_view value(reinterpret_cast<const char*>(bytes_.data()) + at_,
                                 static_cast<std::size_t>(n));
    at_ += static_cast<std::size_t>(n);
    return value;
  }

  bool ok() const { return ok_; }
  /// Whether all input was read without an error.
  bool done() const { return ok_ && at_ == bytes_.size(); }

 private:
  std::span<const unsigned char> bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

/// Tables for eight bytes at a time: table 0 advances the remainder by one byte, table k by k more.
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr CrcTables make_crc_tables() {
  constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // bits reversed
  CrcTables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kCastagnoli : 0);
    tables[0][i] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t i = 0; i < 256; ++i)
      tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xFF];
  return tables;
}
inline constexpr CrcTables kCrcTables = make_crc_tables();

/// CRC-32C of `n` bytes that continue `crc`; start with 0.
inline std::uint32_t crc32c(std::uint32_t crc, const void* bytes, std::size_t n) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (; n >= 8; n -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kCrcTables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; n > 0; --n, ++at) crc = (crc >> 8) ^ kCrcTables[0][(crc ^ *at) & 0xFF];
  return ~crc;
}

inline std::uint32_t block_crc(BlockType type, const void* payload, std::uint32_t bytes) {
  const std::uint32_t head[2] = {static_cast<std::uint32_t>(type), bytes};
  return crc32c(crc32c(0, head, sizeof head), payload, bytes);
}

}  // namespace rehearse::capture
