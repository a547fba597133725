#include <catch2/catch.hpp>

#include "models/comm/closed_form.h"
#include "sim/engine/engine.h"

namespace rehearse::comm {
namespace {

using Link = cluster::PointToPoint;

const Link kLink{Seconds::us(5), ByteRate::gb_per_s(10)};

TEST_CASE("collectives of 8 MB over 4 ranks, 5 us and 10 GB/s") {
  const auto us = [](CollectiveKind kind) { return ring_time(kind, 4, Bytes::mb(8), kLink).us(); };
  // A step moves 8 MB / 4: 5 us + 200 us.
  CHECK(us(CollectiveKind::kAllReduce) == Approx(6 * 205));
  CHECK(us(CollectiveKind::kReduceScatter) == Approx(3 * 205));
  CHECK(us(CollectiveKind::kAllGather) == Approx(3 * 205));
  CHECK(us(CollectiveKind::kAllToAll) == Approx(3 * 205));
  // Pipelined in eight chunks of 1 MB: three hops and seven more chunks.
  CHECK(us(CollectiveKind::kBroadcast) == Approx(10 * 105));
  CHECK(us(CollectiveKind::kReduce) == Approx(10 * 105));
  CHECK(us(CollectiveKind::kSendRecv) == Approx(5 + 800));
  CHECK(us(CollectiveKind::kBarrier) == Approx(6 * 5));
}

TEST_CASE("one rank alone needs no time") {
  for (std::size_t kind = 0; kind < kCollectiveNames.size(); ++kind)
    for (const std::uint32_t ranks : {0U, 1U})
      CHECK(ring_time(static_cast<CollectiveKind>(kind), ranks, Bytes::gb(1), kLink).s() == 0);
}

/// A ring all-reduce message by message: in each of 2 (n - 1) steps every rank sends a part to its
/// neighbour, when it has what it got in the step before and its link is free.
double simulated_all_reduce_us(int ranks, double bytes, const Link& link) {
  using namespace graph;
  GraphBuilder builder;
  const NameId name = builder.intern("send");
  std::vector<DemandId> demands;
  for (int r = 0; r < ranks; ++r)
    demands.push_back(builder.add(Demand{
        .server = builder.add(Server{.name = name}),
        .capacities = {builder.add(Capacity{.name = name, .rate = link.rate.bytes_per_s()})}}));
  const int steps = 2 * (ranks - 1);
  double sent = 0;
  for (int step = 0; step < steps; ++step)
    for (int r = 0; r < ranks; ++r) {
      const OpId op = builder.add(Op{.name = name,
                                     .category = Category::kCommunication,
                                     .duration = Picoseconds::from(link.latency),
                                     .demand = demands[static_cast<std::size_t>(r)],
                                     .work = bytes / ranks});
      sent += bytes / ranks;
      if (step > 0) builder.add_edge(OpId((step - 1) * ranks + (r + ranks - 1) % ranks), op);
    }
  // Each rank sends 2 (n - 1) / n of the buffer.
  CHECK(sent == Approx(bytes * 2 * (ranks - 1)));
  const Result<Graph> graph = std::move(builder).build();
  REQUIRE(graph);
  const Result<Timeline> timeline = engine::run(*graph);
  REQUIRE(timeline);
  Picoseconds end(0);
  for (const OpTimes& op : timeline->ops) end = std::max(end, op.end);
  return end.seconds().us();
}

TEST_CASE("the closed form of a ring equals the time of its messages") {
  for (const int ranks : {2, 3, 4, 7, 16})
    for (const double bytes : {1.0, 1e4, 8e6})
      CHECK(simulated_all_reduce_us(ranks, bytes, kLink) ==
            Approx(ring_time(CollectiveKind::kAllReduce, static_cast<std::uint32_t>(ranks),
                             Bytes::b(bytes), kLink)
                       .us())
                .epsilon(1e-6));
}

}  // namespace
}  // namespace rehearse::comm
