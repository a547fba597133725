#include "profiler/ingest/chakra.h"

#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>

#include "profiler/ingest/chakra.pb.h"
#include "profiler/ingest/chakra_messages.h"
#include "profiler/ingest/numbers.h"
#include "sim/base/utf8.h"

namespace rehearse::ingest {
namespace {

using namespace trace;

constexpr std::uint64_t kMaxMalformedMessages = 1000;

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
      kind = collective_from_chakra(*attributes.communication);
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

}  // namespace

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
    if (count == 0 && is_metadata(message)) continue;
    if (op.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      reader.read(op);
      continue;
    }
    recorder.problem(ProblemKind::kMalformed);
    if (++malformed > kMaxMalformedMessages)
      return fail(Diagnostic{
          .file = file, .problem = fmt::format("more than {} malformed messages", kMaxMalformedMessages)});
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
