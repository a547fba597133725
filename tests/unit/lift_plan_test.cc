// The plan that ranks were recorded under, and the whole model that they divided.
#include "models/workload/lift_plan.h"

#include <catch2/catch.hpp>

#include "models/workload/lift.h"
#include "tests/support/recorded_ranks.h"

namespace rehearse::workload {
namespace {

using test::RecordedJob;
using test::RecordedRanks;
using trace::Trace;

Trace recorded_job(const RecordedJob& job, std::initializer_list<std::uint32_t> ranks) {
  Trace trace;
  RecordedRanks all(trace, job);
  for (const std::uint32_t rank : ranks) all.add(rank);
  return trace;
}

Lifted joined(const Trace& trace) {
  Result<Lifted> result = lift(trace, {});
  INFO((result ? "" : to_string(result.error())));
  REQUIRE(result);
  return std::move(*result);
}

std::string refusal(const Trace& trace) {
  const Lifted l = joined(trace);
  REQUIRE_FALSE(l.plan);
  return to_string(l.plan.error());
}

double total_us(const Workload& workload) {
  double sum = 0;
  for (const Layer& layer : workload.layers)
    for (const auto* ops : {&layer.forward, &layer.backward, &layer.step})
      for (const Op& op : *ops) sum += op.measured->value.us();
  return sum;
}

TEST_CASE("one undivided rank is the case of a plan of one rank") {
  const Lifted l = joined(recorded_job({}, {0}));
  REQUIRE(l.plan);
  CHECK(l.plan->ranks() == 1);
  CHECK(l.plan->degrees.empty());
  CHECK(l.workload.parameters() == 4 * 2 * 256 * 1024);
  for (const Layer& layer : l.workload.layers)
    for (const Op& op : layer.forward) CHECK_FALSE(differs_from_measured(op));
}

TEST_CASE("tensor parallelism is found by sums of the outputs of row-divided linears") {
  const Lifted l = joined(recorded_job({.tensor = 4}, {0, 1}));
  REQUIRE(l.plan);
  CHECK(l.plan->tensor == 4);
  CHECK(l.plan->ranks() == 4);
  REQUIRE(l.plan->degrees.size() == 1);
  CHECK(l.plan->degrees[0].evidence ==
        "4 all-reduces of 512 KiB in a forward pass among ranks 0-3, for 4 linears divided by "
        "inputs");
  CHECK(l.notes.back() ==
        "2 of 4 ranks given: the others are assumed to work like the given ones of their stage");
  // The whole model, with the times of the shards.
  CHECK(l.workload.parameters() == 4 * 2 * 256 * 1024);
  const Workload one = joined(recorded_job({}, {0})).workload;
  REQUIRE(l.workload.layers.size() == one.layers.size());
  for (std::size_t i = 0; i < one.layers.size(); ++i) {
    CHECK(l.workload.layers[i].saved_bytes() == one.layers[i].saved_bytes());
    CHECK(l.workload.layers[i].output == one.layers[i].output);
    for (const auto phase : {&Layer::forward, &Layer::backward}) {
      const auto &whole = l.workload.layers[i].*phase, &expected = one.layers[i].*phase;
      REQUIRE(whole.size() == expected.size());
      for (std::size_t k = 0; k < whole.size(); ++k) {
        CHECK(whole[k].kind == expected[k].kind);
        CHECK(whole[k].m == expected[k].m);
        CHECK(whole[k].n == expected[k].n);
        CHECK(whole[k].k == expected[k].k);
        CHECK(whole[k].bytes == expected[k].bytes);
        CHECK(differs_from_measured(whole[k]) == (whole[k].tensor != Extent::kNone));
        CHECK(whole[k].measured->value == expected[k].measured->value);
        CHECK(whole[k].measured->provenance == Provenance::kRecorded);
      }
    }
  }
}

TEST_CASE("a vocabulary that tensor ranks divide is joined") {
  // Each of two ranks has 1500 of 3000 words. Rows are summed after the lookup, and the gradient of
  // the head's inputs in backward.
  const RecordedJob job{.tensor = 2, .vocabulary = 3000};
  const Lifted l = joined(recorded_job(job, {0, 1}));
  REQUIRE(l.plan);
  CHECK(l.plan->tensor == 2);
  CHECK(l.plan->degrees[0].evidence ==
        "5 all-reduces of 512 KiB in a forward pass among ranks 0, 1, for 4 linears divided by "
        "inputs and 1 table divided by rows");
  CHECK(l.workload.parameters() == 4 * 2 * 256 * 1024 + 2 * 3000 * 256);
  const Op& lookup = l.workload.layers.front().forward.front();
  CHECK(lookup.kind == OpKind::kGather);
  CHECK(lookup.tensor == Extent::kK);
  CHECK(lookup.k == 3000);
  CHECK(as_measured(lookup).k == 1500);
  const Layer& head = l.workload.layers.back();
  REQUIRE(head.forward.size() == 2);
  CHECK(head.forward[0].tensor == Extent::kN);
  CHECK(head.forward[0].n == 3000);
  CHECK(head.forward[1].kind == OpKind::kSoftmax);
  CHECK(head.forward[1].bytes == Bytes::b(2. * 4 * 8 * 64 * 3000));
  CHECK(as_measured(head.forward[1]).bytes == head.forward[1].bytes / 2);
  REQUIRE(head.backward.size() == 3);
  CHECK(head.backward[1].tensor == Extent::kK);  // the gradient of the inputs
  CHECK(head.backward[2].tensor == Extent::kM);  // of the weights
  // One rank alone divides nothing, and its vocabulary stays whole.
  const Lifted whole = joined(recorded_job({.vocabulary = 3000}, {0}));
  CHECK(whole.workload.parameters() == l.workload.parameters());
  CHECK(whole.workload.layers.front().forward.front().tensor == Extent::kNone);
  CHECK(whole.workload.layers.back().forward.front().tensor == Extent::kNone);
}

TEST_CASE("data parallelism is found by sums of gradients, and leaves work as it is") {
  const RecordedJob job{.tensor = 2, .data = 2};
  const Lifted l = joined(recorded_job(job, {0, 1, 2, 3}));
  REQUIRE(l.plan);
  CHECK(l.plan->tensor == 2);
  CHECK(l.plan->data == 2);
  CHECK(l.plan->zero == 0);
  REQUIRE(l.plan->degrees.size() == 2);
  CHECK(l.plan->degrees[1].evidence == "1 all-reduce of gradients, 4.00 MiB, among ranks 0, 2");
  CHECK(total_us(l.workload) == Approx(total_us(joined(recorded_job(job, {0})).workload)));
}

TEST_CASE("stages of a pipeline follow one another") {
  const RecordedJob job{.tensor = 2, .pipeline = 2, .microbatches = 3};
  const Lifted l = joined(recorded_job(job, {0, 1, 2, 3}));
  REQUIRE(l.plan);
  CHECK(l.plan->pipeline == 2);
  CHECK(l.plan->degrees.back().evidence ==
        "6 messages between stages; 4 ranks ÷ (tensor 2 × data 1)");
  CHECK(l.microbatches == 3);
  CHECK(l.workload.layers.size() == 8);
  CHECK(l.workload.layers[4].name == "linear 1 of stage 1");
  CHECK(l.workload.parameters() == 4 * 2 * 256 * 1024);
  // A stage without a recording cannot be known.
  CHECK(refusal(recorded_job(job, {0, 1}))
            .starts_with(
                "rank0.json: is of a job of 2 pipeline stages: only ranks of 1 stage are given"));
}

TEST_CASE("recordings of two jobs are not joined") {
  Trace trace;
  RecordedRanks(trace, {.tensor = 2}).add(0);
  RecordedRanks(trace, {.tensor = 4}).add(1);
  CHECK(
      refusal(trace).starts_with("rank1.json: is not of the same job as rank0.json: 2 and 4 "
                                 "ranks"));
  CHECK(refusal(recorded_job({.tensor = 2}, {0, 0}))
            .starts_with("rank0.json: is not of the same job as rank0.json: both are rank 0"));
}

TEST_CASE("ranks with different numbers of steps are joined, and it is said") {
  Trace trace;
  RecordedRanks ranks(trace, {.tensor = 2});
  ranks.add(0, 3);
  ranks.add(1, 2);
  const Lifted l = joined(trace);
  CHECK(l.plan);
  CHECK(l.notes.back() ==
        "2 whole steps in rank1.json and 3 in rank0.json: each rank counts by its step of median "
        "device time");
}

/// One rank of a job that exchanges next to attention or to experts, and sums 1 MiB of gradients
/// among ranks from 0 on.
lifting::RankTraffic rank_with(lifting::Exchanges lifting::GroupTraffic::*where,
                               CollectiveKind kind, std::uint32_t among, std::uint32_t sums) {
  const auto group = [](std::uint32_t size) {
    lifting::GroupTraffic found{
        .name = "", .members = {}, .size = size, .exchanges = {}, .attention = {}, .experts = {}};
    for (std::uint32_t member = 0; member < size; ++member) found.members.push_back(member);
    return found;
  };
  lifting::GroupTraffic exchanging = group(among), summing = group(sums);
  (exchanging.*where)[{lifting::Phase::kForward, kind}] = {
      .count = 8, .bytes = 8 * 65536., .largest = 65536, .sized = 8};
  summing.exchanges[{lifting::Phase::kBackward, CollectiveKind::kAllReduce}] = {
      .count = 1, .bytes = 1048576, .largest = 1048576, .sized = 1};
  return {.source = "rank0.json",
          .rank = 0,
          .world = sums,
          .microbatches = 2,
          .groups = {std::move(exchanging), std::move(summing)}};
}

TEST_CASE("context parallelism is found by exchanges next to attention") {
  using lifting::GroupTraffic;
  const auto found =
      lifting::find_plan({rank_with(&GroupTraffic::attention, CollectiveKind::kAllToAll, 2, 4)});
  REQUIRE(found);
  CHECK(found->plan.context == 2);
  CHECK(found->plan.context_by_heads);
  CHECK(found->plan.data == 2);
  CHECK(found->plan.ranks() == 4);
  REQUIRE(found->plan.degrees.size() == 2);
  CHECK(found->plan.degrees[0].evidence ==
        "4 all-to-alls of 64.0 KiB in a forward pass next to attention, among ranks 0, 1");
  CHECK(found->plan.degrees[1].evidence ==
        "1 all-reduce of gradients, 1.00 MiB, among ranks 0-3, ÷ context 2");
  const auto gathered =
      lifting::find_plan({rank_with(&GroupTraffic::attention, CollectiveKind::kAllGather, 4, 4)});
  REQUIRE(gathered);
  CHECK(gathered->plan.context == 4);
  CHECK_FALSE(gathered->plan.context_by_heads);
  CHECK(gathered->plan.data == 1);
  const auto odd =
      lifting::find_plan({rank_with(&GroupTraffic::attention, CollectiveKind::kAllToAll, 2, 3)});
  REQUIRE_FALSE(odd);
  CHECK(to_string(odd.error())
            .find("gradients are summed among ranks 0-2, which context 2 does not "
                  "divide") != std::string::npos);
}

TEST_CASE("expert parallelism is found by all-to-alls next to experts") {
  using lifting::GroupTraffic;
  lifting::RankTraffic rank = rank_with(&GroupTraffic::experts, CollectiveKind::kAllToAll, 2, 4);
  // The gradients of experts, which are larger, are summed by every second rank.
  rank.groups.push_back(rank.groups.back());
  rank.groups.back().members = {0, 2};
  rank.groups.back().size = 2;
  rank.groups.back().exchanges.begin()->second.bytes *= 10;
  const auto found = lifting::find_plan({rank});
  REQUIRE(found);
  CHECK(found->plan.expert == 2);
  CHECK(found->plan.data == 4);
  CHECK(found->plan.ranks() == 4);
  // Without the exchange of experts, two groups sum gradients.
  rank.groups[0].experts.clear();
  CHECK_FALSE(lifting::find_plan({rank}));
  // An all-to-all elsewhere tells nothing.
  const auto elsewhere =
      lifting::find_plan({rank_with(&GroupTraffic::exchanges, CollectiveKind::kAllToAll, 2, 4)});
  REQUIRE_FALSE(elsewhere);
  CHECK(to_string(elsewhere.error())
            .find("8 all-to-alls among ranks 0, 1, not next to attention or known experts, may "
                  "exchange tokens or rows of tables") != std::string::npos);
}

TEST_CASE("a product by a parameter of three extents is that of experts") {
  // 16 samples of 32 tokens, two experts of four per token: each computes 16 · 32 · 2 / 4 tokens.
  const Lifted l = joined(recorded_job(
      {.samples = 16, .rows = 32, .hidden = 64, .inner = 128, .heads = 4, .experts = 4}, {0}));
  CHECK(l.workload.experts == 4);
  CHECK(l.workload.experts_per_token == 2);
  const Layer& layer = l.workload.layers[4];  // after queries, keys, values and the output
  CHECK(layer.parameters() == 64 * 4 + 2 * 4 * 64 * 128);
  std::size_t products = 0;
  for (const auto& [ops, gradients] : {std::pair(layer.forward, 0U), std::pair(layer.backward, 1U)})
    for (const Op& op : ops) {
      if (!op.expert || op.kind != OpKind::kGemm) continue;
      ++products;
      CHECK(op.batch == 4);
      CHECK((op.weight_gradient ? op.k : op.m) == 256);
      CHECK(op.samples == (op.weight_gradient ? Extent::kK : Extent::kM));
      CHECK_FALSE(op.core);
      if (gradients == 0) CHECK_FALSE(op.weight_gradient);
    }
  CHECK(products == 6);
}

}  // namespace
}  // namespace rehearse::workload
