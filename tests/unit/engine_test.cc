#include "sim/engine/engine.h"

#include <catch2/catch.hpp>

#include "tests/support/graph_text.h"

namespace rehearse::engine {
namespace {

using graph::Graph;
using graph::Timeline;

/// Runs a graph given as text without its first line.
Timeline run_text(const std::string& text) {
  const Result<Graph> graph = graph::parse_graph("rehearse-graph 1\n" + text, "test");
  INFO((graph ? "" : to_string(graph.error())));
  REQUIRE(graph);
  Result<Timeline> timeline = run(*graph);
  INFO((timeline ? "" : to_string(timeline.error())));
  REQUIRE(timeline);
  return *timeline;
}

std::string error_text(const std::string& text) {
  const Result<Graph> graph = graph::parse_graph("rehearse-graph 1\n" + text, "test");
  REQUIRE(graph);
  const Result<Timeline> timeline = run(*graph);
  return timeline ? "no error" : to_string(timeline.error());
}

std::int64_t start(const Timeline& t, int op) { return t[OpId(op)].start.count(); }
std::int64_t end(const Timeline& t, int op) { return t[OpId(op)].end.count(); }

TEST_CASE("an op waits for all its predecessors") {
  // 2: max(10, 7) = 10, so it ends at 15.
  const Timeline t = run_text(R"(op 0 "a" compute 10ps
op 1 "b" compute 7ps
op 2 "c" compute 5ps after 0 1
)");
  CHECK(start(t, 2) == 10);
  CHECK(end(t, 2) == 15);
  CHECK(t[OpId(2)].cause == OpId(0));
  CHECK(t.makespan() == Picoseconds(15));
}

TEST_CASE("an op may wait for the first m of its predecessors") {
  // Ends 3, 10, 20: the second of three ends at 10.
  const Timeline t = run_text(R"(op 0 "a" compute 20ps
op 1 "b" compute 3ps
op 2 "c" compute 10ps
op 3 "d" compute 1ps first 2 after 0 1 2
)");
  CHECK(start(t, 3) == 10);
  CHECK(t[OpId(3)].cause == OpId(2));
}

TEST_CASE("a fifo server serves in the order of asking, with its turnaround") {
  // Asked at 0, 0 and 4; served 0-10, 12-17 (turnaround 2), 19-20.
  const Timeline t = run_text(R"(server 0 "s" slots 1 policy fifo turnaround 2ps
demand 1 server 0
op 0 "a" compute 10ps on 1
op 1 "b" compute 5ps on 1
op 2 "delay" compute 4ps
op 3 "c" compute 1ps on 1 after 2
)");
  CHECK(start(t, 1) == 12);
  CHECK(start(t, 3) == 19);
  CHECK(t[OpId(3)].cause == OpId(1));
}

TEST_CASE("a server with n slots serves n ops at once") {
  // Four ops of 10 on two slots: 0-10, 0-10, 10-20, 10-20.
  const Timeline t = run_text(R"(server 0 "s" slots 2 policy fifo turnaround 0ps
demand 1 server 0
op 0 "a" compute 10ps on 1
op 1 "b" compute 10ps on 1
op 2 "c" compute 10ps on 1
op 3 "d" compute 10ps on 1
)");
  CHECK(start(t, 1) == 0);
  CHECK(start(t, 2) == 10);
  CHECK(end(t, 3) == 20);
}

TEST_CASE(
    "a priority server takes the waiting op with the highest priority, without interrupting") {
  // At 10 both 1 (priority 0) and 2 (priority 5) wait; 2 goes first though it asked later.
  const Timeline t = run_text(R"(server 0 "s" slots 1 policy priority turnaround 0ps
demand 1 server 0
demand 2 server 0 priority 5
op 0 "a" compute 10ps on 1
op 1 "b" compute 5ps on 1
op 2 "c" compute 5ps on 2 after 3
op 3 "delay" compute 6ps
)");
  CHECK(start(t, 2) == 10);
  CHECK(start(t, 1) == 15);
}

TEST_CASE("simultaneous requests of a priority server do not depend on their order") {
  // The low one asks first, at the same instant.
  const Timeline t = run_text(R"(server 0 "s" slots 1 policy priority turnaround 0ps
demand 1 server 0
demand 2 server 0 priority 5
op 0 "low" compute 3ps on 1
op 1 "high" compute 3ps on 2
)");
  CHECK(start(t, 1) == 0);
  CHECK(start(t, 0) == 3);
}

TEST_CASE("a lease keeps the server until its last op has run") {
  // Lease 1 = {0, 2}. Op 1 (lease 2) asks at 0 but waits until 2 has run, though the server is
  // idle from 10 to 14.
  const Timeline t = run_text(R"(server 0 "s" slots 1 policy lease turnaround 0ps
demand 1 server 0 lease 1
demand 2 server 0 lease 2
op 0 "a" compute 10ps on 1
op 1 "other job" compute 5ps on 2
op 2 "b" compute 6ps on 1 after 3
op 3 "delay" compute 4ps after 0
)");
  CHECK(start(t, 2) == 14);
  CHECK(start(t, 1) == 20);
}

TEST_CASE("flows share a capacity equally") {
  // 10 B/s, two ops of 20 B: 5 B/s each, both end at 4 s. Alone: 2 s.
  const std::string link = "capacity 0 \"link\" 10\ndemand 1 through 0\n";
  const Timeline both = run_text(link + R"(op 0 "a" communication 0ps on 1 work 20
op 1 "b" communication 0ps on 1 work 20
)");
  CHECK(end(both, 0) == 4'000'000'000'000);
  CHECK(end(both, 1) == 4'000'000'000'000);
}

TEST_CASE("the others become faster when a flow leaves") {
  // 10 B/s; a moves 10 B, b 30 B. Both at 5 B/s until a ends at 2 s; b has 20 B left: 2 s + 2 s.
  const Timeline t = run_text(R"(capacity 0 "link" 10
demand 1 through 0
op 0 "a" communication 0ps on 1 work 10
op 1 "b" communication 0ps on 1 work 30
)");
  CHECK(end(t, 0) == 2'000'000'000'000);
  CHECK(end(t, 1) == 4'000'000'000'000);
}

TEST_CASE("weights divide a capacity in proportion") {
  // 12 B/s, weights 1 and 3: 3 and 9 B/s. b moves 18 B in 2 s; a has 6 of 12 B left and takes it at
  // 12 B/s: 2.5 s.
  const Timeline t = run_text(R"(capacity 0 "link" 12
demand 1 through 0
demand 2 through 0 weight 3
op 0 "a" communication 0ps on 1 work 12
op 1 "b" communication 0ps on 2 work 18
)");
  CHECK(end(t, 1) == 2'000'000'000'000);
  CHECK(end(t, 0) == 2'500'000'000'000);
}

TEST_CASE("a higher priority takes all it can") {
  // 10 B/s: b (priority 1) runs alone for 2 s, then a.
  const Timeline t = run_text(R"(capacity 0 "link" 10
demand 1 through 0
demand 2 through 0 priority 1
op 0 "a" communication 0ps on 1 work 10
op 1 "b" communication 0ps on 2 work 20
)");
  CHECK(end(t, 1) == 2'000'000'000'000);
  CHECK(end(t, 0) == 3'000'000'000'000);
}

TEST_CASE("a rate cap leaves the rest to the others") {
  // 10 B/s, a capped at 2: b gets 8. b: 16 B in 2 s. a: 10 B in 5 s.
  const Timeline t = run_text(R"(capacity 0 "link" 10
demand 1 through 0 cap 2
demand 2 through 0
op 0 "a" communication 0ps on 1 work 10
op 1 "b" communication 0ps on 2 work 16
)");
  CHECK(end(t, 1) == 2'000'000'000'000);
  CHECK(end(t, 0) == 5'000'000'000'000);
}

TEST_CASE("max-min fairness over two links") {
  // Links of 10 and 4 B/s. x uses both, y the first, z the second. The second link limits x and z
  // to 2 each; y gets 10 - 2 = 8. Works chosen so that all end at 1 s.
  const Timeline t = run_text(R"(capacity 0 "wide" 10
capacity 1 "narrow" 4
demand 1 through 0 through 1
demand 2 through 0
demand 3 through 1
op 0 "x" communication 0ps on 1 work 2
op 1 "y" communication 0ps on 2 work 8
op 2 "z" communication 0ps on 3 work 2
)");
  for (int op = 0; op < 3; ++op) CHECK(end(t, op) == 1'000'000'000'000);
}

TEST_CASE("a capacity may change over time") {
  // 10 B/s for 1 s, then 5: 15 B take 1 + 1 s. At 2 s it stops; from 4 s on 5 B/s again.
  const std::string changes =
      "capacity 0 \"link\" 10 at 1000000000000ps 5 "
      "at 2000000000000ps 0 at 4000000000000ps 5\ndemand 1 through 0\n";
  CHECK(end(run_text(changes + "op 0 \"a\" communication 0ps on 1 work 15\n"), 0) ==
        2'000'000'000'000);
  CHECK(end(run_text(changes + "op 0 \"a\" communication 0ps on 1 work 20\n"), 0) ==
        5'000'000'000'000);
}

TEST_CASE("a transfer takes its latency and then its share, its server waits for both") {
  // Latency 1 s, 10 B at 10 B/s: ends at 2 s; the copy engine serves the second one then.
  const Timeline t = run_text(R"(server 0 "copy engine" slots 1 policy fifo turnaround 0ps
capacity 0 "pcie" 10
demand 1 server 0 through 0
op 0 "a" memory 1000000000000ps on 1 work 10
op 1 "b" memory 1000000000000ps on 1 work 10
)");
  CHECK(end(t, 0) == 2'000'000'000'000);
  CHECK(start(t, 1) == 2'000'000'000'000);
  CHECK(end(t, 1) == 4'000'000'000'000);
}

TEST_CASE("the error of a graph that never finishes names each op and what it waits for") {
  CHECK(error_text(R"(capacity 0 "dead link" 0
demand 1 through 0
op 0 "send" communication 0ps on 1 work 8
op 1 "use" compute 1ps after 0
)")
            .starts_with(
                "2 of 2 ops never end; op 0 'send' waits for capacity 'dead link', whose rate is "
                "zero; op 1 'use' waits for 1 of its predecessors"));
  // Op 1 holds the lease that op 0 waits for, and waits for op 0.
  const std::string held = error_text(R"(server 0 "gpu" slots 1 policy lease turnaround 0ps
demand 1 server 0 lease 1
demand 2 server 0 lease 2
op 0 "a" compute 1ps on 1
op 1 "b" compute 1ps on 2 after 0
op 2 "c" compute 1ps on 1 after 1
)");
  CHECK(held.starts_with("2 of 3 ops never end; op 1 'b' waits for server 'gpu', held by lease 1"));
}

TEST_CASE("durations beyond 64 bits are an error, not an overflow") {
  CHECK(error_text(R"(op 0 "a" compute 9000000000000000000ps
op 1 "b" compute 9000000000000000000ps after 0
)") == "the run lasts longer than 106 days of simulated time");
}

TEST_CASE("an empty graph ends at once") { CHECK(run_text("").makespan() == Picoseconds(0)); }

}  // namespace
}  // namespace rehearse::engine
