// Chakra files as programs of ranks: what becomes of each type of node, and every error.
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "profiler/ingest/chakra_job.h"
#include "profiler/ingest/chakra_program.h"
#include "tests/support/chakra_writer.h"
#include "tests/support/data.h"

namespace rehearse::ingest {
namespace {

using program::ProgramOp;
using program::Task;
using test::ChakraOp;
using test::kCollective;
using test::kCompute;
using test::kLoad;
using test::kReceive;
using test::kSend;

Result<ChakraProgram> parse(const std::string& bytes) {
  static NamePool names;
  return read_chakra_program(*bytes_in_memory(bytes), "job.0.et", false, names);
}

ChakraProgram read_job(const std::vector<ChakraOp>& ops) {
  Result<ChakraProgram> program = parse(test::chakra_file(ops));
  INFO((program ? "" : to_string(program.error())));
  REQUIRE(program);
  return std::move(*program);
}

std::string job_error(const std::vector<ChakraOp>& ops) {
  const Result<ChakraProgram> program = parse(test::chakra_file(ops));
  return program ? "no error" : to_string(program.error());
}

ChakraOp all_reduce(std::uint64_t id, std::int64_t bytes, std::vector<std::uint64_t> after = {}) {
  return {id, "sum", kCollective, 0, std::move(after), {{"comm_type", 0}, {"comm_size", bytes}}};
}

std::vector<std::uint32_t> dependencies(const program::RankProgram& program, std::uint32_t op) {
  return {program.dependencies.begin() + program.first_dependency[op],
          program.dependencies.begin() + program.first_dependency[op + 1]};
}

TEST_CASE("each type of Chakra node becomes its task") {
  const ChakraProgram read_program = read_job(
      {{0, "timed", kCompute, 25, {}, {{"num_ops", 1000}, {"tensor_size", 64}}},
       {1, "work", kCompute, 0, {}, {{"num_ops", 2'000'000}, {"tensor_size", 4096}}},
       {2, "nothing", kCompute},
       {3, "host", kCompute, 3, {}, {{"is_cpu_op", 1}}},
       {4, "load", kLoad, 0, {}, {{"tensor_size", 512}}},
       {5, "sum", kCollective, 9, {}, {{"comm_type", 0}, {"comm_size", 1 << 20}}, "tp"},
       {6, "wrapper", kCollective, 7},
       {7, "to", kSend, 0, {}, {{"comm_dst", 3}, {"comm_tag", 5}, {"comm_size", 100}}},
       {8, "from", kReceive, 0, {}, {{"comm_src", 2}, {"comm_tag", 6}, {"comm_size", 200}}},
       {9, "about", 1},
       {10,
        "urgent",
        kCollective,
        0,
        {},
        {{"comm_type", 6}, {"comm_size", 64}, {"comm_priority", 3}}}});
  const std::vector<ProgramOp>& ops = read_program.program.ops;
  REQUIRE(ops.size() == 11);
  CHECK(ops[0].task == Task::kCompute);
  CHECK(ops[0].duration == Picoseconds(25'000'000));
  CHECK(ops[1].task == Task::kCompute);
  CHECK_FALSE(ops[1].duration);
  CHECK(ops[1].flops.flop() == 2e6);
  CHECK(ops[1].bytes.b() == 4096);
  CHECK(ops[2].duration == Picoseconds(0));
  CHECK(read_program.without_length == 1);
  CHECK(ops[3].task == Task::kHost);
  CHECK(ops[4].task == Task::kMemory);
  CHECK_FALSE(ops[4].duration);
  CHECK(ops[5].task == Task::kCollective);
  CHECK(ops[5].collective == CollectiveKind::kAllReduce);
  CHECK(ops[5].bytes.mib() == 1);
  CHECK_FALSE(ops[5].duration);  // what was recorded elsewhere says nothing about this cluster
  CHECK(ops[6].task == Task::kHost);
  CHECK(ops[6].duration == Picoseconds(7'000'000));
  CHECK(ops[7].task == Task::kSend);
  CHECK(read_program.peers.at(ops[7].peer) == 3);
  CHECK(ops[7].tag == 5);
  CHECK(ops[8].task == Task::kReceive);
  CHECK(read_program.peers.at(ops[8].peer) == 2);
  CHECK(ops[9].task == Task::kMark);
  CHECK(ops[10].collective == CollectiveKind::kAllToAll);
  CHECK(ops[10].priority == 3);
  CHECK(read_program.groups == std::vector<std::string>{"tp", ""});
}

TEST_CASE("ops are in their order of issue: after the ops that they wait for, then by id") {
  // 10 needs 30, which needs nothing; 20 could go at once: 20, 30, 10.
  const ChakraProgram p =
      read_job({{10, "a", kCompute, 1, {30}}, {20, "b", kCompute, 1}, {30, "c", kCompute, 1}});
  CHECK(p.ids == std::vector<std::uint64_t>{20, 30, 10});
  CHECK(dependencies(p.program, 0).empty());
  CHECK(dependencies(p.program, 2) == std::vector<std::uint32_t>{1});
}

TEST_CASE("a Chakra file without the data to simulate is refused in one line") {
  CHECK(job_error({}) == "job.0.et: holds no op; a Chakra execution trace (.et)");
  CHECK(job_error({{1, "a", kCompute, 1, {7, 8}}}) ==
        "job.0.et: op 1 'a': depends on id 7, which no op has, and 1 more dependencies do so");
  CHECK(job_error({{1, "a", kCompute, 1, {2}}, {2, "b", kCompute, 1, {1}}}) ==
        "job.0.et: op 1 'a': depends on itself through its dependencies");
  CHECK(job_error({{1, "a", kCompute, 1}, {1, "b", kCompute, 1}})
            .ends_with("another op has the same id"));
  CHECK(job_error({{1, "a", 77, 1}}) ==
        "job.0.et: op 1 'a': type 77 is unknown; 1 to 10, as in the schema");
  CHECK(job_error({{1, "a", kCompute, UINT64_MAX}}).find("at most a day") != std::string::npos);
  CHECK(job_error({{1, "a", kCompute, 0, {}, {{"num_ops", -1}}}}) ==
        "job.0.et: op 1 'a': num_ops is out of range");
  CHECK(job_error({{1, "a", kCollective, 0, {}, {{"comm_type", 3}, {"comm_size", 1}}}})
            .starts_with("job.0.et: op 1 'a': comm_type 3 cannot be simulated; 0 all_reduce"));
  CHECK(job_error({{1, "a", kCollective, 0, {}, {{"comm_type", 0}}}}) ==
        "job.0.et: op 1 'a': a collective without comm_size");
  CHECK(job_error({{1, "a", kSend, 0, {}, {{"comm_size", 1}}}}) ==
        "job.0.et: op 1 'a': comm_dst, the receiving rank, is missing");
  const std::string file = test::chakra_file({{1, "a", kCompute, 1}});
  const auto cut = parse(file.substr(0, file.size() - 2));
  REQUIRE_FALSE(cut);
  CHECK(to_string(cut.error()).find("ends in the middle of a message") != std::string::npos);
}

TEST_CASE("one file for all ranks, or one per rank, and equal ranks share a program") {
  const std::string file = test::chakra_file({{0, "x", kCompute, 1}, all_reduce(1, 64, {0})});
  const auto prefix = test::write_chakra({file, file, file});
  const auto job = read_chakra_job({.prefix = prefix});
  REQUIRE(job);
  CHECK(job->job.ranks() == 3);
  CHECK(job->job.programs.size() == 1);
  REQUIRE(job->job.groups.size() == 1);
  CHECK(job->job.groups[0].members.size() == 3);
  CHECK(read_chakra_job({.prefix = prefix, .ranks = 2})->job.ranks() == 2);
  const auto missing = read_chakra_job({.prefix = prefix, .ranks = 4});
  REQUIRE_FALSE(missing);
  CHECK(to_string(missing.error()) ==
        prefix.string() + ".3.et: no such file; a file for each of 4 ranks");
  const auto shared = prefix.parent_path() / "all.et";
  std::ofstream(shared, std::ios::binary) << file;
  const auto all = prefix.parent_path() / "all";
  CHECK(read_chakra_job({.prefix = all, .ranks = 5})->job.ranks() == 5);
  CHECK(to_string(read_chakra_job({.prefix = all}).error()) ==
        shared.string() + ": is one file for all ranks; --ranks N, the number of ranks");
  CHECK(to_string(read_chakra_job({.prefix = "absent/job"}).error()) ==
        "absent/job.0.et: no such file; absent/job.0.et and so on, or absent/job.et for all ranks");
}

CommGroups groups(std::string_view json) {
  const auto parsed = parse_comm_groups(json, "groups.json");
  REQUIRE(parsed);
  return *parsed;
}

TEST_CASE("groups: one set of ranks under a name, or several sets, and a rank takes its own") {
  ChakraOp sum = all_reduce(0, 64);
  sum.group = "tp";
  ChakraOp gather{1, "gather", kCollective, 0, {}, {{"comm_type", 2}, {"comm_size", 100}}, "tp"};
  const std::string file = test::chakra_file({sum, gather});
  const auto prefix = test::write_chakra({file, file, file, file});
  const auto job = read_chakra_job(
      {.prefix = prefix, .groups = groups(R"({"tp": [[0, 1], [2, 3]], "x": [0]})")});
  REQUIRE(job);
  REQUIRE(job->job.groups.size() == 2);
  CHECK(job->job.groups[1].name == "tp[1]");
  CHECK(job->job.groups[1].members == std::vector<RankId>{RankId(2), RankId(3)});
  CHECK(job->job.groups_of[3] == std::vector<std::uint32_t>{1});
  CHECK(job->job.programs.size() == 1);
  // What each of two ranks puts in: the whole is twice as much.
  CHECK(job->job.programs[0].ops[1].bytes.b() == 200);
  const auto error = [&](const char* json) {
    const auto read = read_chakra_job({.prefix = prefix, .groups = groups(json)});
    return read ? "no error" : to_string(read.error());
  };
  CHECK(error(R"({"tp": [0, 1]})") ==
        prefix.string() + ".2.et: rank 2 uses process group 'tp' but is not a member");
  CHECK(error(R"({"tpp": [0, 1]})") ==
        prefix.string() + ".0.et: process group 'tp' is unknown; did you mean 'tpp'?");
  CHECK(error("{}") == prefix.string() +
                           ".0.et: process group 'tp' is unknown; --comm-groups FILE with its "
                           "ranks");
  CHECK(error(R"({"tp": [0, 1, 2, 3, 9]})") == "process group 'tp' has rank 9 of 4 ranks");
}

TEST_CASE("an invalid file of groups is refused in one line") {
  const auto error = [](std::string_view json) {
    const auto parsed = parse_comm_groups(json, "g.json");
    return parsed ? "no error" : to_string(parsed.error());
  };
  const std::string expected = "; lists of ranks, such as {\"tp\": [[0, 1], [2, 3]]}";
  CHECK(error("[]") == "g.json: is not a JSON object" + expected);
  CHECK(error("{").starts_with("g.json: is not valid JSON ("));
  CHECK(error(R"({"a": 1})") == "g.json: a: is not a list of ranks" + expected);
  CHECK(error(R"({"a": [0, "x"]})") ==
        "g.json: a: contains something that is not a rank" + expected);
  CHECK(error(R"({"a": [-1]})") == "g.json: a: contains something that is not a rank" + expected);
  CHECK(error(R"({"a": [0, [1]]})") == "g.json: a: mixes ranks and lists of ranks" + expected);
  CHECK(error(R"({"a": [[0, 1], [1]]})") == "g.json: a: names rank 1 twice" + expected);
  CHECK(error(R"({"a": [[]]})") == "g.json: a: contains an empty group" + expected);
}

TEST_CASE("a recorded Chakra trace with missing ops is refused, with their number") {
  const auto path = test::shared_data("chakra-et/chakra.0.et.gz");
  SKIP_WITHOUT_DATA(path);
  const auto job = read_chakra_job({.prefix = *path, .ranks = 1});
  REQUIRE_FALSE(job);
  // 1277 of its dependencies are on ids that no op has (counted in ingest_chakra_test.cc).
  CHECK(to_string(job.error()).find("which no op has, and") != std::string::npos);
}

}  // namespace
}  // namespace rehearse::ingest
