#include <catch2/catch.hpp>

#include "profiler/ingest/chakra.h"
#include "profiler/ingest/chakra.pb.h"
#include "profiler/ingest/chakra_messages.h"
#include "tests/support/chakra_writer.h"
#include "tests/support/data.h"
#include "tests/support/ranks.h"

namespace rehearse::ingest {
namespace {

using namespace trace;
using test::Ranks;

std::string metadata() {
  chakra::GlobalMetadata message;
  message.set_version("0.0.4");
  chakra::Attribute& schema = *message.add_attributes();
  schema.set_name("schema");
  schema.set_string_value("1.0.2-chakra.0.0.4");
  std::string file;
  append_message(file, message);
  return file;
}

chakra::Op op(std::uint64_t id, const std::string& name, chakra::OpType type,
              std::uint64_t duration_us = 0) {
  chakra::Op op;
  op.set_id(id);
  op.set_name(name);
  op.set_type(type);
  op.set_duration_us(duration_us);
  return op;
}

void set(chakra::Op& op, const std::string& name, std::int64_t value) {
  chakra::Attribute& attribute = *op.add_attributes();
  attribute.set_name(name);
  attribute.set_int64_value(value);
}
void set_flag(chakra::Op& op, const std::string& name, bool value) {
  chakra::Attribute& attribute = *op.add_attributes();
  attribute.set_name(name);
  attribute.set_bool_value(value);
}

Status read_trace(std::string_view bytes, Ranks& ranks) {
  return read_chakra(*bytes_in_memory(bytes), ranks.next("job.0.et"), {});
}

Ranks read_trace(std::string_view bytes) {
  Ranks ranks;
  const Status status = read_trace(bytes, ranks);
  INFO((status ? "" : to_string(status.error())));
  REQUIRE(status);
  return ranks;
}

std::string trace_error(std::string_view bytes) {
  Ranks ranks;
  const Status status = read_trace(bytes, ranks);
  return status ? "no error" : to_string(status.error());
}

TEST_CASE("Chakra ops become host and device rows with their attributes") {
  std::string file = metadata();
  chakra::Op host = op(10, "aten::mm", chakra::COMPUTE, 25);
  set_flag(host, "is_cpu_op", true);
  set(host, "tid", 3);
  set(host, "rf_id", 41);
  set(host, "seq_id", -1);
  set(host, "fw_tid", 2);
  host.mutable_inputs()->set_shapes("[[4, 8], [8, 2]]");
  host.mutable_inputs()->set_types("['Tensor(float)', 'Tensor(float)']");
  append_message(file, host);
  chakra::Op kernel = op(11, "gemm", chakra::COMPUTE, 7);
  set_flag(kernel, "is_cpu_op", false);
  set(kernel, "tid", 7);
  append_message(file, kernel);
  chakra::Op on_stream = op(12, "relu", chakra::COMPUTE, 1);
  set(on_stream, "tid", 7);
  set(on_stream, "stream", 20);
  append_message(file, on_stream);
  chakra::Op load = op(13, "fetch", chakra::MEMORY_LOAD, 2);
  set(load, "tensor_size", 4096);
  append_message(file, load);
  append_message(file, op(14, "process group", chakra::METADATA));

  const Ranks ranks = read_trace(file);
  const Rank& rank = ranks[0];
  CHECK(rank.info.format == "chakra");
  CHECK_FALSE(rank.info.timed);
  REQUIRE(rank.host_ops.size() == 2);
  const HostOp& mm = rank.host_ops[0];
  CHECK(ranks.name(mm.name) == "aten::mm");
  CHECK(mm.kind == HostKind::kOperator);
  CHECK(mm.duration == Nanoseconds(25'000));
  CHECK(ranks.name(rank.threads[mm.thread.index()].thread) == "3");
  CHECK(mm.record_function == 41u);
  CHECK_FALSE(mm.sequence);
  CHECK(mm.forward_thread == 2u);
  REQUIRE(mm.inputs);
  CHECK(ranks.name(rank.inputs[mm.inputs->index()].shapes) == "[[4, 8], [8, 2]]");
  REQUIRE(rank.gpu_ops.size() == 3);
  CHECK(rank.gpu_ops[0].stream == 7);
  CHECK(rank.gpu_ops[0].duration == Nanoseconds(7'000));
  CHECK(rank.gpu_ops[1].stream == 20);
  CHECK(rank.gpu_ops[2].kind == GpuKind::kCopy);
  CHECK(rank.gpu_ops[2].bytes == 4096u);
  CHECK(ranks.problems.list().empty());
}

TEST_CASE("Chakra collectives keep their kind and size") {
  struct Expected {
    std::int64_t type;
    std::optional<CollectiveKind> kind;
  };
  const auto expected = GENERATE(values<Expected>({{0, CollectiveKind::kAllReduce},
                                                   {1, CollectiveKind::kReduce},
                                                   {2, CollectiveKind::kAllGather},
                                                   {3, std::nullopt},
                                                   {4, std::nullopt},
                                                   {5, CollectiveKind::kBroadcast},
                                                   {6, CollectiveKind::kAllToAll},
                                                   {7, CollectiveKind::kReduceScatter},
                                                   {8, CollectiveKind::kReduceScatter},
                                                   {9, CollectiveKind::kBarrier},
                                                   {10, std::nullopt},
                                                   {-1, std::nullopt}}));
  chakra::Op collective = op(1, "comm", chakra::COLLECTIVE, 3);
  set(collective, "comm_type", expected.type);
  set(collective, "comm_size", 1048576);
  std::string file = metadata();
  append_message(file, collective);
  const Ranks ranks = read_trace(file);
  REQUIRE(ranks[0].gpu_ops.size() == 1);
  const auto& id = ranks[0].gpu_ops[0].collective;
  REQUIRE(id.has_value() == expected.kind.has_value());
  CHECK(ranks.count(ProblemKind::kUnknownCategory) == (expected.kind ? 0 : 1));
  if (!id) return;
  CHECK(ranks[0].collectives[id->index()].kind == expected.kind);
  CHECK(ranks[0].collectives[id->index()].bytes_in == 1048576u);
}

TEST_CASE("Chakra sends and receives are point to point, whatever their comm_type") {
  std::string file = metadata();
  for (const auto type : {chakra::SEND, chakra::RECEIVE}) {
    chakra::Op message = op(static_cast<std::uint64_t>(type), "m", type);
    set(message, "comm_type", type);
    set(message, "comm_size", 131072);
    append_message(file, message);
  }
  const Ranks ranks = read_trace(file);
  REQUIRE(ranks[0].gpu_ops.size() == 2);
  REQUIRE(ranks[0].collectives.size() == 1);
  CHECK(ranks[0].collectives[0].kind == CollectiveKind::kSendRecv);
  CHECK(ranks[0].collectives[0].bytes_in == 131072u);
}

TEST_CASE("Chakra dependencies point both ways in the file, dangling ones are counted") {
  std::string file = metadata();
  chakra::Op first = op(0, "first", chakra::COMPUTE, 1);
  first.add_data_dependencies(2);   // comes later
  first.add_data_dependencies(99);  // does not exist
  append_message(file, first);
  chakra::Op second = op(1, "second", chakra::COMPUTE, 1);
  set_flag(second, "is_cpu_op", true);
  second.add_control_dependencies(0);
  append_message(file, second);
  append_message(file, op(2, "third", chakra::COMPUTE, 1));
  const Ranks ranks = read_trace(file);
  const std::vector<Dependency>& dependencies = ranks[0].dependencies;
  REQUIRE(dependencies.size() == 2);
  CHECK(dependencies[0].from.on_gpu);
  CHECK(dependencies[0].from.index == 0);
  CHECK_FALSE(dependencies[0].to.on_gpu);
  CHECK(dependencies[0].to.index == 0);
  CHECK(dependencies[1].from.index == 1);
  CHECK(ranks.name(ranks[0].gpu_ops[dependencies[1].from.index].name) == "third");
  CHECK(dependencies[1].to.on_gpu);
  CHECK(dependencies[1].to.index == 0);
  CHECK(ranks.count(ProblemKind::kDanglingDependency) == 1);
  CHECK(ranks.problems.worst() == Severity::kWarning);
}

TEST_CASE("Chakra ops that cannot be used are dropped and counted") {
  std::string file = metadata();
  append_message(file, op(1, "sound", chakra::COMPUTE, 1));
  append_message(file, op(1, "again", chakra::COMPUTE, 1));
  append_message(file, op(2, "endless", chakra::COMPUTE, UINT64_MAX));
  append_message(file, op(3, "a year", chakra::COMPUTE, 31'536'000'000'000));
  append_message(file, op(4, "new", static_cast<chakra::OpType>(77), 1));
  append_message(file, op(5, "none", chakra::INVALID, 1));
  append_message(file, op(6, "bad \xff name", chakra::COMPUTE, 1));
  const Ranks ranks = read_trace(file);
  CHECK(ranks[0].gpu_ops.size() == 3);
  CHECK(ranks.name(ranks[0].gpu_ops[2].name) == "bad ? name");
  CHECK(ranks.count(ProblemKind::kDuplicateId) == 1);
  CHECK(ranks.count(ProblemKind::kAbsurdNumber) == 2);
  CHECK(ranks.count(ProblemKind::kUnknownCategory) == 2);
  CHECK(ranks.count(ProblemKind::kInvalidText) == 1);
}

std::string sample(int ops) {
  std::string file = metadata();
  for (int i = 0; i < ops; ++i) {
    chakra::Op one = op(static_cast<std::uint64_t>(i), "op", chakra::COMPUTE, 1);
    if (i > 0) one.add_data_dependencies(static_cast<std::uint64_t>(i - 1));
    append_message(file, one);
  }
  return file;
}

TEST_CASE("a Chakra file cut at any byte gives the ops before the cut, or one line") {
  const std::string file = sample(5);
  std::size_t last = 0;
  for (std::size_t size = 0; size <= file.size(); ++size) {
    INFO("cut to " << size << " of " << file.size());
    Ranks ranks;
    const Status status = read_trace(std::string_view(file).substr(0, size), ranks);
    if (status) {
      CHECK(ranks[0].gpu_ops.size() >= last);
      last = ranks[0].gpu_ops.size();
    } else {
      CHECK(last == 0);
      CHECK(to_string(status.error()).starts_with("job.0.et: "));
    }
  }
  CHECK(last == 5);
}

TEST_CASE("a Chakra file with any bit turned never gives a row that points nowhere") {
  const std::string file = sample(8);
  std::size_t damaged = 0;
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string turned = file;
    turned[bit / 8] = static_cast<char>(turned[bit / 8] ^ (1 << bit % 8));
    Ranks ranks;
    const Status status = read_trace(turned, ranks);
    if (!status || !ranks.problems.list().empty()) ++damaged;
    for (const Dependency& dependency : ranks[0].dependencies)
      for (const RowRef row : {dependency.from, dependency.to})
        REQUIRE(row.index < (row.on_gpu ? ranks[0].gpu_ops.size() : ranks[0].host_ops.size()));
  }
  CHECK(damaged > file.size());  // most turned bits are noticed
}

TEST_CASE("a file that is not a Chakra trace is refused in one line") {
  CHECK(trace_error("") == "job.0.et: holds no op; a Chakra execution trace (.et)");
  CHECK(trace_error(metadata()) == "job.0.et: holds no op; a Chakra execution trace (.et)");
  CHECK(trace_error(sample(1).substr(0, metadata().size() + 3)) ==
        "job.0.et: ends before the first op; a Chakra execution trace (.et)");
  std::string noise = metadata();
  for (int i = 0; i < 2000; ++i) noise += "\x01\xff";  // messages of one byte that is no field
  CHECK(trace_error(noise) == "job.0.et: more than 1000 malformed messages");
}

TEST_CASE("Chakra files are recognised by their first bytes") {
  const std::string file = sample(50);
  CHECK(looks_like_chakra(file));
  CHECK(looks_like_chakra(file.substr(metadata().size())));  // without metadata
  for (const std::size_t size : {8u, 20u, 40u, 100u, 300u})
    CHECK(looks_like_chakra(file.substr(0, size)));
  std::string empty_metadata(1, '\0');
  append_message(empty_metadata, op(1, "x", chakra::COMPUTE));
  CHECK(looks_like_chakra(empty_metadata));

  CHECK_FALSE(looks_like_chakra(""));
  CHECK_FALSE(looks_like_chakra(std::string(1000, '\0')));
  CHECK_FALSE(looks_like_chakra(std::string(1000, ' ')));
  CHECK_FALSE(looks_like_chakra(std::string(1000, '\n')));
  CHECK_FALSE(looks_like_chakra("\x89PNG\r\n\x1a\n"));
  CHECK_FALSE(
      looks_like_chakra("\x7f"
                        "ELF\x02\x01\x01"));
  CHECK_FALSE(looks_like_chakra("PK\x03\x04"));
  CHECK_FALSE(looks_like_chakra("name,duration\nmm,3\n"));
  CHECK_FALSE(looks_like_chakra("# A heading\n\nSome text that goes on for a while.\n"));
}

TEST_CASE("reading Chakra can be stopped") {
  Ranks ranks;
  const Status status = read_chakra(*bytes_in_memory(sample(3)), ranks.next("job.0.et"),
                                    [](double) { return false; });
  REQUIRE_FALSE(status);
  CHECK(to_string(status.error()) == "job.0.et: stopped");
}

TEST_CASE("a recorded Chakra trace is read as its converter wrote it") {
  const auto path = test::shared_data("chakra-et/chakra.0.et.gz");
  SKIP_WITHOUT_DATA(path);
  const auto bytes = open_bytes(*path);
  REQUIRE(bytes);
  CHECK(looks_like_chakra([&] {
    std::string begin(1 << 16, '\0');
    begin.resize((*open_bytes(*path))->read(begin));
    return begin;
  }()));
  Ranks ranks;
  REQUIRE(read_chakra(**bytes, ranks.next("chakra.0.et"), {}));
  // Counted in the file by another protobuf reader: 3664 ops, 2448 of them on the host; 185542
  // dependencies, 1277 of them on ids that no op has.
  CHECK(ranks[0].host_ops.size() == 2448);
  CHECK(ranks[0].gpu_ops.size() == 1216);
  CHECK(ranks[0].dependencies.size() == 185542 - 1277);
  CHECK(ranks.count(ProblemKind::kDanglingDependency) == 1277);
  const auto in_collective = [](const GpuOp& gpu) { return gpu.collective.has_value(); };
  CHECK(std::count_if(ranks[0].gpu_ops.begin(), ranks[0].gpu_ops.end(), in_collective) == 7);
}

TEST_CASE("a hand-made Chakra ring keeps its messages in order") {
  const auto path = test::shared_data(
      "chakra-et/synthetic_custom_ring_allreduce_8npus_1MB/custom_allreduce.0.et");
  SKIP_WITHOUT_DATA(path);
  const auto bytes = open_bytes(*path);
  REQUIRE(bytes);
  Ranks ranks;
  REQUIRE(read_chakra(**bytes, ranks.next("custom_allreduce.0.et"), {}));
  // A ring of 8 moves 14 parts of 1 MiB / 8: 7 to reduce, 7 to gather; each is sent and received.
  std::uint64_t moved = 0;
  for (const GpuOp& gpu : ranks[0].gpu_ops)
    if (gpu.collective) moved += *ranks[0].collectives[gpu.collective->index()].bytes_in;
  CHECK(moved == 28u * (1 << 20) / 8);
  CHECK(ranks[0].dependencies.size() == ranks[0].gpu_ops.size() - 1);
  CHECK(ranks.problems.list().empty());
}

}  // namespace
}  // namespace rehearse::ingest
