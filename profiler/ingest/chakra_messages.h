// Shared by the readers and the writer of Chakra files: the messages of a file one by one, and their
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/ingest/byte_source.h"
#include "sim/base/collective.h"

namespace google::protobuf {
class MessageLite;
}

namespace rehearse::ingest {

namespace chakra {
class Attribute;
}

/// Removes a base-128 number from the beginning of `bytes` and returns it. Nothing if `bytes` ends
/// within it.
std::optional<std::uint64_t> take_varint(std::string_view& bytes);

/// The messages of a file, one after another, each preceded by its length.
class Messages {
 public:
  static constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 28;  // a longer one is damage

  explicit Messages(ByteSource& source) : source_(source) {}

  enum class Next { kMessage, kEnd, kTruncated, kNoMessage };

  /// Moves to the next message; kNoMessage if the bytes there cannot be a message length.
  Next next();

  /// The current message. REQUIRES: next() returned kMessage. Valid until next() is called again.
  std::string_view message() const { return std::string_view(buffer_).substr(at_, size_); }
  /// Offset of the message in the (decompressed) file.
  std::uint64_t offset() const { return dropped_ + at_; }

 private:
  void fill(std::size_t size);

  ByteSource& source_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::uint64_t dropped_ = 0;
  bool ended_ = false;
};

/// Adds a message to the bytes of a file, preceded by its length.
void append_message(std::string& file, const google::protobuf::MessageLite& message);

/// Whether a file that begins with these bytes (a few KiB, or all of it) can be a Chakra trace.
bool looks_like_chakra(std::string_view first_bytes);

/// Whether a message is the metadata at the beginning of a file, not an op.
bool is_metadata(std::string_view message);

/// A whole number, whatever type the writer chose for it.
std::optional<std::int64_t> whole_number(const chakra::Attribute& attribute);

/// Converts the schema's CollectiveCommType; gather and scatter have no counterpart here.
std::optional<CollectiveKind> collective_from_chakra(std::int64_t type);
/// The inverse. REQUIRES: not kSendRecv, which the schema lacks.
std::int64_t chakra_from_collective(CollectiveKind kind);

/// Our own attribute of an op: its duration in picoseconds, because the schema's field counts
/// microseconds. Other tools ignore it.
inline constexpr std::string_view kExactDuration = "duration_ps";

}  // namespace rehearse::ingest
