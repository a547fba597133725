// The plan that ranks were recorded under, and the whole model that they divided.
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

}  // namespace
}  // namespace rehearse::workload
