#include "strategies/data_parallel.h"

#include <catch2/catch.hpp>

#include "models/comm/closed_form.h"
#include "sim/engine/engine.h"

namespace rehearse::strategies {
namespace {

using namespace graph;

/// One thread: three ops of the backward pass of 10 us each, then the optimizer of 5 us.
Graph backward_pass() {
  GraphBuilder builder;
  const DemandId thread =
      builder.add(Demand{.server = builder.add(Server{.name = builder.intern("thread")})});
  const NameId name = builder.intern("op");
  for (const int us : {10, 10, 10, 5})
    builder.add(Op{.name = name,
                   .category = Category::kCompute,
                   .duration = Picoseconds::from(Seconds::us(us)),
                   .demand = thread});
  for (int i = 0; i < 3; ++i) builder.add_edge(OpId(i), OpId(i + 1));
  Result<Graph> graph = std::move(builder).build();
  REQUIRE(graph);
  return *graph;
}

const std::vector<GradientStep> kSteps = {
    {.gradients = {{OpId(0), Bytes::mb(20)}, {OpId(1), Bytes::mb(20)}, {OpId(2), Bytes::mb(5)}},
     .users = {OpId(3)}}};

// Two ranks: an all-reduce of S takes 2 (a + S / 2b) = 2 us + S / 2 TB/s.
const cluster::PointToPoint kLink{Seconds::us(1), ByteRate::gb_per_s(2000)};

Timeline run(const DataParallelPlan& plan, std::vector<double>& megabytes) {
  const Result<DataParallelGraph> planned = data_parallel(backward_pass(), kSteps, plan);
  REQUIRE(planned);
  for (const CollectiveOp& c : planned->collectives) {
    CHECK(c.kind == CollectiveKind::kAllReduce);
    CHECK(c.ranks == plan.ranks);
    megabytes.push_back(c.size.b() * 1e-6);
  }
  const Result<Graph> priced =
      comm::price(planned->graph, planned->collectives, comm::on_link(kLink));
  REQUIRE(priced);
  const Result<Timeline> timeline = engine::run(*priced);
  REQUIRE(timeline);
  return *timeline;
}

double end_us(const Timeline& timeline, int op) { return timeline[OpId(op)].end.seconds().us(); }

TEST_CASE("an all-reduce waits for the slowest rank's gradient") {
  std::vector<double> megabytes;
  const Timeline timeline =
      run({.ranks = 2, .lateness = {Seconds::us(3), Seconds::us(4), Seconds::us(7)}}, megabytes);
  // 40 MB in 22 us from 20 + 4, when the slower rank has both; 5 MB in 4.5 us, ready at 30 + 7.
  CHECK(end_us(timeline, 4) == Approx(46));
  CHECK(end_us(timeline, 6) == Approx(50.5));
  CHECK(end_us(timeline, 2) == Approx(30));
}

TEST_CASE("buckets are sent beside the backward pass, one behind the other") {
  // 20 MB are no bucket of 25 MiB yet, 40 MB are; the last holds the rest.
  std::vector<double> megabytes;
  const Timeline timeline = run({.ranks = 2}, megabytes);
  CHECK(megabytes == std::vector<double>{40, 5});
  CHECK(end_us(timeline, 2) == Approx(30));        // the backward pass waits for nothing
  CHECK(end_us(timeline, 4) == Approx(20 + 22));   // 40 MB from 20 us
  CHECK(end_us(timeline, 5) == Approx(42 + 4.5));  // 5 MB, when the first is through
  CHECK(end_us(timeline, 3) == Approx(46.5 + 5));  // the optimizer needs both
}

TEST_CASE("without overlap every gradient is summed before the next is computed") {
  std::vector<double> megabytes;
  const Timeline timeline = run({.ranks = 2, .overlap = false}, megabytes);
  CHECK(megabytes == std::vector<double>{20, 20, 5});
  // 10 + 12, 10 + 12, 10 + 4.5, 5
  CHECK(end_us(timeline, 3) == Approx(63.5));
}

TEST_CASE("a bucket of no size sends each gradient by itself") {
  std::vector<double> megabytes;
  const Timeline timeline = run({.ranks = 2, .bucket = Bytes::b(0)}, megabytes);
  CHECK(megabytes == std::vector<double>{20, 20, 5});
  // From 10: 12; from 22: 12; from 34: 4.5; then the optimizer.
  CHECK(end_us(timeline, 3) == Approx(43.5));
}

TEST_CASE("one rank computes what it computed before") {
  std::vector<double> megabytes;
  const Timeline timeline = run({.ranks = 1}, megabytes);
  CHECK(megabytes.empty());
  CHECK(timeline.ops.size() == 4);
  CHECK(end_us(timeline, 3) == Approx(35));
}

TEST_CASE("what is no data-parallel step is refused") {
  const auto error_of = [](const std::vector<GradientStep>& steps, const DataParallelPlan& plan) {
    const Result<DataParallelGraph> planned = data_parallel(backward_pass(), steps, plan);
    return planned ? "no error" : to_string(planned.error());
  };
  CHECK(error_of(kSteps, {.ranks = 0}) == "0 ranks; 1 or more");
  CHECK(error_of({}, {.ranks = 2}) == "there are no gradients to sum");
  // A gradient that is used before it is ready.
  const std::vector<GradientStep> backwards = {
      {.gradients = {{OpId(2), Bytes::mb(1)}}, .users = {OpId(0)}}};
  CHECK(error_of(backwards, {.ranks = 2}) != "no error");
}

}  // namespace
}  // namespace rehearse::strategies
