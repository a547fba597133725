#include "profiler/ingest/chakra.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>

#include "profiler/ingest/chakra.pb.h"
#include "profiler/ingest/numbers.h"
#include "profiler/ingest/utf8.h"

namespace rehearse::ingest {
namespace {

using namespace trace;

constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 28;  // a longer one is damage
constexpr std::uint64_t kMaxMalformed = 1000;

/// A base-128 number at the begin of `bytes`, which it takes away. Nothing when it does not end
/// there.
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

/// The messages of a file, one after the other.
class Messages {
 public:
  explicit Messages(ByteSource& source) : source_(source) {}

  enum class Next { kMessage, kEnd, kTruncated, kNoMessage };

  /// Moves to the next message; kNoMessage when what stands there cannot be the length of one.
  Next next() {
    at_ += size_;
    size_ = 0;
    constexpr std::size_t kLongestVarint = 10;
    fill(kLongestVarint);
    if (at_ == buffer_.size()) return source_.damage().empty() ? Next::kEnd : Next::kTruncated;
    std::string_view rest = std::string_view(buffer_).substr(at_);
    const std::size_t before = rest.size();
    const std::optional<std::uint64_t> length = take_varint(rest);
    if (!length && before < kLongestVarint) return Next::kTruncated;
    if (!length || *length > kMaxMessage) return Next::kNoMessage;
    at_ += before - rest.size();
    fill(*length);
    if (buffer_.size() - at_ < *length) return Next::kTruncated;
    size_ = *length;
    return Next::kMessage;
  }

  /// REQUIRES: next() said kMessage. Valid until it is called again.
  std::string_view message() const { return std::string_view(buffer_).substr(at_, size_); }
  /// Where in the (decompressed) file the message stands.
  std::uint64_t offset() const { return dropped_ + at_; }

 private:
  /// Reads on until `size` bytes at at_ are in memory, or the file ends.
  void fill(std::size_t size) {
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

  ByteSource& source_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::uint64_t dropped_ = 0;
  bool ended_ = false;
};

std::optional<std::int64_t> whole_number(double value) {
  if (!(std::abs(value) < 9e18) || value != std::floor(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

/// A whole number, whatever type the writer chose for it.
std::optional<std::int64_t> whole_number(const chakra::Attribute& attribute) {
  using Value = chakra::Attribute;
  switch (attribute.value_case()) {
    case Value::kInt32Value:
      return attribute.int32_value();
    case Value::kInt64Value:
      return attribute.int64_value();
    case Value::kUint32Value:
      return attribute.uint32_value();
    case Value::kUint64Value:
      if (attribute.uint64_value() > INT64_MAX) return std::nullopt;
      return static_cast<std::int64_t>(attribute.uint64_value());
    case Value::kBoolValue:
      return attribute.bool_value() ? 1 : 0;
    case Value::kStringValue:
      return parse_whole(attribute.string_value());
    case Value::kDoubleValue:
      return whole_number(attribute.double_value());
    case Value::kFloatValue:
      return whole_number(double{attribute.float_value()});
    case Value::VALUE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

template <class T>
std::optional<T> within(std::optional<std::int64_t> number) {
  if (!number || *number < 0 || static_cast<std::uint64_t>(*number) > std::numeric_limits<T>::max())
    return std::nullopt;
  return static_cast<T>(*number);
}

/// The attributes of one op that are used.
struct Attributes {
  bool on_host = false;
  std::optional<std::int64_t> thread, stream, sequence, forward_thread, record_function;
  std::optional<std::int64_t> communication, bytes, tensor_bytes;
  std::string_view group;
};

Attributes attributes_of(const chakra::Op& op) {
  Attributes used;
  for (const chakra::Attribute& attribute : op.attributes()) {
    const std::string& name = attribute.name();
    if (name == "is_cpu_op") used.on_host = whole_number(attribute).value_or(0) != 0;
    if (name == "tid") used.thread = whole_number(attribute);
    if (name == "stream") used.stream = whole_number(attribute);
    if (name == "seq_id") used.sequence = whole_number(attribute);
    if (name == "fw_tid") used.forward_thread = whole_number(attribute);
    if (name == "rf_id") used.record_function = whole_number(attribute);
    if (name == "comm_type") used.communication = whole_number(attribute);
    if (name == "comm_size") used.bytes = whole_number(attribute);
    if (name == "tensor_size") used.tensor_bytes = whole_number(attribute);
    if (name == "pg_name") used.group = attribute.string_value();
  }
  return used;
}

/// By the schema's CollectiveCommType; gather and scatter have no counterpart here.
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

class ChakraReader {
 public:
  explicit ChakraReader(Recorder& recorder) : recorder_(recorder) {}

  std::uint64_t ops() const { return rows_.size(); }

  void read(const chakra::Op& op) {
    if (op.type() <= chakra::INVALID || op.type() > chakra::CHECKPOINT)
      return recorder_.problem(ProblemKind::kUnknownCategory);
    constexpr std::uint64_t kMaxMicroseconds = INT64_MAX / 1000;
    if (op.duration_us() > kMaxMicroseconds) return recorder_.problem(ProblemKind::kAbsurdNumber);
    const Nanoseconds duration(static_cast<std::int64_t>(op.duration_us()) * 1000);
    const Attributes attributes = attributes_of(op);
    const bool on_host =
        attributes.on_host || op.type() == chakra::METADATA || op.type() >= chakra::STORAGE;
    const std::optional<RowRef> row =
        on_host ? add_host(op, attributes, duration) : add_device(op, attributes, duration);
    if (!row) return;
    if (!rows_.try_emplace(op.id(), *row).second)
      return recorder_.problem(ProblemKind::kDuplicateId);
    for (const std::uint64_t id : op.control_dependencies()) depend(id, *row);
    for (const std::uint64_t id : op.data_dependencies()) depend(id, *row);
  }

  void finish() {
    for (const Pending& pending : pending_) {
      const auto from = rows_.find(pending.from);
      if (from == rows_.end()) {
        recorder_.problem(ProblemKind::kDanglingDependency);
      } else {
        recorder_.add(Dependency{from->second, pending.to});
      }
    }
  }

 private:
  /// A dependency on an op that has not been read yet.
  struct Pending {
    std::uint64_t from;
    RowRef to;
  };

  std::optional<RowRef> add_host(const chakra::Op& op, const Attributes& attributes,
                                 Nanoseconds duration) {
    HostOp row{.name = name(op.name()),
               .thread = recorder_.thread("", std::to_string(attributes.thread.value_or(0))),
               .kind = HostKind::kOperator,
               .start = Nanoseconds(0),
               .duration = duration,
               .sequence = within<std::uint32_t>(attributes.sequence),
               .record_function = within<std::uint32_t>(attributes.record_function),
               .collective = collective_of(op, attributes)};
    if (attributes.forward_thread != 0)
      row.forward_thread = within<std::uint32_t>(attributes.forward_thread);
    if (!op.inputs().shapes().empty())
      row.inputs = recorder_.inputs(sound(op.inputs().shapes()), sound(op.inputs().types()));
    if (!recorder_.add(row)) return std::nullopt;
    return RowRef{false, static_cast<std::uint32_t>(recorder_.host_count() - 1)};
  }

  std::optional<RowRef> add_device(const chakra::Op& op, const Attributes& attributes,
                                   Nanoseconds duration) {
    const bool copies = op.type() == chakra::MEMORY_LOAD || op.type() == chakra::MEMORY_STORE;
    const auto stream = attributes.stream ? attributes.stream : attributes.thread;
    GpuOp row{.name = name(op.name()),
              .kind = copies ? GpuKind::kCopy : GpuKind::kKernel,
              .stream = within<std::uint32_t>(stream).value_or(0),
              .start = Nanoseconds(0),
              .duration = duration,
              .collective = collective_of(op, attributes)};
    if (copies) row.bytes = within<std::uint64_t>(attributes.tensor_bytes);
    if (!recorder_.add(row)) return std::nullopt;
    return RowRef{true, static_cast<std::uint32_t>(recorder_.gpu_count() - 1)};
  }

  std::optional<CollectiveId> collective_of(const chakra::Op& op, const Attributes& attributes) {
    std::optional<CollectiveKind> kind;
    if (op.type() == chakra::SEND || op.type() == chakra::RECEIVE) kind = CollectiveKind::kSendRecv;
    if (op.type() == chakra::COLLECTIVE) {
      // Host ops that only wrap a collective come without its type.
      if (!attributes.communication) return std::nullopt;
      const auto type = within<std::size_t>(attributes.communication);
      if (type && *type < kCollectives.size()) kind = kCollectives[*type];
      if (!kind) recorder_.problem(ProblemKind::kUnknownCategory);
    }
    if (!kind) return std::nullopt;
    Collective collective{.kind = *kind, .bytes_in = within<std::uint64_t>(attributes.bytes)};
    if (!attributes.group.empty()) collective.group = name(attributes.group);
    return recorder_.collective(collective);
  }

  void depend(std::uint64_t id, RowRef to) {
    if (const auto from = rows_.find(id); from != rows_.end()) {
      recorder_.add(Dependency{from->second, to});
    } else {
      pending_.push_back({id, to});
    }
  }

  std::string sound(std::string_view text) {
    std::uint64_t replaced = 0;
    std::string result = sound_text(text, replaced);
    if (replaced > 0) recorder_.problem(ProblemKind::kInvalidText, replaced);
    return result;
  }
  NameId name(std::string_view text) { return recorder_.name(sound(text)); }

  Recorder& recorder_;
  std::unordered_map<std::uint64_t, RowRef> rows_;  // by id
  std::vector<Pending> pending_;
};

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
    const auto shape = std::find_if(shapes.begin(), shapes.end(),
                                    [&](const Shape& s) { return s.number == *tag >> 3; });
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

bool looks_like_chakra(std::string_view first_bytes) {
  std::string_view rest = first_bytes;
  bool any = false;
  for (bool first = true; !rest.empty(); first = false) {
    const auto length = take_varint(rest);
    if (!length) break;
    if (*length > kMaxMessage) return false;
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

Status read_chakra(ByteSource& source, Recorder& recorder, const Progress& progress) {
  recorder.info().format = "chakra";
  recorder.info().timed = false;
  const std::string file = recorder.info().source;
  Messages messages(source);
  recorder.set_place([&] {
    const std::string why = source.damage();
    return fmt::format("{}: byte {}{}", file, messages.offset(),
                       why.empty() ? "" : fmt::format(" ({})", why));
  });
  ChakraReader reader(recorder);
  chakra::Op op;
  Messages::Next next = Messages::Next::kEnd;
  std::uint64_t malformed = 0;
  for (std::uint64_t count = 0; (next = messages.next()) == Messages::Next::kMessage; ++count) {
    constexpr std::uint64_t kMessagesPerReport = 1024;
    if (count % kMessagesPerReport == 0 && progress && !progress(source.share()))
      return fail(Diagnostic{.file = file, .problem = "stopped"});
    const std::string_view message = messages.message();
    if (count == 0 && fields_of(message, true, kMetadataFields)) continue;
    if (op.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      reader.read(op);
      continue;
    }
    recorder.problem(ProblemKind::kMalformed);
    if (++malformed > kMaxMalformed)
      return fail(Diagnostic{
          .file = file, .problem = fmt::format("more than {} malformed messages", kMaxMalformed)});
  }
  if (next == Messages::Next::kTruncated) recorder.problem(ProblemKind::kTruncated);
  if (next == Messages::Next::kNoMessage) recorder.problem(ProblemKind::kMalformed);
  recorder.set_place([file] { return file; });
  if (reader.ops() == 0)
    return fail(Diagnostic{
        .file = file,
        .problem = next == Messages::Next::kTruncated ? "ends before the first op" : "holds no op",
        .expected = "a Chakra execution trace (.et)"});
  reader.finish();
  recorder.finish();
  return {};
}

}  // namespace rehearse::ingest
