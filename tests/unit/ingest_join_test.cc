#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "profiler/ingest/execution_trace.h"
#include "profiler/ingest/join.h"
#include "profiler/ingest/kineto.h"
#include "tests/support/data.h"

namespace rehearse::ingest {
namespace {

using namespace trace;

/// A trace made op by op: each name of a timed rank runs for 10 ns, one after the other.
class Maker {
 public:
  Rank& timed(std::string source, const std::string& process = "100") {
    Rank& rank = trace.ranks.emplace_back();
    rank.info.source = std::move(source);
    rank.info.format = "kineto";
    add_thread(rank, process, "main");
    return rank;
  }
  Rank& untimed(std::string source, const std::string& process = "100") {
    Rank& rank = trace.ranks.emplace_back();
    rank.info.source = std::move(source);
    rank.info.format = "execution_trace";
    rank.info.timed = false;
    add_thread(rank, process, "1");
    return rank;
  }
  void add_thread(Rank& rank, const std::string& process, const std::string& thread) {
    rank.threads.push_back({trace.names.intern(process), trace.names.intern(thread)});
  }
  void run(Rank& rank, const std::vector<std::string>& names, std::size_t thread = 0) {
    for (const std::string& name : names) {
      const std::int64_t at = rank.info.timed ? 10 * ++clock_ : 0;
      rank.host_ops.push_back({.name = trace.names.intern(name),
                               .thread = ThreadId(thread),
                               .kind = HostKind::kOperator,
                               .start = Nanoseconds(at),
                               .duration = Nanoseconds(rank.info.timed ? 10 : 0)});
      if (!rank.info.timed) {
        rank.host_ops.back().record_function = ++number_;
        rank.host_ops.back().inputs = InputsId(rank.inputs.size());
        rank.inputs.push_back(
            {trace.names.intern(fmt::format("shape {}", number_)), trace.names.intern("type")});
      }
    }
  }
  std::string shapes(const Rank& rank, std::size_t op) const {
    const auto inputs = rank.host_ops.at(op).inputs;
    return inputs ? std::string(trace.names[rank.inputs[inputs->index()].shapes]) : "none";
  }
  std::uint64_t unjoined() const {
    for (const Problem& problem : trace.problems.list())
      if (problem.kind == ProblemKind::kUnjoined) return problem.count;
    return 0;
  }

  Trace trace;

 private:
  std::int64_t clock_ = 0;
  std::uint32_t number_ = 0;
};

std::string shape(std::size_t number) { return fmt::format("shape {}", number); }

std::vector<std::string> layers(int first, int count) {
  std::vector<std::string> names;
  for (int i = first; i < first + count; ++i) {
    names.push_back(fmt::format("aten::linear {}", i));
    names.push_back("aten::addmm");
    names.push_back("aten::relu");
  }
  return names;
}

template <class T>
std::vector<T> operator+(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_CASE("operators are joined by id where the recording has ids") {
  Maker m;
  m.trace.ranks.reserve(2);
  Rank& timed = m.timed("kineto.json");
  m.run(timed, {"b", "a", "other", "a"});
  timed.host_ops[0].record_function = 2;
  timed.host_ops[1].record_function = 1;
  timed.host_ops[2].record_function = 3;
  Rank& et = m.untimed("et.json");
  m.run(et, {"a", "b", "c"});  // 1, 2, 3
  join_execution_traces(m.trace);
  REQUIRE(m.trace.ranks.size() == 1);
  const Rank& rank = m.trace.ranks[0];
  CHECK(m.shapes(rank, 0) == "shape 2");
  CHECK(m.shapes(rank, 1) == "shape 1");
  CHECK(m.shapes(rank, 2) == "none");  // the id is that of an operator of another name
  CHECK(m.shapes(rank, 3) == "none");
  CHECK(m.unjoined() == 1);
  CHECK(m.trace.problems.list().at(0).first == "et.json: c");
}

TEST_CASE("operators without ids are joined by order, even if parts are missing on either side") {
  Maker m;
  m.trace.ranks.reserve(2);
  const std::vector<std::string> only_timed = {"x1", "x2", "x3"}, only_et = {"y1", "y2"};
  m.run(m.timed("kineto.json"), layers(0, 20) + only_timed + layers(20, 20) + layers(40, 5));
  m.run(m.untimed("et.json"), layers(0, 20) + layers(20, 20) + only_et + layers(40, 5));
  join_execution_traces(m.trace);
  REQUIRE(m.trace.ranks.size() == 1);
  const Rank& rank = m.trace.ranks[0];
  // 60 ops alike, 3 that the execution trace lacks, 60 alike, 2 that the recording lacks, 15 alike.
  for (std::size_t i = 0; i < 60; ++i) CHECK(m.shapes(rank, i) == shape(i + 1));
  for (std::size_t i = 60; i < 63; ++i) CHECK(m.shapes(rank, i) == "none");
  for (std::size_t i = 63; i < 123; ++i) CHECK(m.shapes(rank, i) == shape(i - 2));
  for (std::size_t i = 123; i < 138; ++i) CHECK(m.shapes(rank, i) == shape(i));
  CHECK(m.unjoined() == 2);
  CHECK(rank.host_ops[0].record_function == 1u);
}

TEST_CASE("an execution trace of one step is joined to that step") {
  Maker m;
  m.trace.ranks.reserve(2);
  Rank& timed = m.timed("kineto.json");
  for (int step = 0; step < 5; ++step) {
    m.run(timed, {fmt::format("ProfilerStep#{}", step)});
    m.run(timed, layers(0, 15));
  }
  Rank& et = m.untimed("et.json");
  SECTION("named by its mark") {
    m.run(et, {"ProfilerStep#3"});
    m.run(et, layers(0, 15));
    join_execution_traces(m.trace);
    for (std::size_t i = 0; i < 230; ++i)
      CHECK((m.shapes(m.trace.ranks[0], i) != "none") == (i >= 138 && i < 184));
  }
  SECTION("told by its sequence numbers") {
    m.run(et, layers(0, 15));
    for (std::uint32_t i = 0; i < 230; ++i) timed.host_ops[i].sequence = 1000 + i;
    for (std::uint32_t i = 0; i < 45; ++i) et.host_ops[i].sequence = 1000 + 93 + i;
    join_execution_traces(m.trace);
    for (std::size_t i = 0; i < 230; ++i)
      CHECK((m.shapes(m.trace.ranks[0], i) != "none") == (i >= 93 && i < 138));
  }
  SECTION("longer than the recording") {
    m.run(et, layers(50, 10));
    for (int step = 0; step < 5; ++step) {
      m.run(et, {fmt::format("ProfilerStep#{}", step)});
      m.run(et, layers(0, 15));
    }
    join_execution_traces(m.trace);
    CHECK(m.shapes(m.trace.ranks[0], 0) == "shape 31");
    CHECK(m.shapes(m.trace.ranks[0], 229) == "shape 260");
  }
}

TEST_CASE("threads are matched by their operators, and values of the recording are kept") {
  Maker m;
  m.trace.ranks.reserve(2);
  Rank& timed = m.timed("kineto.json");
  m.add_thread(timed, "100", "backward");
  m.run(timed, layers(0, 12), 0);
  m.run(timed, {"b1", "b2", "b3", "b4"}, 1);
  timed.inputs.push_back({m.trace.names.intern("own"), m.trace.names.intern("type")});
  timed.host_ops[0].inputs = InputsId(0);
  timed.host_ops[0].sequence = 7;
  timed.host_ops[1].sequence = 8;
  Rank& et = m.untimed("et.json");
  m.add_thread(et, "100", "2");
  m.run(et, {"b1", "b2", "b3", "b4"}, 0);
  m.run(et, layers(0, 12), 1);
  et.collectives.push_back({.kind = CollectiveKind::kAllReduce, .bytes_in = 64});
  et.host_ops[1].collective = CollectiveId(0);
  for (std::uint32_t i = 4; i < 7; ++i) {
    et.host_ops[i].sequence = i + 3;
    et.host_ops[i].forward_thread = 1;
  }
  SECTION("numbered alike") {
    join_execution_traces(m.trace);
    CHECK(m.trace.ranks[0].host_ops[2].sequence == 9u);
    CHECK(m.trace.ranks[0].host_ops[2].forward_thread == 1u);
  }
  SECTION("of another step") {
    for (std::uint32_t i = 4; i < 7; ++i) et.host_ops[i].sequence = i + 100;
    join_execution_traces(m.trace);
    CHECK_FALSE(m.trace.ranks[0].host_ops[2].sequence);
    CHECK_FALSE(m.trace.ranks[0].host_ops[2].forward_thread);
  }
  REQUIRE(m.trace.ranks.size() == 1);
  const Rank& rank = m.trace.ranks[0];
  CHECK(m.shapes(rank, 0) == "own");
  CHECK(rank.host_ops[0].sequence == 7u);
  CHECK(m.shapes(rank, 1) == "shape 6");
  CHECK(m.shapes(rank, 36) == "shape 1");
  REQUIRE(rank.host_ops[37].collective);
  CHECK(rank.collectives[rank.host_ops[37].collective->index()].bytes_in == 64u);
  CHECK(m.unjoined() == 0);
}

TEST_CASE("recordings of different programs are not joined by chance") {
  Maker m;
  m.trace.ranks.reserve(2);
  std::vector<std::string> a, b;
  for (int i = 0; i < 400; ++i) {
    a.push_back(i % 3 == 0 ? "aten::view" : fmt::format("a{}", i % 7));
    b.push_back(i % 5 == 0 ? "aten::view" : fmt::format("b{}", i % 11));
  }
  m.run(m.timed("kineto.json"), a);
  m.run(m.untimed("et.json"), b);
  join_execution_traces(m.trace);
  CHECK(m.trace.ranks.size() == 1);
  CHECK(m.unjoined() == 400);
  for (std::size_t i = 0; i < 400; ++i) CHECK(m.shapes(m.trace.ranks[0], i) == "none");
}

/// Which timed rank each execution trace, told by its only operator, was joined to.
std::string joined_to(const Trace& trace, const std::string& name) {
  for (const Rank& rank : trace.ranks)
    for (const HostOp& op : rank.host_ops)
      if (trace.names[op.name] == name && op.inputs) return rank.info.source;
  return "nothing";
}

TEST_CASE("an execution trace finds the rank it belongs to") {
  Maker m;
  m.trace.ranks.reserve(8);
  for (const std::string n : {"0", "1", "2"}) {
    Rank& rank = m.timed("rank " + n, "10" + n);
    rank.info.rank = static_cast<std::uint32_t>(std::stoul(n));
    m.run(rank, {"a", "b", "c"});
  }
  SECTION("by process") {
    m.run(m.untimed("graph_7.json", "102"), {"a"});
    join_execution_traces(m.trace);
    CHECK(joined_to(m.trace, "a") == "rank 2");
  }
  SECTION("by the number in its file name") {
    m.run(m.untimed("dlrm_eg_1.json.gz", "900"), {"b"});
    m.run(m.untimed("rank2_step_0.json", "901"), {"c"});
    join_execution_traces(m.trace);
    CHECK(joined_to(m.trace, "b") == "rank 1");
    CHECK(joined_to(m.trace, "c") == "rank 2");
  }
  SECTION("by its number, which goes before its process") {
    m.untimed("x.json", "102").info.rank = 0;
    m.run(m.trace.ranks.back(), {"a"});
    join_execution_traces(m.trace);
    CHECK(joined_to(m.trace, "a") == "rank 0");
  }
  SECTION("as the only one that is left") {
    m.run(m.untimed("first.json", "102"), {"a"});
    m.run(m.untimed("second_0.json", "900"), {"b"});
    m.run(m.untimed("third.json", "901"), {"c"});
    join_execution_traces(m.trace);
    CHECK(joined_to(m.trace, "c") == "rank 1");
    CHECK(m.trace.ranks.size() == 3);
  }
  SECTION("or stays a rank of its own") {
    m.run(m.untimed("x.json", "900"), {"a"});
    join_execution_traces(m.trace);
    CHECK(m.trace.ranks.size() == 4);
    CHECK(m.unjoined() == 0);
  }
}

/// How many of the operators of an execution trace are joined to a recording, and how many there
/// are.
struct Joined {
  std::uint64_t operators;
  std::uint64_t unjoined;
};

Joined join_files(const std::filesystem::path& kineto, const std::filesystem::path& et) {
  Trace trace;
  trace.ranks.resize(2);
  for (int i = 0; i < 2; ++i) {
    const std::filesystem::path& file = i == 0 ? kineto : et;
    Rank& rank = trace.ranks[static_cast<std::size_t>(i)];
    rank.info.source = file.string();
    RankRows rows(rank);
    Recorder recorder(trace.names, trace.problems, rank, rows);
    const auto bytes = open_bytes(file);
    REQUIRE(bytes);
    REQUIRE((i == 0 ? read_kineto(**bytes, recorder, {})
                    : read_execution_trace(**bytes, recorder, {})));
  }
  Joined joined{trace.ranks[1].host_ops.size(), 0};
  join_execution_traces(trace);
  REQUIRE(trace.ranks.size() == 1);
  std::uint64_t with_id = 0;
  for (const HostOp& op : trace.ranks[0].host_ops)
    if (op.record_function) ++with_id;
  for (const Problem& problem : trace.problems.list())
    if (problem.kind == ProblemKind::kUnjoined) joined.unjoined = problem.count;
  CHECK(with_id == joined.operators - joined.unjoined);
  return joined;
}

TEST_CASE("recorded pairs of one program are joined to more than 99 %") {
  struct Pair {
    const char* kineto;
    const char* et;
    std::uint64_t operators;
    std::uint64_t unjoined;  // of starts that whole microseconds cannot order
  };
  const auto pair = GENERATE(values<Pair>({
      {"param-dlrm-8rank-v100/kineto/rank0_worker0_step_12.1694128201545.pt.trace.json.gz",
       "param-dlrm-8rank-v100/et/rank0_dlrm_eg_0.json.gz", 1672, 6},
      {"param-dlrm-8rank-v100/kineto/rank1_worker1_step_12.1694128201556.pt.trace.json.gz",
       "param-dlrm-8rank-v100/et/rank1_dlrm_eg_1.json.gz", 1672, 4},
      {"param-dlrm-8rank-v100/kineto/rank2_worker2_step_12.1694128201554.pt.trace.json.gz",
       "param-dlrm-8rank-v100/et/rank2_dlrm_eg_2.json.gz", 1672, 2},
      {"param-dlrm-8rank-v100/kineto/rank3_worker3_step_12.1694128201557.pt.trace.json.gz",
       "param-dlrm-8rank-v100/et/rank3_dlrm_eg_3.json.gz", 1672, 2},
      {"param-dlrm-8rank-v100/kineto/rank5_worker5_step_12.1694128201549.pt.trace.json.gz",
       "param-dlrm-8rank-v100/et/rank5_dlrm_eg_5.json.gz", 1672, 0},
      {"triosim-h100/raw_vgg13_kineto_iter41.json.gz",
       "triosim-h100/raw_vgg13_execgraph_iter41.json.gz", 900, 0},
      {"hta-kineto/execution_trace__benchmark_simple_add_trace.json.gz",
       "hta-kineto/execution_trace__benchmark_simple_add_et.json.gz", 36, 0},
  }));
  const auto kineto = test::shared_data(pair.kineto), et = test::shared_data(pair.et);
  SKIP_WITHOUT_DATA(kineto);
  SKIP_WITHOUT_DATA(et);
  INFO(pair.et);
  const Joined joined = join_files(*kineto, *et);
  CHECK(joined.operators == pair.operators);
  CHECK(joined.unjoined == pair.unjoined);
}

TEST_CASE("a recorded pair of two programs is not joined") {
  // The execution trace is of three steps of a distributed ResNet in 2024, the recording of thirty
  // steps without distribution in 2023: other processes, other operators.
  const auto kineto = test::shared_data("param-et-replay-2080ti/resnet_kineto.json.gz");
  const auto et = test::shared_data("param-et-replay-2080ti/resnet_et.json.gz");
  SKIP_WITHOUT_DATA(kineto);
  SKIP_WITHOUT_DATA(et);
  const Joined joined = join_files(*kineto, *et);
  CHECK(joined.operators == 14389);
  CHECK(joined.unjoined == 14389);
}

}  // namespace
}  // namespace rehearse::ingest
