#include <catch2/catch.hpp>

#include "profiler/ingest/execution_trace.h"
#include "tests/support/data.h"
#include "tests/support/ranks.h"

namespace rehearse::ingest {
namespace {

using namespace trace;
using test::Ranks;

Status read_operators(std::string_view json, Ranks& ranks) {
  return read_execution_trace(*bytes_in_memory(json), ranks.next("et.json"), {});
}

Ranks read_operators(std::string_view json) {
  Ranks ranks;
  const Status status = read_operators(json, ranks);
  INFO((status ? "" : to_string(status.error())));
  REQUIRE(status);
  return ranks;
}

std::string operators_error(std::string_view json) {
  Ranks ranks;
  const Status status = read_operators(json, ranks);
  return status ? "no error" : to_string(status.error());
}

std::string text(const Ranks& ranks, const std::optional<InputsId>& inputs, NameId Inputs::*part) {
  REQUIRE(inputs);
  return ranks.name(ranks[0].inputs[inputs->index()].*part);
}

TEST_CASE("schema 1.0.1 lists all fields at one level") {
  const Ranks ranks =
      read_operators(R"json({"schema": "1.0.1", "pid": 59811, "time": "2023", "start_ts": 6672645,
    "nodes": [
    {"name": "[pytorch|profiler|execution_graph|thread]", "id": 2, "rf_id": 0, "parent": 1,
     "fw_parent": 0, "seq_id": -1, "scope": 7, "tid": 1, "fw_tid": 0, "op_schema": "",
     "inputs": [], "input_shapes": [], "input_types": [], "outputs": []},
    {"name": "aten::slice", "id": 7, "rf_id": 3, "parent": 4, "fw_parent": 0, "seq_id": 440,
     "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": "aten::slice.Tensor(...)",
     "inputs": [[5, 6, 0, 112, 4, "cuda:0"], 0], "input_shapes": [[112], []],
     "input_types": ["Tensor(float)", "Int"], "outputs": [[9, 6, 0, 48, 4, "cuda:0"]],
     "output_shapes": [[48]], "output_types": ["Tensor(float)"]},
    {"name": "record_param_comms", "id": 9, "rf_id": 513, "parent": 726, "fw_parent": 0,
     "seq_id": -1, "scope": 0, "tid": 2, "fw_tid": 1, "op_schema": "",
     "inputs": [[718, 715, 0, 3392, 4, "cuda:0"], 147, 94594108284448, 0, "all_to_allv", [96], []],
     "input_shapes": [[3392], [], [], [], [], [[]], []],
     "input_types": ["Tensor(int)", "Int", "Int", "Int", "String", "GenericList[Int]", "GenericList[]"],
     "outputs": [[1064, 615, 0, 768, 4, "cuda:0"]], "output_shapes": [[768]],
     "output_types": ["Tensor(int)"]},
    {"name": "record_param_comms", "id": 10, "rf_id": 514, "parent": 1, "fw_parent": 0,
     "seq_id": -1, "scope": 0, "tid": 2, "fw_tid": 0, "op_schema": "",
     "inputs": [[[1, 2, 0, 8, 4, "cuda:0"], [3, 4, 0, 3, 8, "cuda:0"]], 1, 2, 0, "allreduce"],
     "input_shapes": [[[2, 4], [3]], [], [], [], []],
     "input_types": ["GenericList[Tensor(float),Tensor(long int)]", "Int", "Int", "Int", "String"],
     "outputs": [], "output_shapes": [], "output_types": []},
    {"name": "record_param_comms", "id": 11, "rf_id": 515, "parent": 1, "seq_id": -1, "tid": 2,
     "fw_tid": 0, "inputs": [141, 0, 0, "wait", [], []], "input_shapes": [[], [], [], [], [], []],
     "input_types": ["Int", "Int", "Int", "String", "GenericList[]", "GenericList[]"]},
    {"name": "nccl:all_reduce", "id": 12, "rf_id": 516, "parent": 10, "seq_id": -1, "tid": 2,
     "fw_tid": 0, "inputs": [[1, 2, 0, 8, 4, "cuda:0"]], "input_shapes": [[112]],
     "input_types": ["Tensor(c10::Half)"]}
    ], "finish_ts": 6674697
})json");
  const Rank& rank = ranks[0];
  CHECK(rank.info.format == "execution_trace");
  CHECK_FALSE(rank.info.timed);
  REQUIRE(rank.host_ops.size() == 5);
  const HostOp& slice = rank.host_ops[0];
  CHECK(ranks.name(slice.name) == "aten::slice");
  CHECK(slice.kind == HostKind::kOperator);
  CHECK(ranks.name(rank.threads[slice.thread.index()].process) == "59811");
  CHECK(ranks.name(rank.threads[slice.thread.index()].thread) == "1");
  CHECK(slice.record_function == 3u);
  CHECK(slice.sequence == 440u);
  CHECK_FALSE(slice.forward_thread);
  CHECK(text(ranks, slice.inputs, &Inputs::shapes) == "[[112], []]");
  CHECK(text(ranks, slice.inputs, &Inputs::types) == R"json(["Tensor(float)", "Int"])json");

  const HostOp& exchange = rank.host_ops[1];
  CHECK_FALSE(exchange.sequence);
  CHECK(exchange.forward_thread == 1u);
  REQUIRE(exchange.collective);
  const Collective& all_to_all = rank.collectives[exchange.collective->index()];
  CHECK(all_to_all.kind == CollectiveKind::kAllToAll);
  CHECK(all_to_all.bytes_in == 3392u * 4);
  CHECK(all_to_all.bytes_out == 768u * 4);
  REQUIRE(rank.host_ops[2].collective);
  const Collective& all_reduce = rank.collectives[rank.host_ops[2].collective->index()];
  CHECK(all_reduce.kind == CollectiveKind::kAllReduce);
  CHECK(all_reduce.bytes_in == 8u * 4 + 3 * 8);  // a list of two tensors
  CHECK_FALSE(all_reduce.bytes_out);
  CHECK_FALSE(rank.host_ops[3].collective);  // waits for one, issues none
  REQUIRE(rank.host_ops[4].collective);
  CHECK(rank.collectives[rank.host_ops[4].collective->index()].bytes_in == 112u * 2);
  CHECK(ranks.problems.list().empty());
}

TEST_CASE("later schemas nest tensors and list the other fields as attributes") {
  const std::string schema = GENERATE(as<std::string>{}, "1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4",
                                      "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4");
  const Ranks ranks =
      read_operators(R"json({"schema": ")json" + schema + R"json(", "pid": 7, "nodes": [
    {"id": 5, "name": "aten::empty", "ctrl_deps": 4,
     "inputs": {"values": [[0], 6], "shapes": [[[]], []], "types": ["GenericList[Int]", "Int"],
                "strides": [[], []]},
     "outputs": {"values": [[6, 7, 0, 0, 4, "cpu"]], "shapes": [[0]], "types": ["Tensor(float)"]},
     "attrs": [{"name": "rf_id", "type": "uint64", "value": 3},
               {"name": "seq_id", "type": "int64", "value": 712},
               {"name": "tid", "type": "uint64", "value": 1},
               {"name": "fw_tid", "type": "uint64", "value": 2},
               {"name": "op_schema", "type": "string", "value": "aten::empty(\"x\")"}]}]})json");
  REQUIRE(ranks[0].host_ops.size() == 1);
  const HostOp& op = ranks[0].host_ops[0];
  CHECK(ranks.name(op.name) == "aten::empty");
  CHECK(op.record_function == 3u);
  CHECK(op.sequence == 712u);
  CHECK(op.forward_thread == 2u);
  CHECK(text(ranks, op.inputs, &Inputs::shapes) == "[[[]], []]");
}

TEST_CASE("collectives of schema 1.1 state their size, earlier ones show it in their inputs") {
  const std::string begin = R"json({"schema": "1.1.0", "nodes": [
    {"id": 1, "name": "record_param_comms", "ctrl_deps": 2,
     "inputs": {"values": [[[1, 2, 0, 53, 8, "cuda:0"]], 32, ["0", "default_pg"], 0, "broadcast"],
                "shapes": [[[53]], [], [[], []], [], []],
                "types": ["GenericList[Tensor(long int)]", "Int", "Tuple[String,String]", "Int",
                          "String"]},
     "outputs": {"values": [[[1, 2, 0, 53, 8, "cuda:0"]]], "shapes": [[[53]]],
                 "types": ["GenericList[Tensor(long int)]"]},
     "attrs": [{"name": "rf_id", "type": "uint64", "value": 9},
               {"name": "tid", "type": "uint64", "value": 1})json";
  const std::string size = R"json(,
               {"name": "collective_name", "type": "string", "value": "broadcast"},
               {"name": "dtype", "type": "string", "value": "Long"},
               {"name": "in_msg_nelems", "type": "uint64", "value": 53},
               {"name": "out_msg_nelems", "type": "uint64", "value": 53},
               {"name": "pg_name", "type": "string", "value": "0"},
               {"name": "pg_size", "type": "uint64", "value": 4})json";
  const bool stated = GENERATE(false, true);
  const Ranks ranks = read_operators(begin + (stated ? size : "") + "]}]}");
  REQUIRE(ranks[0].host_ops.size() == 1);
  REQUIRE(ranks[0].host_ops[0].collective);
  const Collective& collective = ranks[0].collectives[ranks[0].host_ops[0].collective->index()];
  CHECK(collective.kind == CollectiveKind::kBroadcast);
  CHECK(collective.bytes_in == 53u * 8);
  CHECK(collective.bytes_out == 53u * 8);
  CHECK(collective.group.has_value() == stated);
  CHECK(collective.group_size == (stated ? std::optional(4u) : std::nullopt));
}

TEST_CASE("operators without a name or a thread are dropped and counted") {
  const Ranks ranks = read_operators(R"json({"schema": "1.0.1", "nodes": [
    {"name": "a", "tid": 1, "rf_id": 1}, {"tid": 1, "rf_id": 2}, {"name": "c", "rf_id": 3},
    {"name": "d", "tid": 1, "rf_id": "what", "seq_id": 1e30}]})json");
  REQUIRE(ranks[0].host_ops.size() == 2);
  CHECK_FALSE(ranks[0].host_ops[1].record_function);
  CHECK_FALSE(ranks[0].host_ops[1].sequence);
  CHECK(ranks.count(ProblemKind::kMissingField) == 2);
  CHECK(ranks.first(ProblemKind::kMissingField) == "et.json:2");
}

TEST_CASE("a truncated execution trace gives its whole operators") {
  const std::string json = R"json({"schema": "1.0.1", "pid": 3, "nodes": [{"name": "a", "tid": 1},
{"name": "b", "tid": 1}, {"name": "c", "tid)json";
  const Ranks ranks = read_operators(json);
  CHECK(ranks[0].host_ops.size() == 2);
  CHECK(ranks.count(ProblemKind::kTruncated) == 1);
}

TEST_CASE("a file that is not an execution trace of a known schema is refused in one line") {
  CHECK(
      operators_error(
          R"json({"schema": "2.0.0-chakra.1.0", "nodes": [{"name": "a", "tid": 1}]})json") ==
      "et.json: is an execution trace of schema '2.0.0-chakra.1.0'; a schema from 1.0.1 to 1.1.1");
  CHECK(operators_error(R"json({"nodes": [{"name": "a", "tid": 1}], "schema": "10.0"})json") ==
        "et.json: is an execution trace of schema '10.0'; a schema from 1.0.1 to 1.1.1");
  CHECK(operators_error(R"json({"schema": "3\n\"", "nodes": [{"name": "a", "tid": 1}]})json") ==
        "et.json: is an execution trace of schema '3'; a schema from 1.0.1 to 1.1.1");
  CHECK(operators_error(R"json({"nodes": [{"name": "a", "tid": 1}]})json") ==
        "et.json: does not name its schema; a PyTorch execution trace with a 'schema' member");
  CHECK(operators_error(R"json({"schema": "1.0.1", "nodes": []})json") ==
        "et.json: contains no operators; a PyTorch execution trace with a 'nodes' array");
  CHECK(operators_error(R"json({"schema": "1.0.1", "nodes": [{"name")json") ==
        "et.json: ends before the first operator; a PyTorch execution trace with a 'nodes' array");
  CHECK(operators_error("nodes") == "et.json: is not JSON; an object or an array");
}

TEST_CASE("recorded execution traces of every schema read whole") {
  struct Recorded {
    const char* file;
    std::size_t operators;
    std::size_t collectives;
  };
  // Counted in the files by a JSON library: nodes but for the three roots; communications but
  // waits, and ranges of NCCL.
  const auto recorded = GENERATE(values<Recorded>({
      {"param-dlrm-8rank-v100/et/rank0_dlrm_eg_0.json.gz", 1672, 16},
      {"param-et-replay-2080ti/1.0.3-chakra.0.0.4_resnet_1gpu_et.json.gz", 14388, 42},
      {"param-et-replay-2080ti/hf_GPT2_et.json.gz", 27153, 0},
      {"param-et-replay-2080ti/resnet_et.json.gz", 14389, 42},
      {"param-et-replay-2080ti/v1.1.1_resnet_1gpu_et.json.gz", 14389, 42},
      {"triosim-h100/raw_vgg13_execgraph_iter41.json.gz", 900, 0},
      {"hta-kineto/execution_trace__benchmark_simple_add_et.json.gz", 36, 0},
      {"chakra-et/astra_hoti2024_pytorch_et_0.json.gz", 4798, 14},
  }));
  const auto path = test::shared_data(recorded.file);
  SKIP_WITHOUT_DATA(path);
  const auto bytes = open_bytes(*path);
  REQUIRE(bytes);
  Ranks ranks;
  REQUIRE(read_execution_trace(**bytes, ranks.next(recorded.file), {}));
  INFO(recorded.file);
  CHECK(ranks[0].host_ops.size() == recorded.operators);
  const auto issues = [](const HostOp& op) { return op.collective.has_value(); };
  CHECK(static_cast<std::size_t>(std::count_if(ranks[0].host_ops.begin(), ranks[0].host_ops.end(),
                                               issues)) == recorded.collectives);
  CHECK(ranks.problems.list().empty());
}

}  // namespace
}  // namespace rehearse::ingest
