// Jobs from layouts, worked by hand.
#include "strategies/job_of_layout.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/job/lower.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "strategies/transforms.h"
#include "tests/support/layouts.h"

namespace rehearse::strategies {
namespace {

using program::Program;
using program::Task;
using test::collective_op;
using test::seconds_op;
using test::seconds_price;
using workload::Axis;
using workload::Issue;
using workload::Layer;
using workload::Layout;

constexpr double kUs = 1e-6;

// Every device has a port of 100 GB/s in each direction; 2 us from end to end.
cluster::Cluster star(std::uint32_t devices) {
  auto cluster = cluster::parse_cluster(
      fmt::format("cluster: {{device: h100_sxm5_80, devices_per_node: {}, nodes: 1, intra_node: "
                  "{{kind: nvswitch, rate: 100 GB/s, latency: 2 us}}}}\n",
                  devices),
      "star");
  REQUIRE(cluster);
  return *cluster;
}

Program job_from(const Layout& layout, const JobOptions& options = {},
                 const Prices& prices = seconds_price) {
  Result<Program> job = job_of(layout, prices, options);
  INFO((job ? "" : to_string(job.error())));
  REQUIRE(job);
  return std::move(*job);
}

double us(const Layout& layout, const JobOptions& options = {},
          job::Fidelity fidelity = job::Fidelity::kClosed, const Prices& prices = seconds_price) {
  const auto lowered = job::lower(job_from(layout, options, prices), star(layout.ranks() + 1),
                                  {.fidelity = fidelity});
  INFO((lowered ? "" : to_string(lowered.error())));
  REQUIRE(lowered);
  const auto timeline = engine::run(lowered->graph);
  INFO((timeline ? "" : to_string(timeline.error())));
  REQUIRE(timeline);
  return timeline->makespan().seconds().us();
}

// Among two ranks of the star: 2 (2 + 20) = 44 us, and 2 + 20 = 22 us.
workload::Op all_reduce(Issue issue) {
  return collective_op(CollectiveKind::kAllReduce, Axis::kData, Bytes::mb(4), issue);
}
workload::Op all_gather(Issue issue) {
  return collective_op(CollectiveKind::kAllGather, Axis::kData, Bytes::mb(4), issue);
}
workload::Op work(double us) { return seconds_op(us * kUs); }

Layout two_ranks(const Layer& layer, std::uint32_t microbatches = 1, std::uint32_t layers = 2) {
  return test::layout_of({.degrees = {.data = 2}, .layers = layers, .microbatches = microbatches},
                         layer);
}

TEST_CASE("runs of computing are one op") {
  const Layer layer{.name = "a", .forward = {work(10), work(20)}, .backward = {work(50)}};
  const Program job = job_from(two_ranks(layer, 2));
  REQUIRE(job.programs.size() == 1);
  // Nothing communicates: all that a step does.
  CHECK(job.programs[0].ops.size() == 1);
  CHECK(us(two_ranks(layer, 2)) == Approx(2 * (2 * 30 + 2 * 50)));
}

TEST_CASE("inline: the next op waits") {
  const Layer layer{
      .name = "a", .forward = {work(30), all_reduce(Issue::kInline)}, .backward = {work(50)}};
  CHECK(us(two_ranks(layer)) == Approx(2 * (30 + 44) + 100));
  // An axis of one rank has nothing to communicate.
  CHECK(us(test::layout_of({.layers = 2, .microbatches = 1}, layer)) == Approx(160));
}

TEST_CASE("overlap next: one op runs meanwhile") {
  // The sum from 30 to 74; 20 during it, 5 after both.
  const Layer layer{.name = "a",
                    .forward = {work(30), all_reduce(Issue::kOverlapNext), work(20), work(5)},
                    .backward = {}};
  CHECK(us(two_ranks(layer, 1, 1)) == Approx(79));
  // At the end of a layer, the first op of the next one.
  const Layer ends{.name = "a",
                   .forward = {work(30), work(7), all_reduce(Issue::kOverlapNext)},
                   .backward = {work(5)}};
  // 37; sum to 81 during 30 to 67; 7 from 81 to 88; its sum to 132, and the pass is over.
  CHECK(us(two_ranks(ends)) == Approx(132 + 10));
}

TEST_CASE("prefetched: during the previous layer") {
  const auto layer = [](double us) {
    return Layer{
        .name = "a", .forward = {all_gather(Issue::kPrefetched), work(us)}, .backward = {}};
  };
  CHECK(us(two_ranks(layer(30))) == Approx(22 + 30 + 30));  // the second one hides
  CHECK(us(two_ranks(layer(10))) == Approx(22 + 22 + 10));  // computing hides
}

TEST_CASE("FSDP: a layer takes the longer of computing and communicating") {
  // Backward of four layers, each: gather 22 before, computing, scatter 22 after it, on one stream.
  const auto layer = [](double us) {
    return Layer{.name = "a",
                 .forward = {},
                 .backward = {all_gather(Issue::kPrefetched), work(us),
                              collective_op(CollectiveKind::kReduceScatter, Axis::kData,
                                            Bytes::mb(4), Issue::kDeferred)}};
  };
  CHECK(us(two_ranks(layer(100), 1, 4)) == Approx(22 + 4 * 100 + 22));
  // gather 0-22, gather 22-44, [compute 22-32] scatter 44-66, [compute 44-54] gather …
  CHECK(us(two_ranks(layer(10), 1, 4)) == Approx(8 * 22));
}

// An exchange of S takes 2 + S / 2 / 100 GB/s: 42 us of 8 MB, 22 of 4, 12 of 2.
TEST_CASE("parts of an exchange: turn by turn, the longer of sending and computing") {
  workload::Op experts = work(60);
  experts.kind = workload::OpKind::kGemm;
  experts.expert = true;
  experts.samples = workload::Extent::kBytes;
  const workload::Op exchange =
      collective_op(CollectiveKind::kAllToAll, Axis::kExpert, Bytes::mb(8));
  workload::Workload whole{.name = "mixture"};
  whole.layers.push_back({.name = "a", .forward = {exchange, experts, exchange}});
  const auto in_parts = [&](std::uint32_t parts) {
    const Training training;
    const Plan plan{.exchange_parts = parts};
    const auto w = exchanges_in_parts(
        whole,
        {.training = &training, .plan = &plan, .degrees = {}, .recompute = {}, .microbatch = 1});
    REQUIRE(w);
    const Layout layout = test::layout_of(
        {.degrees = {.data = 2, .expert = 2}, .layers = 1, .microbatches = 1}, w->layers[0]);
    return us(layout);
  };
  CHECK(in_parts(1) == Approx(42 + 60 + 42));
  CHECK(in_parts(2) == Approx(22 + 30 + 30 + 22));
  CHECK(in_parts(4) == Approx(12 + 15 + 2 * (12 + 12) + 15 + 12));
}

TEST_CASE("deferred: only the optimizer waits") {
  const Layer layer{
      .name = "a", .forward = {work(30)}, .backward = {work(50), all_reduce(Issue::kDeferred)}};
  // 60, 110 and its sum to 154, 160 and its sum to 204.
  CHECK(us(two_ranks(layer)) == Approx(204));
}

TEST_CASE("the step: deferred sums during the last backward, others after all of it") {
  Layer layer{.name = "a", .forward = {work(30)}, .backward = {work(50)}};
  layer.step = {all_reduce(Issue::kDeferred), work(10)};
  // Two microbatches of 160: sums from 270 to 314 and 320 to 364; then 2 · 10.
  CHECK(us(two_ranks(layer, 2)) == Approx(384));
  CHECK(us(two_ranks(layer, 2), {.fixed = Seconds::us(100)}) == Approx(484));
  layer.step = {all_reduce(Issue::kInline), work(10)};
  CHECK(us(two_ranks(layer, 2)) == Approx(320 + 2 * 54));
}

TEST_CASE("a phase takes at least as long as the host needs for its kernels") {
  Layer layer{.name = "a", .forward = {work(10), work(5)}, .backward = {work(50)}};
  CHECK(us(two_ranks(layer, 1, 1), {.host_per_kernel = Seconds::us(8)}) == Approx(16 + 50));
  layer.forward[0].kernels = 9;
  CHECK(us(two_ranks(layer, 1, 1), {.host_per_kernel = Seconds::us(8)}) == Approx(80 + 50));
}

TEST_CASE("every op has the purpose of its time, and each op of a layer is priced once") {
  const Layer layer{.name = "a",
                    .forward = {work(10), work(30)},
                    .backward = {work(50), all_reduce(Issue::kInline)}};
  int asked = 0;
  const auto price = [&](const workload::Op& op) {
    ++asked;
    const Seconds time = seconds_price(op);
    return OpTime{{time, time * 0.5, time * 2, Provenance::kInterpolated}, Seconds::us(2)};
  };
  const Program job = job_from(two_ranks(layer, 4), {.fixed = Seconds::us(7)},
                               Prices(std::vector<KindPrice>{{price}}, {}));
  CHECK(asked == 3);
  std::size_t computing = 0, launches = 0;
  for (const program::ProgramOp& op : job.programs[0].ops) {
    REQUIRE(op.origin != program::kPlainOrigin);
    const program::Origin& origin = job.origins[op.origin];
    REQUIRE(!origin.empty());
    const std::string_view part = job.names[origin.front().part];
    if (op.task == Task::kCollective) CHECK(part == "data-parallel all_reduce");
    if (op.task == Task::kHost) CHECK(part == "once a step");
    if (op.task != Task::kCompute) continue;
    ++computing;
    double weight = 0;  // seconds
    for (const program::Share& share : origin) {
      weight += share.weight;
      if (share.kind == program::PartKind::kLaunch) {
        ++launches;
        continue;
      }
      CHECK(share.kind == program::PartKind::kCompute);
      CHECK(share.provenance == Provenance::kInterpolated);
      CHECK(share.interval->low == Approx(0.5));
      CHECK(share.interval->high == Approx(2));
    }
    CHECK(weight == Approx(op.duration->seconds().s()));
  }
  CHECK(computing > 0);
  CHECK(launches == computing);
}

TEST_CASE("copies go over the link to the host") {
  workload::Op copy{.name = "offload", .kind = workload::OpKind::kCopy, .bytes = Bytes::mb(1)};
  const Layer layer{.name = "a", .forward = {work(10), copy}, .backward = {}};
  CHECK(us(two_ranks(layer, 1, 1), {}, job::Fidelity::kClosed,
           {seconds_price, ByteRate::gb_per_s(25)}) == Approx(50));
  const auto job = job_of(two_ranks(layer), seconds_price, {});
  REQUIRE_FALSE(job);
  CHECK(to_string(job.error()) ==
        "'offload' copies between device and host; the rate of the link to the host");
}

TEST_CASE("a pipeline: every microbatch passes every stage, with a bubble of one stage less") {
  Layer layer{.name = "a", .forward = {work(1000)}, .backward = {work(2000)}};
  // m + p - 1 times a stage's 2 layers · 3 ms. A crossing adds 2 us: p - 1 of them each way before
  // and after, and per further microbatch of a pipeline that is filled, one back and forth.
  for (const bool gpipe : {true, false}) {
    const double step =
        us(test::layout_of({.stages = 4, .layers = 2, .microbatches = 8, .gpipe = gpipe}, layer));
    CHECK(step >= 11 * 6000 + 12);
    CHECK(step <= 11 * 6000 + 12 + 8 * 4);
  }
  // Interleaved: the bubble is that of a chunk. Transfers hide where a chunk waits for none.
  const double step =
      us(test::layout_of({.stages = 2, .chunks = 2, .layers = 1, .microbatches = 4}, layer));
  CHECK(step >= 4 * 2 * 3000 + 3000);
  CHECK(step <= 4 * 2 * 3000 + 3000 + 8 * 2 * 2);
}

TEST_CASE("weight gradients as a separate pass delay no other stage") {
  Layer layer{.name = "a", .forward = {work(1000)}, .backward = {work(1000), work(1000)}};
  layer.backward[1].weight_gradient = true;
  Layout layout =
      test::layout_of({.stages = 2, .layers = 1, .microbatches = 2, .split = true}, layer);
  // Stage 0: F F . B W B W; stage 1: . F B W F B W. B of 1 begins at 2: stage 0 has it at 3 … 4.
  // Stage 1: F 1-2, B 2-3, W 3-4, F 4-5, B 5-6, W 6-7. Stage 0: B 6-7, W 7-8.
  const double step = us(layout);
  CHECK(step >= 8000 + 4);
  CHECK(step <= 8000 + 10);
}

TEST_CASE("the output of a stage") {
  Layer layer{.name = "a", .forward = {work(10)}, .backward = {work(20)}};
  layer.output = Bytes::mb(4);
  Layout layout = test::layout_of(
      {.stages = 2, .degrees = {.tensor = 2}, .layers = 1, .microbatches = 1}, layer);
  // 10, 4 MB in 42 us, 10 + 20, back, 20.
  for (const job::Fidelity fidelity : {job::Fidelity::kClosed, job::Fidelity::kMessage})
    CHECK(us(layout, {}, fidelity) == Approx(10 + 42 + 30 + 42 + 20));
  // A matrix that both ends hold: 2 MB each way in 22 us, once the first stage has its gradient.
  layout.tied_gradient = Bytes::mb(2);
  CHECK(us(layout) == Approx(144 + 22));
  // The last stage has its own at 82 already, and sends it while the 4 MB go back: these take
  // 20 us longer.
  CHECK(us(layout, {}, job::Fidelity::kMessage) == Approx(144 + 20 + 22));
}

TEST_CASE("a wider stage: each of its ranks has a share of a rank of the other") {
  Layer layer{.name = "a", .forward = {work(10)}, .backward = {work(20)}};
  layer.output = Bytes::mb(4);
  Layout layout =
      test::layout_of({.stages = 2, .degrees = {.data = 2}, .layers = 1, .microbatches = 1}, layer);
  layout.stages[1].degrees.data = 1;
  const Program job = job_from(layout);
  REQUIRE(job.ranks() == 3);
  CHECK(job.peers_of[0] == std::vector<RankId>{RankId(2)});
  CHECK(job.peers_of[2] == std::vector<RankId>{RankId(0), RankId(1)});
  // Rank 2 gets 4 MB from each: its port has 8 MB to take, and to send.
  for (const job::Fidelity fidelity : {job::Fidelity::kClosed, job::Fidelity::kMessage})
    CHECK(us(layout, {}, fidelity) == Approx(10 + 82 + 30 + 82 + 20));
  // The other way round: halves to each of two.
  layout.stages[0].degrees.data = 1;
  layout.stages[1].degrees.data = 2;
  layout.stages[1].first_rank = 1;
  for (const job::Fidelity fidelity : {job::Fidelity::kClosed, job::Fidelity::kMessage})
    CHECK(us(layout, {}, fidelity) == Approx(10 + 42 + 30 + 42 + 20));
  // Two tensor ranks with a part of 4 MB each send theirs to the one, which gives both theirs back.
  layout.stages[0].degrees = {.tensor = 2};
  layout.stages[1].degrees = {};
  layout.stages[1].first_rank = 2;
  CHECK(us(layout) == Approx(10 + 82 + 30 + 82 + 20));
  layout.stages[0].degrees.data = 3;
  layout.stages[1].degrees.data = 2;
  const auto wrong = job_of(layout, seconds_price, {});
  REQUIRE_FALSE(wrong);
  CHECK(to_string(wrong.error()) ==
        "the degrees of stage 0 and stage 1 do not divide each other; data, context and tensor "
        "degrees that divide each other");
}

Layout with_server(std::optional<std::uint32_t> staleness, std::uint32_t backup_workers) {
  Layer layer{.name = "a", .forward = {work(30)}, .backward = {work(50)}};
  layer.step = {
      collective_op(CollectiveKind::kReduce, Axis::kData, Bytes::mb(4), Issue::kDeferred),
      collective_op(CollectiveKind::kBroadcast, Axis::kData, Bytes::mb(4), Issue::kDeferred)};
  Layout layout = two_ranks(layer, 1, 1);
  layout.servers = workload::Servers{.count = 1,
                                     .first_rank = 2,
                                     .staleness = staleness,
                                     .backup_workers = backup_workers,
                                     .parameters = 1e6,
                                     .states = {0, 0, 0},
                                     .update = work(10),
                                     .updates_per_step = 1};
  return layout;
}

TEST_CASE("a parameter server: pushes, one update, answers") {
  // The 4 MB of both workers share the server's port: 82 us.
  const Layout layout = with_server(0, 0);
  CHECK(us(layout) == Approx(80 + 82 + 10 + 82));
  CHECK(us(layout, {}, job::Fidelity::kMessage) == Approx(80 + 82 + 10 + 82));
  CHECK(us(layout, {.steps = 3}) == Approx(3 * 254));
  // One worker and the server for all.
  const Program job = job_from(layout);
  for (const job::Fidelity fidelity : {job::Fidelity::kClosed, job::Fidelity::kMessage}) {
    const auto folded = job::fold(job, star(3), {.fidelity = fidelity},
                                  [](const graph::Graph& graph) { return engine::run(graph); });
    REQUIRE(folded);
    REQUIRE(*folded);
    CHECK((*folded)->ranks == std::vector<RankId>{RankId(0), RankId(2)});
    CHECK(engine::run((*folded)->graph)->makespan().seconds().us() ==
          Approx(us(layout, {}, fidelity)));
  }
}

TEST_CASE("a parameter server: workers that do not wait, bounded staleness, backup workers") {
  // Updates one after the other, 162 to 172 and 182; answers, which go one by one, at 214 and 224.
  // The second step of the later worker: 304, pushed at 386 as if both did, updated at 396,
  // answered at 438.
  CHECK(us(with_server({}, 0)) == Approx(224));
  CHECK(us(with_server({}, 0), {.steps = 2}) == Approx(438));
  CHECK(us(with_server(1, 0), {.steps = 2}) == Approx(438));
  const Program job = job_from(with_server(0, 1));
  const auto& ops = job.programs.back().ops;
  const auto mark =
      std::find_if(ops.begin(), ops.end(), [](const auto& op) { return op.task == Task::kMark; });
  REQUIRE(mark != ops.end());
  CHECK(mark->need == 1);
  CHECK(us(with_server(0, 1)) == Approx(254));
}

TEST_CASE("groups: tensor runs fastest, then context, then data, experts on consecutive ranks") {
  const auto on = [](Axis axis, bool expert) {
    workload::Op op = collective_op(CollectiveKind::kAllReduce, axis, Bytes::mb(1));
    op.expert = expert;
    return op;
  };
  const Layer layer{
      .name = "a",
      .forward = {on(Axis::kTensor, false), on(Axis::kContext, false), on(Axis::kExpert, false),
                  on(Axis::kData, false), on(Axis::kData, true)},
      .backward = {}};
  const Program job = job_from(test::layout_of(
      {.degrees = {.data = 4, .tensor = 2, .context = 2, .expert = 2}, .microbatches = 1}, layer));
  const auto members = [&](std::uint32_t rank, std::uint32_t local) {
    std::vector<std::uint32_t> ranks;
    for (const RankId r : job.groups[job.groups_of[rank][local]].members)
      ranks.push_back(r.index());
    return ranks;
  };
  using Ranks = std::vector<std::uint32_t>;
  // Rank 13 = (3 · 2 + 0) · 2 + 1: tensor 1, context 0, data 3.
  CHECK(members(13, 0) == Ranks{12, 13});
  CHECK(members(13, 1) == Ranks{13, 15});
  CHECK(members(13, 2) == Ranks{9, 13});
  CHECK(members(13, 3) == Ranks{1, 3, 5, 7, 9, 11, 13, 15});
  CHECK(members(13, 4) == Ranks{5, 7, 13, 15});
  CHECK(job.groups.size() == 8 + 8 + 8 + 2 + 4);
}

TEST_CASE("an incomplete order is refused") {
  const Layer layer{.name = "a", .forward = {work(1)}, .backward = {work(1)}};
  Layout layout = two_ranks(layer, 2);
  layout.stages[0].order.pop_back();
  const auto job = job_of(layout, seconds_price, {});
  REQUIRE_FALSE(job);
  CHECK(to_string(job.error()) ==
        "the order of stage 0 does not have every pass of 2 microbatches through each of its 1 "
        "chunks once");
}

}  // namespace
}  // namespace rehearse::strategies
