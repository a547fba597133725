#include "tests/support/chakra_writer.h"

#include <fstream>

#include <fmt/core.h>

#include "profiler/ingest/chakra.pb.h"
#include "profiler/ingest/chakra_messages.h"
#include "tests/support/data.h"

namespace rehearse::test {
namespace {

namespace chakra = ingest::chakra;

/// By program::Task.
constexpr int kTypes[] = {kCompute, kCompute, kLoad, kCollective, kSend, kReceive, 1};
/// By CollectiveKind: CollectiveCommType of the schema.
constexpr int kKinds[] = {0, 7, 2, 6, 5, 1, -1, 9};

}  // namespace

std::string chakra_file(const std::vector<ChakraOp>& ops) {
  chakra::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  std::string file;
  ingest::append_message(file, metadata);
  for (const ChakraOp& op : ops) {
    chakra::Op message;
    message.set_id(op.id);
    message.set_name(op.name);
    message.set_type(static_cast<chakra::OpType>(op.type));
    message.set_duration_us(op.duration_us);
    for (const std::uint64_t id : op.after) message.add_data_dependencies(id);
    for (const auto& [name, value] : op.numbers) {
      chakra::Attribute& attribute = *message.add_attributes();
      attribute.set_name(name);
      attribute.set_int64_value(value);
    }
    if (!op.group.empty()) {
      chakra::Attribute& attribute = *message.add_attributes();
      attribute.set_name("pg_name");
      attribute.set_string_value(op.group);
    }
    if (!op.involved.empty()) {
      chakra::Attribute& attribute = *message.add_attributes();
      attribute.set_name("involved_dim");
      for (const bool involved : op.involved) attribute.mutable_bool_list()->add_values(involved);
    }
    ingest::append_message(file, message);
  }
  return file;
}

std::string chakra_file(const program::RankProgram& program, const NamePool& names,
                        const std::vector<std::string>& groups,
                        const std::vector<std::uint32_t>& peers) {
  std::vector<ChakraOp> ops;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const program::ProgramOp& op = program.ops[i];
    ChakraOp& row = ops.emplace_back(ChakraOp{.id = i,
                                              .name = std::string(names[op.name]),
                                              .type = kTypes[static_cast<std::size_t>(op.task)]});
    if (op.duration)
      row.duration_us = static_cast<std::uint64_t>((op.duration->count() + 500'000) / 1'000'000);
    for (std::uint32_t d = program.first_dependency[i]; d < program.first_dependency[i + 1]; ++d)
      row.after.push_back(program.dependencies[d]);
    const auto bytes = static_cast<std::int64_t>(op.bytes.b());
    if (op.task == program::Task::kHost) row.numbers.emplace_back("is_cpu_op", 1);
    if (op.task == program::Task::kCollective) {
      row.numbers = {{"comm_type", kKinds[static_cast<std::size_t>(op.collective)]},
                     {"comm_size", bytes}};
      row.group = groups.at(op.group);
    }
    if (op.task == program::Task::kSend || op.task == program::Task::kReceive)
      row.numbers = {{op.task == program::Task::kSend ? "comm_dst" : "comm_src", peers.at(op.peer)},
                     {"comm_tag", op.tag},
                     {"comm_size", bytes}};
  }
  return chakra_file(ops);
}

std::filesystem::path write_chakra(const std::vector<std::string>& files) {
  const std::filesystem::path prefix = scratch_folder() / "job";
  for (std::size_t r = 0; r < files.size(); ++r)
    std::ofstream(fmt::format("{}.{}.et", prefix.string(), r), std::ios::binary) << files[r];
  return prefix;
}

}  // namespace rehearse::test
