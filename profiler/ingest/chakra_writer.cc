#include "profiler/ingest/chakra_writer.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "profiler/ingest/chakra.pb.h"
#include "profiler/ingest/chakra_messages.h"
#include "sim/base/file.h"

namespace rehearse::ingest {
namespace {

using program::OpIndex, program::Program, program::ProgramOp, program::RankProgram, program::Stream,
    program::Task;

chakra::Attribute& attribute(chakra::Op& op, std::string_view name) {
  chakra::Attribute& added = *op.add_attributes();
  added.set_name(std::string(name));
  return added;
}

void set_duration(chakra::Op& op, Picoseconds duration) {
  constexpr std::int64_t kMicrosecond = 1'000'000;
  op.set_duration_us(
      static_cast<std::uint64_t>((duration.count() + kMicrosecond / 2) / kMicrosecond));
  attribute(op, kExactDuration).set_int64_value(duration.count());
}

/// The ops of one rank as a file.
class RankFile {
 public:
  RankFile(const Program& program, RankId rank)
      : whole_(program), rank_(rank), program_(program.program(rank)) {}

  std::string text(ChakraWritten& written) && {
    chakra::GlobalMetadata metadata;
    metadata.set_version("0.0.4");
    append_message(file_, metadata);
    pauses_.resize(program_.streams.size());
    next_id_ = program_.ops.size();
    for (OpIndex i = 0; i < program_.ops.size(); ++i) add(i, written);
    written.ops += next_id_;
    return std::move(file_);
  }

 private:
  void add(OpIndex i, ChakraWritten& written) {
    const ProgramOp& op = program_.ops[i];
    chakra::Op message;
    message.set_id(i);
    message.set_name(std::string(whole_.names[op.name]));
    for (std::uint32_t d = program_.first_dependency[i]; d < program_.first_dependency[i + 1]; ++d)
      message.add_data_dependencies(program_.dependencies[d]);
    if (op.duration) set_duration(message, *op.duration);
    describe(op, message, written);
    const bool on_stream = op.stream < program_.streams.size();
    if (on_stream && pauses_[op.stream]) message.add_data_dependencies(*pauses_[op.stream]);
    append_message(file_, message);
    if (on_stream && program_.streams[op.stream].turnaround > Picoseconds(0)) pause(op.stream, i);
  }

  /// The next op of the stream begins at the earliest when its turnaround is over.
  void pause(std::uint32_t stream, OpIndex after) {
    chakra::Op message;
    message.set_id(next_id_);
    message.set_name("between ops");
    message.set_type(chakra::METADATA);
    message.add_data_dependencies(after);
    set_duration(message, program_.streams[stream].turnaround);
    append_message(file_, message);
    pauses_[stream] = next_id_++;
  }

  void describe(const ProgramOp& op, chakra::Op& message, ChakraWritten& written) {
    const Stream* stream =
        op.stream < program_.streams.size() ? &program_.streams[op.stream] : nullptr;
    const bool communicates =
        op.task == Task::kCollective || op.task == Task::kSend || op.task == Task::kReceive;
    const bool has_stream = communicates || op.task == Task::kCompute || op.task == Task::kHost ||
                            op.task == Task::kMemory;
    if (!stream && (op.stream == program::kNoStream || !has_stream)) {
      message.set_type(chakra::METADATA);
      return;
    }
    if (op.task == Task::kCollective) {
      collective(op, message, written);
    } else if (communicates) {
      send_or_receive(op, message);
    } else if (op.task == Task::kMemory) {
      message.set_type(chakra::MEMORY_LOAD);
      attribute(message, "tensor_size").set_uint64_value(whole(op.bytes));
    } else {
      const bool host = stream ? stream->kind == Stream::Kind::kHost : op.task != Task::kCompute;
      message.set_type(chakra::COMPUTE);
      attribute(message, "is_cpu_op").set_bool_value(host);
      if (op.flops > Flops::flop(0))
        attribute(message, "num_ops").set_int64_value(std::llround(op.flops.flop()));
      if (op.bytes > Bytes::b(0))
        attribute(message, "tensor_size").set_uint64_value(whole(op.bytes));
    }
    if (stream)
      attribute(message, stream->kind == Stream::Kind::kHost ? "tid" : "stream")
          .set_int64_value(op.stream);
  }

  void collective(const ProgramOp& op, chakra::Op& message, ChakraWritten& written) {
    const std::uint32_t number = whole_.groups_of[rank_.index()][op.group];
    const bool sized = op.sized && op.collective != CollectiveKind::kSendRecv;
    if (!sized) ++written.unsized;
    message.set_type(chakra::COLLECTIVE);
    attribute(message, "is_cpu_op").set_bool_value(false);
    attribute(message, "comm_type")
        .set_int64_value(chakra_from_collective(sized ? op.collective : CollectiveKind::kBarrier));
    // The schema counts what one rank puts in.
    const double parts =
        op.collective == CollectiveKind::kAllGather ? whole_.groups[number].ranks() : 1;
    attribute(message, "comm_size").set_int64_value(sized ? std::llround(op.bytes.b() / parts) : 0);
    attribute(message, "pg_name").set_string_value(std::to_string(number + 1));
    if (op.duration) attribute(message, "comm_tag").set_int64_value(op.tag);
    if (op.priority != 0) attribute(message, "comm_priority").set_int32_value(op.priority);
  }

  void send_or_receive(const ProgramOp& op, chakra::Op& message) {
    const bool sends = op.task == Task::kSend;
    const auto self = static_cast<std::int32_t>(rank_.index());
    const auto peer = static_cast<std::int32_t>(whole_.peer(rank_, op).index());
    message.set_type(sends ? chakra::SEND : chakra::RECEIVE);
    attribute(message, "is_cpu_op").set_bool_value(false);
    attribute(message, "comm_src").set_int32_value(sends ? self : peer);
    attribute(message, "comm_dst").set_int32_value(sends ? peer : self);
    attribute(message, "comm_tag").set_int32_value(static_cast<std::int32_t>(op.tag));
    attribute(message, "comm_size").set_int64_value(std::llround(op.bytes.b()));
    if (op.priority != 0) attribute(message, "comm_priority").set_int32_value(op.priority);
  }

  static std::uint64_t whole(Bytes bytes) {
    return static_cast<std::uint64_t>(std::llround(bytes.b()));
  }

  const Program& whole_;
  const RankId rank_;
  const RankProgram& program_;
  std::string file_;
  std::uint64_t next_id_ = 0;
  std::vector<std::optional<std::uint64_t>> pauses_;  // by stream: the last one
};

Status check(const Program& program) {
  if (!program.services.empty() || !program.orders.empty())
    return fail("Chakra traces have no form for an input pipeline or other services",
                "the same without them");
  for (const RankProgram& rank : program.programs)
    for (const Stream& stream : rank.streams)
      if (stream.slots != 1 || !stream.pools.empty())
        return fail(
            fmt::format("Chakra traces have no form for '{}', which runs several ops at once",
                        program.names[stream.name]),
            "the same without input workers");
  return {};
}

}  // namespace

std::filesystem::path chakra_groups(const std::filesystem::path& prefix) {
  return prefix.string() + ".groups.json";
}

Result<ChakraWritten> write_chakra(const Program& program, const std::filesystem::path& prefix) {
  TRY(check(program));
  ChakraWritten written;
  std::vector<std::filesystem::path> files;
  const auto write = [&](std::filesystem::path path, std::string_view text) {
    Status ok = write_file(path, text);
    if (ok) {
      files.push_back(std::move(path));
      return ok;
    }
    for (const std::filesystem::path& file : files) {
      std::error_code ignored;
      std::filesystem::remove(file, ignored);
    }
    return ok;
  };
  for (std::uint32_t r = 0; r < program.ranks(); ++r)
    TRY(write(fmt::format("{}.{}.et", prefix.string(), r),
              RankFile(program, RankId(r)).text(written)));
  if (program.groups.empty()) return written;
  std::vector<std::string> groups;
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    std::vector<std::uint32_t> members;
    for (const RankId member : program.groups[g].members) members.push_back(member.index());
    groups.push_back(fmt::format("\"{}\": [{}]", g + 1, fmt::join(members, ", ")));
  }
  TRY(write(chakra_groups(prefix), fmt::format("{{{}}}\n", fmt::join(groups, ",\n "))));
  return written;
}

}  // namespace rehearse::ingest
