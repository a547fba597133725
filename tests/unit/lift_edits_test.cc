// Edits of a lifted workload: other tokens per sample, and layers that do or do not run again.
#include <catch2/catch.hpp>

#include "models/workload/lift.h"
#include "models/workload/selective.h"
#include "tests/support/recorded_ranks.h"

namespace rehearse::workload {
namespace {

Workload workload_of(const trace::Trace& trace) {
  Result<Lifted> lifted = lift(trace, {});
  INFO((lifted ? "" : to_string(lifted.error())));
  REQUIRE(lifted);
  return std::move(lifted->workload);
}

Workload blocks(double rows, double vocabulary = 0) {
  trace::Trace trace;
  test::RecordedRanks(trace, {.rows = rows, .vocabulary = vocabulary, .heads = 4}).add(0);
  return workload_of(trace);
}

template <class Visit>
void each_op(const Workload& workload, Visit visit) {
  for (const Layer& layer : workload.layers)
    for (const auto* ops : {&layer.forward, &layer.backward, &layer.recompute})
      for (const Op& op : *ops) visit(layer, op);
}

void check_alike(const Workload& a, const Workload& b) {
  std::vector<Op> ops;
  each_op(a, [&](const Layer&, const Op& op) { ops.push_back(op); });
  std::size_t i = 0;
  each_op(b, [&](const Layer& layer, const Op& op) {
    INFO(layer.name << ": " << op.name);
    REQUIRE(i < ops.size());
    CHECK(extents_of(op) == extents_of(ops[i]));
    CHECK(op.width == ops[i].width);
    ++i;
  });
  CHECK(i == ops.size());
  REQUIRE(a.layers.size() == b.layers.size());
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    CHECK(a.layers[l].saved_bytes() == b.layers[l].saved_bytes());
    CHECK(a.layers[l].output == b.layers[l].output);
  }
  CHECK(a.tokens_per_sample == b.tokens_per_sample);
}

Workload with(const Workload& workload, double tokens) {
  Result<Workload> changed = with_tokens(workload, tokens);
  INFO((changed ? "" : to_string(changed.error())));
  REQUIRE(changed);
  return *std::move(changed);
}

TEST_CASE("more tokens give the extents of a recording with as many") {
  for (const double vocabulary : {0.0, 512.0}) {
    const Workload recorded = blocks(64, vocabulary);
    REQUIRE(recorded.tokens_per_sample == 64);
    check_alike(with(recorded, 192), blocks(192, vocabulary));
    check_alike(with(with(recorded, 192), 64), recorded);
    each_op(with(with(recorded, 96), 64),
            [](const Layer&, const Op& op) { CHECK_FALSE(differs_from_measured(op)); });
  }
}

/// Unfused attention of 2 samples, 4 heads and heads of 16, after a lookup.
trace::Trace scores(double tokens) {
  trace::Trace trace;
  test::StepBuilder b(trace);
  const auto text = [&](const char* form) {
    return fmt::format(fmt::runtime(form), fmt::arg("t", tokens));
  };
  b.begin_step();
  b.forward("aten::embedding", text("[[100, 64], [2, {t}]]"), 3, 1);
  b.forward("aten::linear", text("[[2, {t}, 64], [64, 64], []]"), 10, 2);
  b.forward("aten::bmm", text("[[8, {t}, 16], [8, 16, {t}]]"), 10, 3);
  b.forward("aten::mul", text("[[2, 4, {t}, {t}], []]"), 5, 4);
  b.forward("aten::_softmax", text("[[2, 4, {t}, {t}]]"), 5, 5);
  b.forward("aten::bmm", text("[[8, {t}, {t}], [8, {t}, 16]]"), 10, 6);
  b.forward("aten::add", text("[[2, {t}, 64], [2, {t}, 64]]"), 5, 7);
  b.backward("BmmBackward0", 6, [&] {
    b.op("aten::bmm", text("[[8, {t}, 16], [8, 16, {t}]]"), 10, test::StepBuilder::kAutograd);
    b.op("aten::bmm", text("[[8, {t}, {t}], [8, {t}, 16]]"), 10, test::StepBuilder::kAutograd);
  });
  b.end_step();
  return trace;
}

TEST_CASE("scores of attention grow with the square of the tokens") {
  // Products of heads: 2 of 3 extents. Scaling and softmax of the scores: 8 heads x 128 x 128 values
  // in place of 8 x 32 x 32, read and written. Sums outside: 4 times the bytes.
  const Workload recorded = workload_of(scores(32));
  check_alike(with(recorded, 128), workload_of(scores(128)));
  bool softmax = false;
  each_op(with(recorded, 128), [&](const Layer&, const Op& op) {
    if (op.kind != OpKind::kSoftmax) return;
    softmax = true;
    CHECK(op.bytes == Bytes::b(2 * 4 * 8 * 128 * 128));
  });
  CHECK(softmax);
}

TEST_CASE("tokens that the extents do not show are refused") {
  // With 16 tokens all extents of a product of heads are 16.
  const Result<Workload> square = with_tokens(workload_of(scores(16)), 32);
  REQUIRE_FALSE(square);
  CHECK(to_string(square.error())
            .find("has 3 extents of 16, so that its work with 32 tokens is "
                  "unknown") != std::string::npos);
  trace::Trace trace;
  test::RecordedRanks(trace, {}).add(0);
  CHECK_FALSE(with_tokens(workload_of(trace), 32));  // no attention: no tokens
}

TEST_CASE("layers that run again save their inputs alone, until they are kept") {
  Workload workload = blocks(64);
  const Workload recorded = workload;
  const std::string first = workload.layers.front().name;
  REQUIRE(recompute_layers(workload, first));
  CHECK(workload.layers[0].recompute == recorded.layers[0].forward);
  CHECK(workload.layers[1].recompute.empty());
  CHECK(workload.layers[0].saved_bytes() + workload.layers[0].recomputed ==
        recorded.layers[0].saved_bytes());
  REQUIRE(keep_layers(workload, "*"));
  check_alike(workload, recorded);
  CHECK_FALSE(keep_layers(workload, "*"));
  CHECK_FALSE(recompute_layers(workload, "layers.7"));
}

}  // namespace
}  // namespace rehearse::workload
