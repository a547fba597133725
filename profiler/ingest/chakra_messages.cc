#include "profiler/ingest/chakra_messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "profiler/ingest/chakra.pb.h"
#include "profiler/ingest/numbers.h"
#include "sim/base/check.h"

namespace rehearse::ingest {
namespace {

std::optional<std::int64_t> whole_number(double value) {
  if (!(std::abs(value) < 9e18) || value != std::floor(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

struct Shape {
  std::uint32_t number;
  bool as_varint;
  bool as_bytes;
};

/// The numbers of the fields of a message, as bits, or nothing when it holds a field that is not
/// among `shapes` or not of a type given there. Of a message that is not `whole` only the begin is
/// known.
std::optional<std::uint32_t> fields_of(std::string_view message, bool whole,
                                       std::span<const Shape> shapes) {
  std::uint32_t seen = 0;
  while (!message.empty()) {
    const auto tag = take_varint(message);
    if (!tag) return whole ? std::nullopt : std::optional(seen);
    const auto shape = std::ranges::find(shapes, *tag >> 3, &Shape::number);
    const bool is_varint = (*tag & 7) == 0, is_bytes = (*tag & 7) == 2;
    if (shape == shapes.end() ||
        !((is_varint && shape->as_varint) || (is_bytes && shape->as_bytes)))
      return std::nullopt;
    seen |= std::uint32_t{1} << shape->number;
    const auto value = take_varint(message);
    const bool complete = value && (!is_bytes || *value <= message.size());
    if (!complete) return whole ? std::nullopt : std::optional(seen);
    if (is_bytes) message.remove_prefix(*value);
  }
  return seen;
}

constexpr std::array<Shape, 2> kMetadataFields = {{{1, false, true}, {2, false, true}}};
constexpr std::array<Shape, 11> kOpFields = {{{1, true, false},
                                              {2, false, true},
                                              {3, true, false},
                                              {4, true, true},
                                              {5, true, true},
                                              {6, true, false},
                                              {7, true, false},
                                              {8, false, true},
                                              {9, false, true},
                                              {10, false, true},
                                              {11, false, true}}};
constexpr std::uint32_t kHasType = 1u << 3;

}  // namespace

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= std::uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

Messages::Next Messages::next() {
  at_ += size_;
  size_ = 0;
  constexpr std::size_t kLongestVarint = 10;
  fill(kLongestVarint);
  if (at_ == buffer_.size()) return source_.damage().empty() ? Next::kEnd : Next::kTruncated;
  std::string_view rest = std::string_view(buffer_).substr(at_);
  const std::size_t before = rest.size();
  const std::optional<std::uint64_t> length = take_varint(rest);
  if (!length && before < kLongestVarint) return Next::kTruncated;
  if (!length || *length > Messages::kMaxMessage) return Next::kNoMessage;
  at_ += before - rest.size();
  fill(*length);
  if (buffer_.size() - at_ < *length) return Next::kTruncated;
  size_ = *length;
  return Next::kMessage;
}

/// Reads on until `size` bytes at at_ are in memory, or the file ends.
void Messages::fill(std::size_t size) {
  constexpr std::size_t kBlock = std::size_t{1} << 16;
  while (buffer_.size() - at_ < size && !ended_) {
    dropped_ += at_;
    buffer_.erase(0, at_);
    at_ = 0;
    const std::size_t kept = buffer_.size();
    buffer_.resize(kept + kBlock);
    const std::size_t n = source_.read({buffer_.data() + kept, kBlock});
    buffer_.resize(kept + n);
    ended_ = n < kBlock;
  }
}

bool is_metadata(std::string_view message) {
  return fields_of(message, true, kMetadataFields).has_value();
}

bool looks_like_chakra(std::string_view first_bytes) {
  std::string_view rest = first_bytes;
  bool any = false;
  for (bool first = true; !rest.empty(); first = false) {
    const auto length = take_varint(rest);
    if (!length) break;
    if (*length > Messages::kMaxMessage) return false;
    const std::string_view known = rest.substr(0, *length);
    const bool whole = known.size() == *length;
    rest.remove_prefix(known.size());
    if (first)
      if (const auto metadata = fields_of(known, whole, kMetadataFields)) {
        any = *metadata != 0;
        continue;
      }
    const auto op = fields_of(known, whole, kOpFields);
    if (!op || (whole && !(*op & kHasType))) return false;
    any = true;
  }
  return any;
}

std::optional<std::int64_t> whole_number(const chakra::Attribute& attribute) {
  using Value = chakra::Attribute;
  switch (attribute.value_case()) {
    case Value::kInt32Value: return attribute.int32_value();
    case Value::kInt64Value: return attribute.int64_value();
    case Value::kUint32Value: return attribute.uint32_value();
    case Value::kUint64Value:
      if (attribute.uint64_value() > INT64_MAX) return std::nullopt;
      return static_cast<std::int64_t>(attribute.uint64_value());
    case Value::kBoolValue: return attribute.bool_value() ? 1 : 0;
    case Value::kStringValue: return parse_whole(attribute.string_value());
    case Value::kDoubleValue: return whole_number(attribute.double_value());
    case Value::kFloatValue: return whole_number(double{attribute.float_value()});
    case Value::kBoolList:
    case Value::VALUE_NOT_SET: return std::nullopt;
  }
  return std::nullopt;
}

namespace {

/// By CollectiveCommType of the schema.
constexpr std::array<std::optional<CollectiveKind>, 10> kCollectives = {
    CollectiveKind::kAllReduce,
    CollectiveKind::kReduce,
    CollectiveKind::kAllGather,
    std::nullopt,
    std::nullopt,
    CollectiveKind::kBroadcast,
    CollectiveKind::kAllToAll,
    CollectiveKind::kReduceScatter,
    CollectiveKind::kReduceScatter,
    CollectiveKind::kBarrier};

}  // namespace

void append_message(std::string& file, const google::protobuf::MessageLite& message) {
  const std::string bytes = message.SerializeAsString();
  std::size_t length = bytes.size();
  for (; length >= 0x80; length >>= 7) file += static_cast<char>(length | 0x80);
  file += static_cast<char>(length);
  file += bytes;
}

std::optional<CollectiveKind> collective_from_chakra(std::int64_t type) {
  if (type < 0 || type >= static_cast<std::int64_t>(kCollectives.size())) return std::nullopt;
  return kCollectives[static_cast<std::size_t>(type)];
}

std::int64_t chakra_from_collective(CollectiveKind kind) {
  const auto type = std::ranges::find(kCollectives, kind);
  REHEARSE_CHECK(type != kCollectives.end());
  return type - kCollectives.begin();
}

}  // namespace rehearse::ingest
