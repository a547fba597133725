#include <catch2/catch.hpp>

#include "models/memory/memory.h"
#include "strategies/lay_out.h"
#include "tests/support/laid_out.h"
#include "tests/support/layout_sums.h"
#include "tests/support/tiny_models.h"
#include "tests/support/zoo_model.h"

namespace rehearse::strategies {
namespace {

using test::collective_bytes;
using test::error_of;
using test::laid_out;
using test::tiny_gpt;
using test::tiny_mlp;
using workload::Axis;
using workload::Dtype;
using workload::Issue;
using workload::Layer;
using workload::Layout;
using workload::Op;
using workload::OpKind;
using workload::StateBytes;

const std::vector<Layer>& layers_of(const Layout& layout) {
  return layout.stages[0].chunks[0].layers;
}

double bytes_named(const Layout& layout, std::string_view name) {
  double sum = 0;
  test::visit_ops(layout, [&](const Op& op, const workload::Stage&, double times) {
    if (op.name == name) sum += op.bytes.b() * times;
  });
  return sum;
}

void check_states(const StateBytes& got, double weights, double gradient, double optimizer) {
  CHECK(got.weights == Approx(weights));
  CHECK(got.gradient == Approx(gradient));
  CHECK(got.optimizer == Approx(optimizer));
}

TEST_CASE("bytes of a parameter by number format and optimizer") {
  const workload::Workload w = tiny_gpt({});
  const auto states = [&](Training training, const Plan& plan = {}) {
    training.global_batch = 16;
    return laid_out(w, training, plan).stages[0].states;
  };
  check_states(states({}), 2, 4, 12);  // Megatron-LM: 18 bytes
  check_states(states({.gradients = Dtype::kBf16}), 2, 2, 12);
  check_states(states({.dtype = Dtype::kFp16}), 2, 2, 12);
  check_states(states({.dtype = Dtype::kFp8}), 2, 4, 12);
  check_states(states({.dtype = Dtype::kFp32}), 4, 4, 8);
  check_states(states({.dtype = Dtype::kFp32, .optimizer = Optimizer::kMomentum}), 4, 4, 4);
  check_states(states({.dtype = Dtype::kTf32, .optimizer = Optimizer::kSgd}), 4, 4, 0);
}

// Rajbhandari et al., SC20, figure 1: 2 + 2 + 12 bytes on 16 ranks become 2 + 2 + 12/16 (ZeRO-1),
// 2 + (2 + 12)/16 (ZeRO-2) and 16/16 (ZeRO-3; FSDP holds 4 + 4 + 8, the same 16).
TEST_CASE("ZeRO divides states by the ranks with equal states") {
  const workload::Workload w = tiny_gpt({});
  const Training training{.global_batch = 16, .dtype = Dtype::kFp16};
  const auto total = [&](std::uint32_t zero) {
    const Layout layout = laid_out(w, training, {.data = 16, .zero = zero});
    return layout.stages[0].states.total();
  };
  CHECK(total(0) == Approx(16));
  CHECK(total(1) == Approx(2 + 2 + 12 / 16.0));
  CHECK(total(2) == Approx(2 + (2 + 12) / 16.0));
  CHECK(total(3) == Approx(1));
  // Context ranks hold the same parameters.
  const Layout context =
      laid_out(w, {.global_batch = 4, .dtype = Dtype::kFp16}, {.data = 4, .context = 4, .zero = 3});
  CHECK(context.stages[0].states.total() == Approx(1));
}

TEST_CASE("data parallelism sums every gradient once per step") {
  const workload::Workload w = tiny_gpt({});
  const double parameters = w.parameters();
  for (const bool overlap : {false, true})
    for (const double bucket : {1.0, 3e5, 1e9}) {
      INFO("overlap " << overlap << ", bucket " << bucket);
      const Plan plan{.data = 4, .overlap_gradients = overlap, .bucket = Bytes::b(bucket)};
      const Layout layout = laid_out(w, {.global_batch = 16}, plan);
      CHECK(layout.microbatches == 4);
      CHECK(collective_bytes(layout, Axis::kData) == Approx(4 * parameters));
      const Layout half = laid_out(w, {.global_batch = 16, .gradients = Dtype::kBf16}, plan);
      CHECK(collective_bytes(half, Axis::kData, CollectiveKind::kAllReduce) ==
            Approx(2 * parameters));
      CHECK(test::flops_over_ranks(layout) == 16 * w.model_flops());
      CHECK(test::parameters_over_ranks(layout) == Approx(parameters));
      CHECK(bytes_named(layout, "update parameters") == Approx(46 * parameters));
    }
}

TEST_CASE("ranks with the same parameters sum over data and context") {
  Op op{.name = "sum", .kind = OpKind::kCollective, .axis = Axis::kData};
  const workload::Degrees degrees{.data = 8, .tensor = 2, .context = 3, .expert = 4};
  CHECK(workload::group_size(op, degrees) == 24);
  op.expert = true;
  CHECK(workload::group_size(op, degrees) == 6);
  op.axis = Axis::kExpert;
  CHECK(workload::group_size(op, degrees) == 4);
  op.axis = Axis::kTensor;
  CHECK(workload::group_size(op, degrees) == 2);
  op.axis = Axis::kContext;
  CHECK(workload::group_size(op, degrees) == 3);
}

// Four matrices of a block are gathered for each of three passes, and four gradients are scattered.
TEST_CASE("DeepSpeed in 2021 gathers every matrix for every pass, and waits") {
  const Training training{.global_batch = 8, .recompute = Recompute::kFull};
  Plan plan{.data = 8, .zero = 3};
  const workload::Workload w = tiny_gpt({});
  plan.gather_weights = GatherWeights::kByTensor;
  const Layout layout = laid_out(w, training, plan);
  // Embedding and head are not recomputed.
  CHECK(bytes_named(layout, "gather weights") ==
        Approx(2 * (3 * 8 * 12 * 64 * 64 + 2 * 2 * 512 * 64)));
  const Layer& block = layers_of(layout)[1];
  std::size_t calls = 0;
  for (const std::vector<Op>* pass : {&block.forward, &block.recompute, &block.backward})
    for (const Op& op : *pass) {
      if (op.host) CHECK(op.measured->value.us() == Approx(276 + 2 * 8 * 6.5));  // 380 measured
      if (op.communicates()) CHECK(op.issue == Issue::kInline);
      calls += op.host ? 1 : 0;
    }
  CHECK(calls == 3 * 4 + 4);

  // A gather is next to the product that reads the matrix, and a scatter to the one that makes its gradient.
  std::vector<std::string> order;
  for (const Op& op : block.backward)
    if (!op.host && (op.communicates() || op.kind == OpKind::kGemm) && !op.core)
      order.emplace_back(op.name);
  REQUIRE(order.size() >= 8);
  CHECK(std::vector(order.begin(), order.begin() + 8) ==
        std::vector<std::string>{"gather weights", "dgrad", "wgrad", "sum and scatter gradients",
                                 "gather weights", "dgrad", "wgrad", "sum and scatter gradients"});
}

// A block has 12 · 64² parameters, its largest matrix 4 · 64². Weights have 2 bytes, gradients 2 and their
// copy that is summed 4: by layer (2 · 2 + 6) · 12 · 64² with the next layer, by tensor (2 + 6) · 4 · 64².
TEST_CASE("by tensor, a rank holds one matrix with its gradient, not a layer") {
  const Training training{.global_batch = 8, .recompute = Recompute::kFull};
  Plan plan{.data = 8, .zero = 3};
  const workload::Workload w = tiny_gpt({.vocabulary = 64});
  const auto gathered = [&] {
    const memory::Device device{.usable = Bytes::gib(1), .multiprocessors = 1};
    return memory::memory_of(laid_out(w, training, plan), device).front().parts.gathered.b();
  };
  CHECK(gathered() == Approx(10 * 12 * 64 * 64));
  plan.gather_weights = GatherWeights::kByTensor;
  CHECK(gathered() == Approx(8 * 4 * 64 * 64));
}

// Blocks have 12 · 64² = 49152 parameters: 192 KiB of gradients.
TEST_CASE("a bucket goes with the layer that fills it, counted from the last") {
  const workload::Workload w = tiny_gpt({.vocabulary = 64, .layers = 7});
  const Layout layout = laid_out(w, {.global_batch = 2}, {.data = 2, .bucket = Bytes::kib(500)});
  std::vector<double> buckets;  // KiB, from the last layer
  const std::vector<Layer>& layers = layers_of(layout);
  std::uint32_t count = 0;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    count += layer->count;
    if (layer->step.empty() || layer->step[0].kind != OpKind::kCollective) continue;
    CHECK(layer->step[0].issue == Issue::kDeferred);
    for (std::uint32_t i = 0; i < layer->count; ++i)
      buckets.push_back(layer->step[0].bytes.b() / 1024);
  }
  CHECK(count == 9);
  // head 16 + 3 blocks, 3 blocks, the last block and the embedding
  CHECK(buckets == std::vector<double>{16 + 576, 576, 192 + 16});

  const Layout blocking = laid_out(w, {.global_batch = 2}, {.data = 2, .overlap_gradients = false});
  CHECK(layers_of(blocking).size() == 3);
  CHECK(layers_of(blocking)[0].step[0].bytes.b() / 1024 == 32 + 7 * 192);
  CHECK(layers_of(blocking)[0].step[0].issue == Issue::kInline);
  CHECK(layers_of(blocking)[1].step.size() == 1);
}

TEST_CASE("ZeRO-1 scatters gradients and gathers weights, ZeRO-2 scatters in every microbatch") {
  const workload::Workload w = tiny_gpt({});
  const double parameters = w.parameters();
  const Training training{.global_batch = 32};
  const Layout one = laid_out(w, training, {.data = 8, .zero = 1});
  CHECK(collective_bytes(one, Axis::kData, CollectiveKind::kReduceScatter) ==
        Approx(4 * parameters));
  CHECK(collective_bytes(one, Axis::kData, CollectiveKind::kAllGather) == Approx(2 * parameters));
  CHECK(collective_bytes(one, Axis::kData, CollectiveKind::kAllReduce) == 0);
  CHECK(bytes_named(one, "update parameters") == Approx(46 * parameters / 8));
  const Layout two = laid_out(w, training, {.data = 8, .zero = 2});
  CHECK(collective_bytes(two, Axis::kData, CollectiveKind::kReduceScatter) ==
        Approx(4 * 4 * parameters));
  CHECK(collective_bytes(two, Axis::kData, CollectiveKind::kAllGather) == Approx(2 * parameters));
}

// Three times the parameters: gathered before forward and backward in 16 bits, scattered
// afterwards.
TEST_CASE("FSDP moves three times the parameters per microbatch") {
  const workload::Workload w = tiny_gpt({});
  const double parameters = w.parameters();
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    const Layout layout =
        laid_out(w, {.global_batch = 16, .recompute = recompute}, {.data = 8, .zero = 3});
    CHECK(layout.microbatches == 2);
    CHECK(collective_bytes(layout, Axis::kData, CollectiveKind::kAllGather) ==
          Approx(2 * (2 + 2) * parameters));
    CHECK(collective_bytes(layout, Axis::kData, CollectiveKind::kReduceScatter) ==
          Approx(2 * 4 * parameters));
    const Layer& block = layers_of(layout)[1];
    CHECK(block.count == 8);
    CHECK(block.forward.front().issue == Issue::kPrefetched);
    const std::vector<Op>& first = recompute == Recompute::kFull ? block.recompute : block.backward;
    CHECK(first.front().name == "gather weights");
    CHECK(block.backward.back().issue == Issue::kDeferred);
    CHECK(layout.stages[0].gathering.weights == 2);
    CHECK(layout.stages[0].gathering.ahead == 1);
  }
  const Layout pipeline = laid_out(w, {.global_batch = 16}, {.data = 4, .pipeline = 2, .zero = 3});
  CHECK(pipeline.microbatches == 4);
  CHECK(collective_bytes(pipeline, Axis::kData) == Approx((2 + 4) * parameters));
  // In addition to weights and gradients, the gradients of four messages, and two that were sent.
  CHECK(pipeline.stages[0].gathered.b() == Approx(6 * parameters / 2 + (4 + 2) * 32 * 64 * 2));
}

// Tables of 33.8 M rows by 16: gradients of the rows alone are exchanged.
TEST_CASE("only looked-up rows of tables are updated") {
  const Result<workload::Workload> dlrm = test::zoo_model("dlrm_criteo_kaggle");
  REQUIRE(dlrm);
  const Training training{.global_batch = 4096, .microbatch = 512};
  double dense = 0;
  for (const Layer& layer : dlrm->layers)
    for (const workload::Weights& w : layer.weights)
      if (!w.sparse) dense += w.count;
  const double rows = 26 * 16 * 512;  // of a rank
  const Layout replicated = laid_out(*dlrm, training, {.data = 8});
  CHECK(collective_bytes(replicated, Axis::kData, CollectiveKind::kAllReduce) == Approx(4 * dense));
  CHECK(collective_bytes(replicated, Axis::kData, CollectiveKind::kAllGather) ==
        Approx(4 * 8 * rows));
  CHECK(bytes_named(replicated, "update parameters") == Approx(46 * (dense + rows)));
  const Layout divided = laid_out(*dlrm, training, {.data = 8, .expert = 8});
  CHECK(collective_bytes(divided, Axis::kData, CollectiveKind::kAllGather) == 0);
  // There and, in backward, back in 16 bits; indices of 64.
  CHECK(collective_bytes(divided, Axis::kExpert, CollectiveKind::kAllToAll) ==
        Approx(2 * 2 * rows + 8 * 26 * 512));
  CHECK(divided.stages[0].parameters() == Approx(dense + (dlrm->parameters() - dense) / 8));
  CHECK(divided.stages[0].states.gradient < 0.05);
}

TEST_CASE("local SGD averages parameters every local_steps steps") {
  const workload::Workload w = tiny_mlp(4, 100);
  const Layout layout =
      laid_out(w, {.global_batch = 4, .dtype = Dtype::kFp32},
               {.data = 4, .synchronization = Synchronization::kLocalSgd, .local_steps = 8});
  CHECK(collective_bytes(layout, Axis::kData, CollectiveKind::kAllReduce) ==
        Approx(4 * w.parameters() / 8));
}

TEST_CASE("compressed gradients have fewer bytes on the wire and more memory traffic") {
  const workload::Workload w = tiny_mlp(4, 100);
  const Layout layout =
      laid_out(w, {.global_batch = 4, .dtype = Dtype::kFp32}, {.data = 4, .compression = 0.25});
  CHECK(collective_bytes(layout, Axis::kData) == Approx(w.parameters()));
  CHECK(bytes_named(layout, "compress and decompress gradients") ==
        Approx(2 * (4 + 1) * w.parameters()));
}

TEST_CASE("a parameter server receives gradients and sends parameters") {
  const workload::Workload w = tiny_mlp(4, 100);
  const Training training{.global_batch = 8, .dtype = Dtype::kFp32};
  Plan plan{.data = 4,
            .synchronization = Synchronization::kParameterServer,
            .parameter_server = {.servers = 2}};
  const Layout layout = laid_out(w, training, plan);
  CHECK(layout.ranks() == 6);
  CHECK(ranks_of(plan) == 6);
  CHECK(collective_bytes(layout, Axis::kData, CollectiveKind::kReduce) == 4 * 40000);
  CHECK(collective_bytes(layout, Axis::kData, CollectiveKind::kBroadcast) == 4 * 40000);
  check_states(layout.stages[0].states, 4, 4, 0);
  REQUIRE(layout.servers);
  CHECK(layout.servers->first_rank == 4);
  CHECK(layout.servers->parameters == 20000);
  CHECK(layout.servers->updates_per_step == 1);
  // Adam in fp32 moves 28 bytes a parameter; each of four pushes is read and added, 4 + 8.
  CHECK(layout.servers->update.bytes.b() == 20000 * (28 + 4 * 12));
  CHECK(layout.samples_per_step == 8);

  plan.parameter_server.backup_workers = 1;
  const Layout backup = laid_out(w, training, plan);
  CHECK(backup.samples_per_step == 6);
  CHECK(backup.model_flops == 6 * w.model_flops());

  plan.parameter_server = {.servers = 2, .staleness = {}};
  const Layout asynchronous = laid_out(w, training, plan);
  CHECK(asynchronous.servers->updates_per_step == 4);
  CHECK(asynchronous.servers->update.bytes.b() == 20000 * 28);
}

TEST_CASE("offloaded states leave the device and are copied") {
  const workload::Workload w = tiny_gpt({});
  const double parameters = w.parameters();
  const auto with = [&](Offload offload, std::uint32_t zero) {
    return laid_out(w, {.global_batch = 16}, {.data = 4, .zero = zero, .tiers = tiers_of(offload)});
  };
  const Layout optimizer = with(Offload::kOptimizer, 1);
  check_states(optimizer.stages[0].states, 2, 4, 0);
  CHECK(bytes_named(optimizer, "gradients to host") == Approx(4 * parameters / 4));
  CHECK(bytes_named(optimizer, "weights from host") == Approx(2 * parameters / 4));
  std::vector<std::string> step;
  for (const Op& op : layers_of(optimizer)[0].step) {
    step.emplace_back(op.name);
    CHECK(op.host == (op.name == "update parameters"));
  }
  CHECK(step == std::vector<std::string>{"sum and scatter gradients", "gradients to host",
                                         "update parameters", "weights from host",
                                         "gather weights"});

  // Each of four microbatches sends its gradients, and the host adds up four shards.
  const Layout gradients = with(Offload::kGradients, 2);
  check_states(gradients.stages[0].states, 2, 0, 0);
  CHECK(bytes_named(gradients, "gradients to host") == Approx(4 * 4 * parameters / 4));
  CHECK(bytes_named(gradients, "update parameters") - bytes_named(optimizer, "update parameters") ==
        Approx(3 * 3 * 4 * parameters / 4));

  const Layout weights = with(Offload::kWeights, 0);
  check_states(weights.stages[0].states, 0, 4, 0);
  // Four microbatches fetch weights for forward and for backward.
  CHECK(bytes_named(weights, "weights from host") == Approx(4 * 2 * 2 * parameters));
  CHECK(weights.stages[0].gathered.b() == 2 * 2 * 49152);

  const Layout activations = with(Offload::kActivations, 0);
  double saved = 0;
  for (const Layer& layer : w.layers) saved += layer.count * layer.saved_bytes().b();
  CHECK(bytes_named(activations, "activations to host") == Approx(4 * saved));
  CHECK(bytes_named(activations, "activations from host") == Approx(4 * saved));
  for (const Layer& layer : layers_of(activations)) CHECK(layer.saved_bytes().b() == 0);
}

TEST_CASE("invalid batches and synchronizations are errors") {
  const workload::Workload w = tiny_gpt({});
  CHECK(error_of(w, {.global_batch = 8}, {.data = 16}) ==
        "training: global_batch 8 is not a multiple of data 16 x microbatch 1; nearest: data 8");
  CHECK(
      error_of(w, {.global_batch = 12}, {.data = 5}) ==
      "training: global_batch 12 is not a multiple of data 5 x microbatch 1; nearest: data 4 or 6");
  CHECK(error_of(w, {.global_batch = 9, .microbatch = 2}, {}) ==
        "training: global_batch 9 is not a multiple of data 1 x microbatch 2; nearest: microbatch "
        "1 or "
        "3");
  Plan servers{.zero = 3, .synchronization = Synchronization::kParameterServer};
  CHECK(error_of(w, {}, servers) ==
        "zero 3 cannot be combined with synchronization parameter_server; servers already hold the "
        "optimizer states; "
        "nearest: zero 0");
  CHECK(error_of(w, {}, {.zero = 1, .synchronization = Synchronization::kLocalSgd}) ==
        "zero 1 cannot be combined with synchronization local_sgd; between averages every rank has "
        "different "
        "parameters; nearest: zero 0");
  CHECK(error_of(w, {.global_batch = 2},
                 {.data = 2,
                  .synchronization = Synchronization::kParameterServer,
                  .parameter_server = {.backup_workers = 2}}) ==
        "2 backup workers of data 2; fewer than data");
  CHECK(error_of(w, {}, {.zero = 4}) == "zero is 4; a whole number from 0 to 3");
  CHECK(error_of(w, {}, {.compression = 0}) == "compression is 0; a number above 0 and at most 1");
}

}  // namespace
}  // namespace rehearse::strategies
