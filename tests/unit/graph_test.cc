#include "sim/graph/graph.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/graph/verify.h"
#include "tests/support/graph_text.h"

namespace rehearse::graph {
namespace {

struct Chain {
  GraphBuilder builder;
  NameId name = builder.intern("op");
  OpId add(std::int64_t ps, DemandId demand = DemandId(0)) {
    return builder.add(Op{.name = name,
                          .category = Category::kCompute,
                          .duration = Picoseconds(ps),
                          .demand = demand});
  }
  std::string build_error() {
    Result<Graph> graph = std::move(builder).build();
    return graph ? "no error" : to_string(graph.error());
  }
};

TEST_CASE("a graph keeps what was added and sorts successors by id") {
  Chain c;
  const OpId a = c.add(1), b = c.add(2), d = c.add(3);
  c.builder.add_edge(a, d);
  c.builder.add_edge(a, b);
  const Graph graph = *std::move(c.builder).build();
  CHECK(graph.size() == 3);
  CHECK(graph.edge_count() == 2);
  REQUIRE(graph.successors(a).size() == 2);
  CHECK(graph.successors(a)[0] == b);
  CHECK(graph.successors(a)[1] == d);
  CHECK(graph.need(d) == 1);
  CHECK(graph.name(d) == "op");
  CHECK(graph.without_work());
}

TEST_CASE("equal demands share one entry") {
  GraphBuilder builder;
  const ServerId s = builder.add(Server{.name = builder.intern("s")});
  CHECK(builder.add(Demand{.server = s}) == builder.add(Demand{.server = s}));
  CHECK(builder.add(Demand{.server = s, .priority = 1}) != builder.add(Demand{.server = s}));
  CHECK(builder.add(Demand{}) == DemandId(0));
}

TEST_CASE("verify names what breaks an invariant") {
  SECTION("a cycle, with the ops on it") {
    Chain c;
    const OpId a = c.add(1), b = c.add(1), d = c.add(1);
    c.builder.add_edge(a, b);
    c.builder.add_edge(b, d);
    c.builder.add_edge(d, b);
    CHECK(c.build_error() == "the graph has a cycle: op 2 'op' after op 1 'op' after itself");
  }
  SECTION("an edge out of range") {
    Chain c;
    c.builder.add_edge(c.add(1), OpId(7));
    CHECK(c.build_error() == "edge 0 -> 7 leaves the graph of 1 ops");
  }
  SECTION("an edge that appears twice") {
    Chain c;
    const OpId a = c.add(1), b = c.add(1);
    c.builder.add_edge(a, b);
    c.builder.add_edge(a, b);
    CHECK(c.build_error() == "the edge from op 0 'op' to op 1 'op' appears twice");
  }
  SECTION("a negative duration") {
    Chain c;
    c.add(-5);
    CHECK(c.build_error() == "op 0 'op' has a negative duration of -5 ps");
  }
  SECTION("work without a capacity") {
    Chain c;
    c.builder.add(Op{.name = c.name,
                     .category = Category::kCommunication,
                     .duration = Picoseconds(0),
                     .work = 8});
    CHECK(c.build_error() == "op 0 'op' has work but no capacity to carry it");
  }
  SECTION("a resource that does not exist") {
    Chain c;
    c.builder.add(Demand{.server = ServerId(3)});
    CHECK(c.build_error() == "a demand names server 3, which does not exist");
  }
  SECTION("first m of fewer than m") {
    Chain c;
    const OpId a = c.add(1), b = c.add(1);
    c.builder.add_edge(a, b);
    c.builder.wait_for_first(b, 2);
    CHECK(c.build_error() == "op 1 'op' waits for the first 2 of 1 predecessors");
  }
  SECTION("shares of capacities, and turns") {
    Chain c;
    const CapacityId link = c.builder.add(Capacity{.name = c.name, .rate = 1});
    const CapacityId turn = c.builder.add(
        Capacity{.name = c.name, .rate = 1, .turns = Turns{Picoseconds(5), Picoseconds(0)}});
    SECTION("one for each") {
      c.builder.add(Demand{.capacities = {link}, .units_per_work = {1, 2}});
      CHECK(c.build_error().find("takes a wrong share") != std::string::npos);
    }
    SECTION("above zero") {
      c.builder.add(Demand{.capacities = {link}, .units_per_work = {0}});
      CHECK(c.build_error().find("takes a wrong share") != std::string::npos);
    }
    SECTION("of a group") {
      c.builder.add(Demand{.capacities = {turn}});
      CHECK(c.build_error().find("capacity 1, which has turns, and has no group") !=
            std::string::npos);
    }
    SECTION("that take time") {
      c.builder.add(
          Capacity{.name = c.name, .rate = 1, .turns = Turns{Picoseconds(0), Picoseconds(0)}});
      CHECK(c.build_error().find("turns of 0 ps") != std::string::npos);
    }
  }
  SECTION("slots whose demands carry nothing") {
    for (const std::uint32_t slots : {1U, 2U}) {
      Chain c;
      const CapacityId core = c.builder.add(Capacity{.name = c.name, .rate = 1});
      const DemandId through = c.builder.add(Demand{.capacities = {core}});
      const DemandId other = slots == 1 ? DemandId(0) : through;
      c.builder.add(Server{.name = c.name, .slots = slots, .slot_demands = {other}});
      CHECK(c.build_error().find("a demand with capacities for each slot") != std::string::npos);
    }
  }
  SECTION("a server without slots") {
    Chain c;
    c.builder.add(Server{.name = c.name, .slots = 0});
    CHECK(c.build_error().find("server 'op' has 0 slots") != std::string::npos);
  }
}

constexpr const char* kEverything = R"(rehearse-graph 1
server 0 "gpu 0 stream 7" slots 1 policy fifo turnaround 1200ps
server 1 "worker \"pool\"" slots 4 policy priority turnaround 0ps
server 2 "threads" slots 2 policy fifo turnaround 0ps slot 4 slot 5
capacity 0 "nvlink" 450000000000
capacity 1 "nic" 25000000000 at 5000000ps 12500000000 at 9000000ps 0
capacity 2 "turn" 8 at 5ps 4 turns 2000000ps 100ps
demand 1 server 0
demand 2 through 0 through 1 weight 2 cap 1000000000 priority 3
demand 3 server 1 lease 4
demand 4 through 0 group 2 due 700ps
demand 5 through 0 cap 7
demand 6 server 0 hold 5
demand 7 through 0 takes 0.5 through 2 takes 1 group 1
op 0 "gemm" compute 12500000ps on 1
op 1 "all_reduce" communication 1000ps on 2 work 4096 after 0
op 2 "load\nmore" input 0ps on 3 first 1 after 0 1
op 3 "send" communication 0ps
op 4 "receive" communication 0ps
lanes 0 2
lane 0 1 3 0.25
lane 1 0 1 0.25 wait 0 3
lane 0 1 2 0 wait 0 1 each wait 1 1
ways 0
way 4 2000ps
way 0 0ps
way 4 2000ps
transfer 0 0 4096 3 4
)";

TEST_CASE("the text form is lossless") {
  const Result<Graph> graph = parse_graph(kEverything, "test.graph");
  REQUIRE(graph);
  CHECK(to_text(*graph) == kEverything);
  CHECK(graph->need(OpId(2)) == 1);
  CHECK(graph->name(OpId(2)) == "load\nmore");
  CHECK(graph->capacities()[1].changes.size() == 2);
  CHECK(to_text(*GraphBuilder(*graph).build()) == kEverything);
}

TEST_CASE("a wrong text form is one line with its place") {
  const auto error_of = [](std::string_view text) {
    const Result<Graph> graph = parse_graph(text, "g.txt");
    return graph ? "no error" : to_string(graph.error());
  };
  CHECK(error_of("rehearse-graph 2\n") ==
        "g.txt:1:1: is not a graph of this format version; rehearse-graph 1");
  CHECK(error_of("rehearse-graph 1\nop 0 \"x\" compute 5\n") ==
        "g.txt:2:18: a duration must end in 'ps'");
  CHECK(error_of("rehearse-graph 1\nop 0 \"x\" computed 5ps\n") ==
        "g.txt:2:10: unknown category 'computed'; did you mean 'compute'?");
  CHECK(error_of("rehearse-graph 1\nop 1 \"x\" compute 5ps\n") ==
        "g.txt:2:4: id 1 is out of order; id 0");
  CHECK(error_of("rehearse-graph 1\ndemand 1 takes 2\n") ==
        "g.txt:2:16: no capacity is defined above; through ID");
  CHECK(error_of("rehearse-graph 1\ncapacity 0 \"c\" 1 turns 5ps\n").find("time between") !=
        std::string::npos);
  CHECK(error_of("rehearse-graph 1\nserver 0 \"s\" policy lifo\n").find("did you mean 'fifo'?") !=
        std::string::npos);
  CHECK(error_of("rehearse-graph 1\nop 0 \"x compute\n").find("no closing quote") !=
        std::string::npos);
}

TEST_CASE("transfers that are not whole are refused, with their place") {
  const auto error_of = [](const std::string& lines) {
    const Result<Graph> graph = parse_graph("rehearse-graph 1\n" + lines, "g.txt");
    return graph ? "no error" : to_string(graph.error());
  };
  const std::string two = "op 0 \"a\" host 0ps\nop 1 \"b\" host 0ps\nlanes 0 2\n";
  CHECK(error_of("lane 0 1 1 1\n") ==
        "g.txt:2:1: a lane needs a line 'lanes' above it, and no transfer between them");
  CHECK(error_of(two + "lane 0 2 1 1\n").find("g.txt:5:12: wrong lane; FROM TO COUNT SHARE") == 0);
  CHECK(error_of(two + "lane 0 1 1 1 wait 4 1\nways 0\nway 0 0ps\ntransfer 0 0 1 0 1\n")
            .find("lane 0 of lanes 0 waits for lane 4") != std::string::npos);
  CHECK(error_of(two + "transfer 0 0 1 0 1\n").find("there are no such ways") != std::string::npos);
  const std::string lane = two + "lane 0 1 1 1\nways 0\n";
  CHECK(error_of(lane + "transfer 0 0 1 0 1\n") == "transfer 0 does not have one way per lane");
  CHECK(error_of(lane + "way 0 0ps\ntransfer 0 0 1 0\n") ==
        "g.txt:8:16: the transfer has 1 ops; 2, one per member of lanes 0");
  CHECK(error_of(lane + "way 0 0ps\ntransfer 0 0 1 0 0\n") ==
        "transfer 0 shares op 0 'a' or moves work that it has");
  CHECK(error_of(lane + "way 7 0ps\ntransfer 0 0 1 0 1\n") ==
        "transfer 0 has a way without a demand, or with a negative latency or work");
  const std::string done = lane + "way 0 0ps\ntransfer 0 0 1 0 1\n";
  CHECK(error_of(done) == "no error");
  CHECK(error_of(done + "lane 0 1 1 1\n").find("g.txt:9:1: a lane needs") == 0);
  CHECK(error_of(two + "lane 0 1 1 inf\n").find("g.txt:5:12: wrong lane") == 0);
  CHECK(error_of(two + "lane 0 1 4294967295 1\n") ==
        "g.txt:5:10: 4294967295 messages; at most 2147483647");
}

TEST_CASE("a number of members that a line claims takes no memory") {
  for (const char* members : {"4294967295", "4294967294"}) {
    const Result<Graph> graph = parse_graph(
        fmt::format("rehearse-graph 1\nlanes 0 {}\nways 0\ntransfer 0 0 1\n", members), "g.txt");
    REQUIRE(!graph);
    CHECK(
        to_string(graph.error()) ==
        fmt::format("g.txt:4:14: the transfer has 0 ops; {}, one per member of lanes 0", members));
  }
}

TEST_CASE("a copy of a graph outlives the original") {
  std::optional<Graph> original(*parse_graph(kEverything, "t"));
  const Graph copy = *original;
  original.reset();
  CHECK(to_text(copy) == kEverything);
}

}  // namespace
}  // namespace rehearse::graph
