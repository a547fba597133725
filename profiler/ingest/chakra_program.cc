#include "profiler/ingest/chakra_program.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

#include <fmt/core.h>

#include "profiler/ingest/chakra.pb.h"
#include "profiler/ingest/chakra_messages.h"
#include "sim/base/utf8.h"
#include "sim/program/rank_builder.h"

namespace rehearse::ingest {
namespace {

using program::ProgramOp;
using program::Task;

constexpr double kLargest = 1e21;  // FLOP, bytes: beyond it a number is damage

/// A number of any type, for what can be larger than a whole number of 63 bits.
std::optional<double> number_of(const chakra::Attribute& attribute) {
  double value = 0;
  if (attribute.value_case() == chakra::Attribute::kDoubleValue) {
    value = attribute.double_value();
  } else if (attribute.value_case() == chakra::Attribute::kFloatValue) {
    value = double{attribute.float_value()};
  } else {
    const auto whole = whole_number(attribute);
    if (!whole) return std::nullopt;
    value = static_cast<double>(*whole);
  }
  if (!(value >= 0) || value > kLargest) return std::nullopt;
  return value;
}

struct Attributes {
  bool on_host = false;
  std::vector<bool> involved = {};  ///< empty: all dimensions
  std::optional<double> flops, tensor_bytes, bytes;
  std::optional<std::int64_t> type, priority, source, destination, tag, duration_ps;
  std::optional<std::int64_t> stream, thread;
  std::string_view group;
  std::string_view wrong;  ///< the first one whose value cannot be used
};

Attributes attributes_of(const chakra::Op& op) {
  Attributes used;
  for (const chakra::Attribute& attribute : op.attributes()) {
    const std::string& name = attribute.name();
    const auto take = [&](std::string_view key, auto& field, auto read) {
      if (name != key) return;
      field = read(attribute);
      if (!field && used.wrong.empty()) used.wrong = name;
    };
    const auto whole = [](const chakra::Attribute& a) { return whole_number(a); };
    take("num_ops", used.flops, number_of);
    take("tensor_size", used.tensor_bytes, number_of);
    take("comm_size", used.bytes, number_of);
    take("comm_type", used.type, whole);
    take("comm_priority", used.priority, whole);
    take("comm_src", used.source, whole);
    take("comm_dst", used.destination, whole);
    take("comm_tag", used.tag, whole);
    take(kExactDuration, used.duration_ps, whole);
    if (name == "stream") used.stream = whole_number(attribute);
    if (name == "tid") used.thread = whole_number(attribute);
    if (name == "is_cpu_op") used.on_host = whole_number(attribute).value_or(0) != 0;
    if (name == "pg_name") used.group = attribute.string_value();
    if (name == "involved_dim")
      used.involved.assign(attribute.bool_list().values().begin(),
                           attribute.bool_list().values().end());
  }
  if (std::ranges::find(used.involved, false) == used.involved.end()) used.involved.clear();
  return used;
}

/// An op as read, before the order of issue is known.
struct Read {
  std::uint64_t id;
  ProgramOp op;
  std::vector<std::uint64_t> dependencies;  // ids
  std::optional<std::int64_t> tag;
};

class ProgramReader {
 public:
  ProgramReader(std::string name, bool timed, NamePool& names)
      : file_(std::move(name)), timed_(timed), names_(names) {}

  Status read(const chakra::Op& message) {
    Attributes attributes = attributes_of(message);
    std::uint64_t replaced = 0;
    const std::string name = sound_text(message.name(), replaced);
    const auto wrong = [&](std::string problem, std::string expected = {}) {
      return fail(Diagnostic{.file = file_,
                             .key = fmt::format("op {} '{}'", message.id(), name),
                             .problem = std::move(problem),
                             .expected = std::move(expected)});
    };
    if (!attributes.wrong.empty())
      return wrong(fmt::format("{} is out of range", attributes.wrong));
    constexpr std::uint64_t kMaxMicroseconds = 86400ULL * 1000000;  // a day
    const auto day = static_cast<std::int64_t>(kMaxMicroseconds) * 1'000'000;
    if (message.duration_us() > kMaxMicroseconds)
      return wrong(fmt::format("lasts {} us", message.duration_us()), "at most a day");
    if (attributes.duration_ps && (*attributes.duration_ps < 0 || *attributes.duration_ps > day))
      return wrong(fmt::format("{} is out of range", kExactDuration), "at most a day");
    ProgramOp op{.name = names_.intern(name), .task = Task::kMark};
    op.duration = Picoseconds(attributes.duration_ps.value_or(
        static_cast<std::int64_t>(message.duration_us()) * 1'000'000));
    const bool lasts = attributes.duration_ps || message.duration_us() > 0;
    switch (message.type()) {
      case chakra::COMPUTE:
        op.task = attributes.on_host ? Task::kHost : Task::kCompute;
        op.flops = Flops::flop(attributes.flops.value_or(0));
        op.bytes = Bytes::b(attributes.tensor_bytes.value_or(0));
        if (op.task == Task::kCompute && !lasts) {
          if (op.flops > Flops::flop(0) || op.bytes > Bytes::b(0))
            op.duration.reset();
          else
            ++without_length_;
        }
        break;
      case chakra::MEMORY_LOAD:
      case chakra::MEMORY_STORE:
        op.task = Task::kMemory;
        op.bytes = Bytes::b(attributes.tensor_bytes.value_or(0));
        if (!lasts) op.duration.reset();
        break;
      case chakra::COLLECTIVE: {
        // Host ops that only wrap a collective come without its type.
        if (attributes.on_host || !attributes.type) {
          op.task = Task::kHost;
          break;
        }
        const auto kind = collective_from_chakra(*attributes.type);
        if (!kind)
          return wrong(fmt::format("comm_type {} cannot be simulated", *attributes.type),
                       "0 all_reduce, 1 reduce, 2 all_gather, 5 broadcast, 6 all_to_all, 7 or 8 "
                       "reduce_scatter, 9 barrier");
        if (!attributes.bytes && *kind != CollectiveKind::kBarrier)
          return wrong("a collective without comm_size");
        if (timed_ && !lasts)
          return wrong("a collective without a duration", "--cluster FILE, whose links give one");
        op.task = Task::kCollective;
        op.collective = *kind;
        op.bytes = Bytes::b(*kind == CollectiveKind::kBarrier ? 0 : attributes.bytes.value_or(0));
        op.group = group(attributes.group, attributes.involved);
        break;
      }
      case chakra::SEND:
      case chakra::RECEIVE: {
        const bool sends = message.type() == chakra::SEND;
        op.task = sends ? Task::kSend : Task::kReceive;
        const auto& peer = sends ? attributes.destination : attributes.source;
        if (timed_) return wrong("a message between ranks", "--cluster FILE, whose links carry it");
        if (!attributes.bytes) return wrong("a message without comm_size");
        if (!peer || *peer < 0 || *peer > std::numeric_limits<std::int32_t>::max())
          return wrong(sends ? "comm_dst, the receiving rank, is missing"
                             : "comm_src, the sending rank, is missing");
        op.peer = peer_number(static_cast<std::uint32_t>(*peer));
        op.tag = static_cast<std::uint32_t>(attributes.tag.value_or(0));
        op.bytes = Bytes::b(*attributes.bytes);
        break;
      }
      case chakra::METADATA: break;
      case chakra::STORAGE:
      case chakra::BATCH:
      case chakra::CHECKPOINT: op.task = Task::kHost; break;
      default:
        return wrong(fmt::format("type {} is unknown", static_cast<int>(message.type())),
                     "1 to 10, as in the schema");
    }
    const bool communicates =
        op.task == Task::kCollective || op.task == Task::kSend || op.task == Task::kReceive;
    if (!communicates || timed_) op.stream = stream(op.task, attributes);
    if (communicates) {
      if (!timed_) op.duration.reset();
      constexpr std::int64_t kMaxPriority = std::numeric_limits<std::int32_t>::max();
      op.priority = static_cast<std::int32_t>(
          std::clamp(attributes.priority.value_or(0), -kMaxPriority, kMaxPriority));
    }
    Read& row = rows_.emplace_back(Read{message.id(), op, {}, attributes.tag});
    row.dependencies.assign(message.control_dependencies().begin(),
                            message.control_dependencies().end());
    row.dependencies.insert(row.dependencies.end(), message.data_dependencies().begin(),
                            message.data_dependencies().end());
    std::ranges::sort(row.dependencies);
    row.dependencies.erase(std::unique(row.dependencies.begin(), row.dependencies.end()),
                           row.dependencies.end());
    return {};
  }

  Result<ChakraProgram> finish() {
    if (rows_.empty())
      return fail(Diagnostic{
          .file = file_, .problem = "holds no op", .expected = "a Chakra execution trace (.et)"});
    // From here on an op is known by its place in the order of ids.
    std::ranges::sort(rows_, {}, &Read::id);
    const std::size_t n = rows_.size();
    std::unordered_map<std::uint64_t, std::uint32_t> place;
    place.reserve(n);
    for (std::size_t i = 0; i < n; ++i)
      if (!place.emplace(rows_[i].id, static_cast<std::uint32_t>(i)).second)
        return wrong(rows_[i], "another op has the same id");
    std::vector<std::vector<std::uint32_t>> successors(n);
    std::vector<std::uint32_t> waits(n, 0);
    std::uint64_t dangling = 0;
    const Read* first_dangling = nullptr;
    std::uint64_t missing = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (const std::uint64_t id : rows_[i].dependencies) {
        const auto before = place.find(id);
        if (before == place.end()) {
          if (dangling++ == 0) {
            first_dangling = &rows_[i];
            missing = id;
          }
          continue;
        }
        successors[before->second].push_back(static_cast<std::uint32_t>(i));
        ++waits[i];
      }
    if (dangling > 0)
      return wrong(
          *first_dangling,
          fmt::format(
              "depends on id {}, which no op has{}", missing,
              dangling > 1 ? fmt::format(", and {} more dependencies do so", dangling - 1) : ""));
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> next;
    for (std::uint32_t i = 0; i < n; ++i)
      if (waits[i] == 0) next.push(i);
    std::vector<std::uint32_t> order, issued(n, 0);
    for (; !next.empty();) {
      const std::uint32_t i = next.top();
      next.pop();
      issued[i] = static_cast<std::uint32_t>(order.size());
      order.push_back(i);
      for (const std::uint32_t after : successors[i])
        if (--waits[after] == 0) next.push(after);
    }
    if (order.size() < n) {
      const auto stuck = std::ranges::find_if(waits, [](auto w) { return w > 0; });
      return wrong(rows_[static_cast<std::size_t>(stuck - waits.begin())],
                   "depends on itself through its dependencies");
    }
    ChakraProgram result{.program = {},
                         .groups = std::move(groups_),
                         .involved = std::move(involved_),
                         .peers = std::move(peers_),
                         .ids = {}};
    result.program.streams = std::move(streams_);
    result.without_length = without_length_;
    std::vector<std::uint32_t> numbered(result.groups.size(), 0);  // collectives, by group
    for (const std::uint32_t i : order) {
      if (ProgramOp& op = rows_[i].op; timed_ && op.task == Task::kCollective)
        op.tag = static_cast<std::uint32_t>(rows_[i].tag.value_or(numbered[op.group]++));
      std::vector<program::OpIndex> after;
      for (const std::uint64_t id : rows_[i].dependencies) after.push_back(issued[place[id]]);
      program::append(result.program, rows_[i].op, after);
      result.ids.push_back(rows_[i].id);
    }
    return result;
  }

 private:
  tl::unexpected<Error> wrong(const Read& row, std::string problem) const {
    return fail(Diagnostic{.file = file_,
                           .key = fmt::format("op {} '{}'", row.id, names_[row.op.name]),
                           .problem = std::move(problem)});
  }

  /// A group that has a name needs no dimensions.
  std::uint32_t group(std::string_view raw, std::vector<bool> involved) {
    std::uint64_t replaced = 0;
    const std::string name = sound_text(raw, replaced);
    if (!name.empty()) involved.clear();
    std::size_t place = 0;
    while (place < groups_.size() && (groups_[place] != name || involved_[place] != involved))
      ++place;
    if (place == groups_.size()) {
      groups_.push_back(name);
      involved_.push_back(std::move(involved));
    }
    return static_cast<std::uint32_t>(place);
  }

  /// The stream that the op names: `stream` on the device, `tid` on the host.
  std::uint32_t stream(Task task, const Attributes& attributes) {
    using Kind = program::Stream::Kind;
    const bool host = task == Task::kHost || (task == Task::kCollective && !attributes.stream);
    const std::optional<std::int64_t>& number = host ? attributes.thread : attributes.stream;
    if (!number || task == Task::kMark) return program::kStreamOfTask;
    const auto [known, added] =
        stream_of_.emplace(std::pair(host, *number), static_cast<std::uint32_t>(streams_.size()));
    if (added)
      streams_.push_back(
          {.name = names_.intern(fmt::format("{} {}", host ? "thread" : "stream", *number)),
           .kind = host ? Kind::kHost : Kind::kDevice,
           .number = known->second});
    return known->second;
  }

  std::uint32_t peer_number(std::uint32_t rank) {
    const auto [known, added] =
        peer_of_rank_.emplace(rank, static_cast<std::uint32_t>(peers_.size()));
    if (added) peers_.push_back(rank);
    return known->second;
  }

  std::string file_;
  bool timed_;
  NamePool& names_;
  std::vector<Read> rows_;
  std::vector<std::string> groups_;
  std::vector<std::vector<bool>> involved_;
  std::vector<program::Stream> streams_;
  std::map<std::pair<bool, std::int64_t>, std::uint32_t> stream_of_;  // by host and number
  std::vector<std::uint32_t> peers_;
  std::unordered_map<std::uint32_t, std::uint32_t> peer_of_rank_;
  std::uint64_t without_length_ = 0;
};

}  // namespace

Result<ChakraProgram> read_chakra_program(ByteSource& source, const std::string& name, bool timed,
                                          NamePool& names, const Progress& progress) {
  Messages messages(source);
  ProgramReader reader(name, timed, names);
  chakra::Op op;
  const auto damaged = [&](std::string_view what) {
    const std::string why = source.damage();
    return fail(Diagnostic{.file = name,
                           .problem = fmt::format("{} at byte {}{}", what, messages.offset(),
                                                  why.empty() ? "" : " (" + why + ")"),
                           .expected = "a whole Chakra execution trace (.et)"});
  };
  Messages::Next next = Messages::Next::kEnd;
  for (std::uint64_t count = 0; (next = messages.next()) == Messages::Next::kMessage; ++count) {
    constexpr std::uint64_t kMessagesPerReport = 1024;
    if (count % kMessagesPerReport == 0 && progress && !progress(source.share()))
      return fail(Diagnostic{.file = name, .problem = "stopped"});
    const std::string_view message = messages.message();
    if (count == 0 && is_metadata(message)) continue;
    if (!op.ParseFromArray(message.data(), static_cast<int>(message.size())))
      return damaged("a message cannot be read");
    TRY(reader.read(op));
  }
  if (next == Messages::Next::kTruncated) return damaged("ends in the middle of a message");
  if (next == Messages::Next::kNoMessage) return damaged("no message begins");
  return reader.finish();
}

}  // namespace rehearse::ingest
