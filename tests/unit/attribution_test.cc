// Where the time of a run goes: what occupies a rank, and what decides the length.
#include "sim/program/attribution.h"

#include <catch2/catch.hpp>

#include "sim/engine/engine.h"

namespace rehearse::program {
namespace {

using graph::Category;

/// A run by hand: ops with the rank that they are of, if any.
class HandMade : public RunOps {
 public:
  OpId add(const char* name, Category category, int us, std::optional<std::uint32_t> rank,
           const std::vector<OpId>& after, bool computes = false) {
    const OpId op =
        builder_.add({builder_.intern(name), category, Picoseconds::from(Seconds::us(us))});
    for (const OpId before : after) builder_.add_edge(before, op);
    rank_.push_back(rank);
    computes_.push_back(computes);
    return op;
  }
  void run() {
    Result<graph::Graph> graph = std::move(builder_).build();
    REQUIRE(graph);
    graph_ = std::move(*graph);
    Result<graph::Timeline> timeline = engine::run(graph_);
    REQUIRE(timeline);
    timeline_ = std::move(*timeline);
  }
  const graph::Graph& graph() const { return graph_; }
  const graph::Timeline& timeline() const { return timeline_; }

  std::uint32_t ranks() const override { return 2; }
  std::vector<OpId> of_rank(std::uint32_t rank) const override {
    std::vector<OpId> ops;
    for (std::size_t i = 0; i < rank_.size(); ++i)
      if (rank_[i] == rank) ops.emplace_back(i);
    return ops;
  }
  std::optional<std::uint32_t> rank(OpId op) const override { return rank_[op.index()]; }
  bool on_device(OpId op) const override {
    const Category category = graph_.category(op);
    return category == Category::kCompute || category == Category::kCommunication ||
           category == Category::kMemory;
  }
  std::optional<OpId> cause(OpId op) const override { return timeline_[op].cause; }
  std::vector<PathShare> shares(OpId op) const override {
    return {{.kind = on_device(op) ? PartKind::kCompute : PartKind::kHost,
             .part = std::string(to_string(graph_.category(op))),
             .op = std::string(graph_.name(op))}};
  }
  std::optional<Picoseconds> alone(OpId op) const override {
    if (!computes_[op.index()]) return std::nullopt;
    return graph_.duration(op);
  }

 private:
  graph::GraphBuilder builder_;
  graph::Graph graph_;
  graph::Timeline timeline_;
  std::vector<std::optional<std::uint32_t>> rank_;
  std::vector<bool> computes_;
};

TEST_CASE("occupancy and critical path are two answers") {
  // Rank 0: prepare 0-10, gemm 10-30, then all_reduce 30-45 with relu 30-40, load 45-52,
  // norm 52-57. The path leaves relu out, the occupancy hides all but 5 us of the all_reduce.
  HandMade ops;
  const OpId prepare = ops.add("prepare", Category::kHost, 10, 0, {});
  const OpId gemm = ops.add("gemm", Category::kCompute, 20, 0, {prepare});
  const OpId sum = ops.add("all_reduce", Category::kCommunication, 15, 0, {gemm});
  ops.add("relu", Category::kCompute, 10, 0, {gemm});
  const OpId load = ops.add("load", Category::kInput, 7, 0, {sum});
  ops.add("norm", Category::kCompute, 5, 0, {load});
  ops.run();
  const Occupancy rank = Occupancies(ops.graph(), ops.timeline(), ops).of_run(0);
  CHECK(rank.total.us() == Approx(57));
  CHECK(rank.compute.us() == Approx(20 + 10 + 5));
  CHECK(rank.exposed_communication.us() == Approx(15 - 10));
  CHECK(rank.input.us() == Approx(7));
  CHECK(rank.host.us() == Approx(10));
  CHECK(rank.idle == Seconds::s(0));
  const PathTimes path = path_times(ops.graph(), graph::critical_path(ops.timeline()));
  const auto on_path = [&](Category category) {
    return path.by_category[static_cast<std::size_t>(category)].us();
  };
  CHECK(on_path(Category::kCompute) == Approx(20 + 5));
  CHECK(on_path(Category::kCommunication) == Approx(15));
  CHECK(on_path(Category::kHost) == Approx(10));
  CHECK(path.by_name.front().name == "gemm");
}

TEST_CASE(
    "a device that idles for another rank waits for its messages, or in a bubble for its work") {
  // Rank 1 computes 0-50 and its message comes at 60; rank 0 computes 0-20 and 60-65.
  HandMade ops;
  const OpId own = ops.add("first", Category::kCompute, 20, 0, {});
  const OpId other = ops.add("stage", Category::kCompute, 50, 1, {}, true);
  const OpId message = ops.add("message", Category::kCommunication, 10, std::nullopt, {other});
  ops.add("second", Category::kCompute, 5, 0, {own, message}, true);
  ops.run();
  const Occupancies occupancies(ops.graph(), ops.timeline(), ops);
  const Occupancy rank = occupancies.of_run(0);
  CHECK(rank.compute.us() == Approx(25));
  CHECK(rank.bubble.us() == Approx(30));
  CHECK(rank.exposed_communication.us() == Approx(10));
  // Rank 1 waits for the message and for the end of rank 0.
  CHECK(occupancies.of_run(1).exposed_communication.us() == Approx(10));
  CHECK(occupancies.of_run(1).bubble.us() == Approx(5));
  // On the path rank 1 computes for 50 us, while rank 0 does nothing that counts as computing:
  // a bubble. The message and the last op are no bubble.
  const PathParts path = path_parts(graph::critical_path(ops.timeline()), ops.timeline(), ops);
  CHECK(path.total() == ops.timeline().makespan());
  CHECK(path.ends_on == 0);
  CHECK(path.ranks == 2);
  Seconds bubble = Seconds::s(0);
  for (const PathPart& part : path.parts)
    if (part.kind == PartKind::kBubble) bubble += part.time.seconds();
  CHECK(bubble.us() == Approx(50));
}

TEST_CASE("a rank is idle after the last op of its window") {
  HandMade ops;
  const OpId gemm = ops.add("gemm", Category::kCompute, 20, 0, {});
  const OpId log = ops.add("log", Category::kHost, 10, 0, {gemm});
  ops.run();
  const Occupancy rank =
      Occupancies(ops.graph(), ops.timeline(), ops)
          .within(0, {Picoseconds::from(Seconds::us(5)), Picoseconds::from(Seconds::us(42)), log});
  CHECK(rank.total.us() == Approx(37));
  CHECK(rank.compute.us() == Approx(15));
  CHECK(rank.host.us() == Approx(10));
  CHECK(rank.idle.us() == Approx(12));
}

}  // namespace
}  // namespace rehearse::program
