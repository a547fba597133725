#include "models/memory/memory.h"

#include <cmath>

#include <catch2/catch.hpp>

#include "models/workload/transformer.h"
#include "sim/cluster/catalog.h"
#include "strategies/lay_out.h"
#include "strategies/memory_savers.h"
#include "tests/support/laid_out.h"

namespace rehearse::memory {
namespace {

using strategies::Plan;
using strategies::Recompute;
using strategies::Training;
using workload::Chunk;
using workload::Layer;
using workload::Layout;
using workload::Pass;
using workload::Stage;

const Device kDevice = {Bytes::gib(80), 100};
constexpr double kContextMib = 4.27 * 100;

Layer layer(std::uint32_t count, double parameters, double saved_gib) {
  Layer l{.name = "block", .count = count, .forward = {}, .backward = {}};
  l.weights.push_back({parameters});
  l.saved.push_back({.name = "kept", .bytes = Bytes::gib(saved_gib)});
  return l;
}

/// One stage of one rank: forward and backward of one microbatch through the layers.
Layout layout_of(std::vector<Layer> layers) {
  Layout layout{.names = {},
                .stages = {},
                .microbatches = 1,
                .samples_per_step = 1,
                .tokens_per_sample = 0,
                .model_flops = Flops::flop(0),
                .applied = {}};
  layout.stages.push_back({.name = "stage 0",
                           .degrees = {},
                           .first_rank = 0,
                           .chunks = {{.layers = std::move(layers), .first_layer = 0}},
                           .order = {{Pass::kForward, 0, 0}, {Pass::kBackward, 0, 0}},
                           .states = {2, 2, 12}});
  return layout;
}

Assumptions bare() { return {.reserve = 1}; }

TEST_CASE("memory: states and activations of a rank add up") {
  // 2 layers of 2^28 parameters at 16 bytes: 8 GiB. 2 x 3 GiB of activations, and 0.45 layers of
  // transients in the first backward: 8 + 6 + 1.35 GiB. Alone, no NCCL.
  const Layout layout = layout_of({layer(2, 268435456, 3)});
  const auto memory = memory_of(layout, kDevice, bare());
  REQUIRE(memory.size() == 1);
  CHECK(memory[0].parts.states().gib() == Approx(8));
  CHECK(memory[0].parts.activations.gib() == Approx(6));
  CHECK(memory[0].parts.transient.gib() == Approx(1.35));
  CHECK(memory[0].phase == "layer backward");
  CHECK(memory[0].peak.value.mib() == Approx(15.35 * 1024 + kContextMib));
  // The allocator reserves 5 % more than that, the context aside.
  const auto reserved = memory_of(layout, kDevice);
  CHECK(reserved[0].peak.value.mib() == Approx(1.05 * 15.35 * 1024 + kContextMib));
}

TEST_CASE("memory: one recomputed layer is counted with its gradients") {
  Layer block = layer(4, 1, 0.25);
  block.recomputed = Bytes::gib(2);
  const auto memory = memory_of(layout_of({block}), kDevice, bare());
  CHECK(memory[0].parts.activations.gib() == Approx(1));
  CHECK(memory[0].parts.transient.gib() == Approx(0.45 * 0.25 + 1.8 * 2));
}

TEST_CASE("memory: logits count once, at the end of forward") {
  Layer head = layer(1, 0, 0.5);
  head.saved.push_back({.name = "logits", .bytes = Bytes::gib(5), .transient = true});
  const Layout layout = layout_of({layer(2, 0, 1), head});
  const auto curve = memory_curve(layout, layout.stages[0], kDevice, bare());
  REQUIRE(curve.size() == 4);
  CHECK(curve[0].phase == "forward");
  CHECK(curve[0].parts.loss.gib() == Approx(5));
  CHECK(curve[0].parts.activations.gib() == Approx(2.5));
  CHECK(curve[1].phase == "head backward");
  CHECK(curve[1].parts.loss.gib() == 0);
  CHECK(curve[2].phase == "layer backward");
  CHECK(curve[2].parts.activations.gib() == Approx(2));  // the head's are gone
  CHECK(curve[3].phase == "optimizer");
  CHECK_FALSE(curve[3].slot);
}

TEST_CASE("memory: gathered layers are added to the states") {
  // Blocks of 2^28 parameters, an embedding of 2^29: 2 bytes a parameter of the layer and of the
  // next, 6 of the gradients. A block: (2 + 2 + 6) x 0.25 = 2.5 GiB. The embedding is the first
  // layer: 8 x 0.5 = 4.
  Layout layout = layout_of({layer(1, 536870912, 0), layer(3, 268435456, 0)});
  layout.stages[0].states = {0, 0, 0};
  layout.stages[0].gathering = {.weights = 2, .gradient = 6, .ahead = 1};
  const auto memory = memory_of(layout, kDevice, bare());
  CHECK(memory[0].parts.gathered.gib() == Approx(4));
  // With activations the blocks' backward is the worse: embedding's comes when all are gone.
  layout.stages[0].chunks[0].layers[1].saved[0].bytes = Bytes::gib(2);
  const auto fuller = memory_of(layout, kDevice, bare());
  CHECK(fuller[0].parts.gathered.gib() == Approx(2.5));
  CHECK(fuller[0].parts.activations.gib() == Approx(6));
}

TEST_CASE("memory: gradients that do not stay") {
  const Layout layout = layout_of({layer(1, 1073741824, 1)});
  Assumptions assumptions = bare();
  CHECK(memory_of(layout, kDevice, assumptions)[0].parts.gradients.gib() == Approx(2));
  assumptions.gradients_stay = false;
  const auto curve = memory_curve(layout, layout.stages[0], kDevice, assumptions);
  CHECK(curve.front().parts.gradients.gib() == 0);
  CHECK(curve.back().parts.gradients.gib() == Approx(2));
}

TEST_CASE("memory: within five percent of the usable memory the answer is borderline") {
  const Layout layout = layout_of({layer(1, 0, 10)});
  const auto fit = [&](double gib) {
    return memory_of(layout, {Bytes::gib(gib), 0}, bare())[0].fit;
  };
  // 10 GiB and 0.45 layers: 14.5.
  CHECK(fit(14.5 / 0.95 + 0.01) == Fit::kFits);
  CHECK(fit(14.5 / 0.95 - 0.01) == Fit::kBorderline);
  CHECK(fit(14.5 / 1.05 + 0.01) == Fit::kBorderline);
  CHECK(fit(14.5 / 1.05 - 0.01) == Fit::kDoesNotFit);
}

TEST_CASE("memory: the usable memory of a GPU") {
  const auto usable = [](const char* name) {
    return device_of(**cluster::find_gpu(name)).usable.gib();
  };
  CHECK(usable("a100_sxm4_80") == Approx(79.2));
  CHECK(usable("a100_sxm4_40") == Approx(39.6));
  CHECK(usable("a10g") == Approx(22.5));
  CHECK(usable("rtx3090") == Approx(23.76));
  CHECK(device_of(**cluster::find_gpu("h100_sxm5_80")).multiprocessors == 132);
}

TEST_CASE("memory: knowing the implementation narrows the interval") {
  const workload::Layout layout = layout_of({layer(8, 1e8, 2)});
  const StageMemory unknown =
      memory_of(layout, kDevice, {.implementation = Knowledge::kUnknown})[0];
  const StageMemory known = memory_of(layout, kDevice)[0];
  const auto width = [](const StageMemory& m) { return (m.peak.high - m.peak.low) / m.peak.value; };
  CHECK(width(known) < width(unknown));
  // ±30 % of what is kept, and more.
  CHECK(unknown.peak.high - unknown.peak.low > 0.6 * unknown.parts.activations);
}

TEST_CASE("memory: remedies, most effective first") {
  const auto of = [](double gib) {
    return memory_of(layout_of({layer(1, 0, gib / 1.45)}), {Bytes::gib(40), 0}, bare());
  };
  const std::vector<Trial> trials = {
      {"a little", of(45)}, {"much", of(20)}, {"nothing", of(50)}, {"worse", of(60)}};
  const std::vector<std::string> lines = remedies(of(50), trials);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "much: 30.0 GiB less, 20.0 GiB in all; fits");
  CHECK(lines[1] == "a little: 5.00 GiB less, 45.0 GiB in all; does not fit");
  CHECK(remedies(of(20), trials).empty());
}

// ---- through strategies::lay_out

workload::Transformer gpt(std::uint32_t hidden, std::uint32_t layers, std::uint32_t heads) {
  workload::Transformer m{.name = "gpt"};
  m.hidden = hidden;
  m.layers = layers;
  m.heads = heads;
  m.feed_forward = 4 * hidden;
  m.vocabulary = 51200;
  m.sequence = 2048;
  return m;
}

Layout laid_out(const workload::Transformer& model, const workload::Implementation& how,
                const Training& training, const Plan& plan) {
  const auto w = workload::transformer(model, how);
  REQUIRE(w);
  return test::laid_out(*w, training, plan);
}

TEST_CASE("memory: bytes per parameter by ZeRO stage") {
  // Rajbhandari et al. (SC20), table 1, Adam in FP16 on 8 ranks: 16, 2 + 2 + 12/8, 2 + (2 + 12)/8,
  // 16/8.
  const double expected[] = {16, 2 + 2 + 12.0 / 8, 2 + 14.0 / 8, 16.0 / 8};
  const Training training = {.global_batch = 8, .dtype = workload::Dtype::kFp16};
  for (std::uint32_t zero = 0; zero <= 3; ++zero) {
    Plan plan;
    plan.data = 8;
    plan.zero = zero;
    const Layout layout = laid_out(gpt(256, 4, 4), {}, training, plan);
    const auto curve = memory_curve(layout, layout.stages[0], kDevice);
    CHECK(curve.back().parts.states().b() / layout.stages[0].parameters() ==
          Approx(expected[zero]));
  }
}

TEST_CASE("memory: activations of Megatron's figure 1") {
  // arXiv:2205.05198: GPT-3 175B, tensor 8, pipeline 8, 3 chunks a stage, microbatch 1, u = s b h.
  // Without sequence parallelism and recomputation the first stage holds
  // L u (10 + 24/t + 5 a s / (h t)) (1 + (p-1)/(p v)) = 66.84 GiB; with both 12.35.
  const workload::Implementation how = {.dtype = workload::Dtype::kFp16,
                                        .attention = workload::Attention::kUnfused,
                                        .dropout = true,
                                        .loss = workload::Loss::kFused};
  Training training = {.global_batch = 64, .dtype = workload::Dtype::kFp16};
  Plan plan;
  plan.tensor = 8;
  plan.pipeline = 8;
  plan.interleave = 3;
  plan.schedule = strategies::Schedule::kInterleaved;
  const auto activations = [&] {
    Layout layout = laid_out(gpt(12288, 96, 96), how, training, plan);
    Stage& stage = layout.stages.front();
    for (Chunk& chunk : stage.chunks)
      std::erase_if(chunk.layers, [](const Layer& l) { return l.name != "block"; });
    Bytes most = Bytes::b(0);
    for (const Moment& m : memory_curve(layout, stage, kDevice))
      most = std::max(most, m.parts.activations);
    return most.gib();
  };
  CHECK(activations() == Approx(66.84375));
  plan.sequence_parallel = true;
  training.recompute = Recompute::kSelective;
  CHECK(activations() == Approx(12.3515625));
}

TEST_CASE("memory: a functional test of Megatron-LM, term by term") {
  // gpt3_mcore_te_tp1_pp1_dist_optimizer on 8 H100: 12 layers of 512, 8 heads, s 1024, b 4, BF16,
  // unfused attention, dropout, distributed optimizer. It allocates 4484.59 MiB. By hand, in MiB:
  //   64,109,568 parameters x (2 + 4 + 12 / 8)          458.55
  //   workspaces                                         96
  //   12 layers x (34 u + 5 a s^2 b), u = 2 Mi          2736
  //   embedding's mask, input of final norm and head      10
  //   6 bytes for each of 4096 x 50304 logits           1179
  // The 5 MiB left are the attention mask, tokens, and statistics of norms.
  workload::Transformer model = gpt(512, 12, 8);
  model.vocabulary = 50304;
  model.sequence = 1024;
  const workload::Implementation how = {.dtype = workload::Dtype::kBf16,
                                        .attention = workload::Attention::kUnfused,
                                        .dropout = true,
                                        .loss = workload::Loss::kMpt};
  Plan plan;
  plan.data = 8;
  plan.zero = 1;
  const Training training = {.global_batch = 32, .microbatch = 4, .dtype = workload::Dtype::kBf16};
  const Layout layout = laid_out(model, how, training, plan);
  CHECK(layout.stages[0].parameters() == 64'109'568);
  const auto memory = memory_of(layout, device_of(**cluster::find_gpu("h100_sxm5_80")));
  const Parts& parts = memory[0].parts;
  CHECK(parts.states().mib() == Approx(458.55).margin(0.01));
  CHECK(parts.gathered.mib() == Approx(96));
  CHECK(parts.activations.mib() == Approx(2736 + 10));
  CHECK(parts.loss.mib() == Approx(1179));
  CHECK(memory[0].phase == "forward");
  CHECK(parts.allocated().mib() == Approx(4484.59).epsilon(0.002));
  // Communicators: of all ranks, and of data parallelism.
  CHECK(parts.context.gib() == Approx(132 * 4.27 / 1024 + 2 * 0.25));
}

TEST_CASE("memory: 16-bit gradients are kept in addition to FP32 sums if the framework has both") {
  // Per parameter with d = 4: weights 2, sums 4, the optimizer 12 / 4; apart, 2 more. The update takes
  // FP32 sums where they are; of gradients in 16 bits it copies and converts a quarter, (2 + 4) / 4.
  Plan plan;
  plan.data = 4;
  plan.zero = 1;
  Training training = {.global_batch = 4, .dtype = workload::Dtype::kBf16};
  const auto states = [&] { return laid_out(gpt(512, 2, 8), {}, training, plan).stages[0].states; };
  CHECK(states().gradient == 4);
  CHECK(states().update == 0);
  training.accumulation = strategies::Accumulation::kApart;
  CHECK(states().gradient == 6);
  CHECK(states().update == 0);
  plan.zero = 0;
  CHECK(states().gradient == 6);
  CHECK(!states().update);
  plan.data = 1;  // they are added to the sums after the whole backward
  CHECK(states().gradient == 6);
  plan.data = 4;
  plan.zero = 1;
  training = {.global_batch = 4, .dtype = workload::Dtype::kFp16};
  CHECK(states().gradient == 2);
  CHECK(states().update == 1.5);
}

TEST_CASE("memory: ZeRO-1 copies 16-bit gradients into a bucket") {
  Plan plan;
  plan.data = 2;
  plan.zero = 1;
  plan.bucket = Bytes::kib(64);
  Training training = {.global_batch = 2, .dtype = workload::Dtype::kFp16};
  const auto gathered = [&] {
    const workload::Implementation how = {.dtype = training.dtype};
    return laid_out(gpt(512, 2, 8), how, training, plan).stages[0].gathered;
  };
  CHECK(gathered() == plan.bucket);
  plan.bucket = Bytes::gib(64);  // no larger than the gradients
  CHECK(gathered() < Bytes::mib(100));
  training.dtype = workload::Dtype::kBf16;  // FP32 sums are scattered where they are
  CHECK(gathered() == Bytes::b(0));
}

TEST_CASE("memory: an interval holds the errors of what it counts") {
  Plan plan;
  plan.data = 2;
  const auto memory =
      memory_of(laid_out(gpt(512, 2, 8), {}, {.global_batch = 2}, plan), kDevice).front();
  CHECK(memory.peak.value == memory.parts.total());
  CHECK(memory.reserved.value == memory.parts.total() - memory.parts.context);
  CHECK(memory.allocated.value == memory.parts.allocated());
  const auto width = [](const Estimate<Bytes>& e) { return (e.high - e.low).b(); };
  CHECK(width(memory.allocated) < width(memory.reserved));
  CHECK(width(memory.reserved) < width(memory.peak));
  // Real runs hold more rather than less.
  CHECK(memory.allocated.high - memory.allocated.value >
        memory.allocated.value - memory.allocated.low);
  // Errors of parts in squares, and 0.34 and 0.77 of that by the rule of intervals.
  const auto in_squares = [&](double implementation) {
    const Parts& p = memory.parts;
    const double states = 0.02 * p.states().mib(),
                 kept = implementation * (p.activations + p.loss).mib(),
                 others = 0.5 * (p.gathered + p.transient).mib(), small = 64;
    return std::sqrt(states * states + kept * kept + others * others + small * small);
  };
  CHECK((memory.allocated.value - memory.allocated.low).mib() == Approx(0.34 * in_squares(0.08)));
  CHECK((memory.allocated.high - memory.allocated.value).mib() == Approx(0.77 * in_squares(0.12)));

  const auto tiny = memory_of(laid_out(gpt(64, 1, 2), {}, {.global_batch = 1}, {}), kDevice);
  CHECK(tiny.front().allocated.low >= Bytes::b(0));
}

// u = s b h = 1 Mi elements, t = 4: two gathered inputs of 2u a layer, and one of the head, whole 2 MiB.
struct SequenceParallel {
  Plan plan = [] {
    Plan p;
    p.tensor = 4;
    p.sequence_parallel = true;
    return p;
  }();
  Training training = {.global_batch = 1, .dtype = workload::Dtype::kBf16};
  Assumptions assumptions = bare();
  Device device = kDevice;

  StageMemory of(workload::GatheredInputs gathered) const {
    const workload::Implementation how = {.loss = workload::Loss::kFused,
                                          .gathered_inputs = gathered};
    return memory_of(laid_out(gpt(512, 8, 32), how, training, plan), device, assumptions).front();
  }
};

using workload::GatheredInputs;

TEST_CASE("memory: blocks of collectives are held as far as the host is ahead") {
  SequenceParallel job;
  const StageMemory again = job.of(GatheredInputs::kAgain), saved = job.of(GatheredInputs::kSaved),
                    all = job.of(GatheredInputs::kUnknown);
  CHECK((saved.parts.activations - again.parts.activations).mib() == Approx((2 * 8 + 1) * 1.5));
  CHECK((all.parts.activations - again.parts.activations).mib() == Approx((2 * 8 + 1) * 2));
  CHECK(all.peak.low == again.peak.low);

  job.assumptions.ahead = RunAhead::kNone;
  const StageMemory none = job.of(GatheredInputs::kUnknown);
  CHECK(none.peak.value == again.peak.value);
  CHECK(none.peak.low == all.peak.low);
  CHECK(none.peak.high == all.peak.high);

  // Of four microbatches in flight on the first of four stages, two wait for the second stage. The
  // head is elsewhere.
  job.plan.pipeline = 4;
  job.training.global_batch = 8;
  const double without = job.of(GatheredInputs::kUnknown).parts.activations.mib();
  job.assumptions.ahead = RunAhead::kWarmUp;
  CHECK(job.of(GatheredInputs::kUnknown).parts.activations.mib() - without ==
        Approx(2 * 2 * 2 * 2));
  job.plan.pipeline = 2;  // both run at once
  CHECK(job.of(GatheredInputs::kUnknown).peak.value == job.of(GatheredInputs::kAgain).peak.value);
}

TEST_CASE("memory: the allocator waits for the device before a device is full of held blocks") {
  SequenceParallel job;
  job.training.global_batch = job.training.microbatch = 1024;
  job.plan.tensor = 2;
  const StageMemory again = job.of(GatheredInputs::kAgain), all = job.of(GatheredInputs::kUnknown);
  const Bytes between = (again.peak.value + all.peak.value) / 2;
  REQUIRE(all.peak.value < again.peak.value * 2);
  job.device.usable = between;
  CHECK(job.of(GatheredInputs::kUnknown).peak.value / between == Approx(1));
  CHECK(job.of(GatheredInputs::kUnknown).fit == Fit::kBorderline);
  job.device.usable = again.peak.value * 0.9;
  CHECK(job.of(GatheredInputs::kUnknown).peak.value == again.peak.value);
  CHECK(job.of(GatheredInputs::kUnknown).fit == Fit::kDoesNotFit);

  // With 32 ranks, held blocks are more than all else, and count as not held.
  job.device = kDevice;
  job.plan.tensor = 32;
  const StageMemory small = job.of(GatheredInputs::kUnknown);
  REQUIRE(small.peak.high > 2 * small.peak.value);
  CHECK(small.peak.value == job.of(GatheredInputs::kAgain).peak.value);
}

TEST_CASE("memory: sequence parallelism has whole activations while a layer runs") {
  // A gathered input, a gathered gradient and a product before it is scattered: 3 · 2u = 6 MiB.
  SequenceParallel job;
  const Layout layout = laid_out(gpt(512, 8, 32), {}, job.training, job.plan);
  const Layer& block = layout.stages[0].chunks[0].layers[1];
  CHECK(block.whole.mib() == Approx(6));
  Layer divided = block;
  divided.whole = Bytes::b(0);
  CHECK((backward_transient(block) - backward_transient(divided)).mib() == Approx(6));
  job.plan.sequence_parallel = false;
  CHECK(laid_out(gpt(512, 8, 32), {}, job.training, job.plan).stages[0].chunks[0].layers[1].whole ==
        Bytes::b(0));
}

TEST_CASE("memory: values that are views keep queries and keys before rotation") {
  // Two tensors of 2u = 2 s h bytes in each of two layers.
  workload::Transformer model = gpt(512, 2, 8);
  model.positions = workload::Positions::kRotary;
  const auto kept = [&](bool views) {
    return memory_of(laid_out(model, {.values_are_views = views}, {.global_batch = 1}, {}), kDevice)
        .front()
        .parts.activations;
  };
  CHECK((kept(true) - kept(false)).b() == 2 * 2 * 2.0 * model.sequence * model.hidden);
}

TEST_CASE("memory: the worked example of docs/concepts/memory.md") {
  const Training training = {.global_batch = 4, .microbatch = 4, .dtype = workload::Dtype::kFp16};
  const workload::Implementation how = {.dtype = workload::Dtype::kFp16,
                                        .loss = workload::Loss::kFused};
  const Layout layout = laid_out(gpt(2048, 24, 16), how, training, {});
  CHECK(layout.stages[0].parameters() == 1317654528);
  const auto memory = memory_of(layout, device_of(**cluster::find_gpu("a100_sxm4_40")));
  const Parts& parts = memory[0].parts;
  CHECK(parts.states().gib() == Approx(19.63).margin(0.005));
  CHECK(parts.activations.gib() == Approx(12.07).margin(0.01));
  CHECK(parts.loss.gib() == Approx(0.78).margin(0.005));
  CHECK(parts.context.gib() == Approx(0.45).margin(0.005));
  CHECK(parts.gathered.mib() == Approx(20.25));
  CHECK(parts.reserve.gib() == Approx(1.63).margin(0.01));
  CHECK(memory[0].peak.value.gib() == Approx(34.59).margin(0.02));
  CHECK(memory[0].phase == "forward");
  CHECK(memory[0].fit == Fit::kFits);
}

TEST_CASE("memory: stages of 1F1B hold fewer microbatches towards the end") {
  const Training training = {.global_batch = 16, .dtype = workload::Dtype::kFp16};
  Plan plan;
  plan.pipeline = 4;
  const Layout layout = laid_out(gpt(1024, 16, 16), {}, training, plan);
  const double block = [&] {
    for (const Layer& l : layout.stages[0].chunks[0].layers)
      if (l.name == "block") return l.saved_bytes().b();
    return 0.0;
  }();
  for (std::size_t s = 0; s < 4; ++s) {
    Bytes most = Bytes::b(0);
    double blocks = 0;
    for (const Layer& l : layout.stages[s].chunks[0].layers)
      if (l.name == "block") blocks += l.count;
    for (const Moment& m : memory_curve(layout, layout.stages[s], kDevice))
      most = std::max(most, m.parts.activations);
    CHECK(most.b() / (block * blocks) == Approx(4.0 - static_cast<double>(s)).epsilon(0.05));
  }
}

// Four stages, four microbatches: buffers for all that a stage receives, less what is in flight and
// counts as an input, and what it sent until its gradient comes: 4 + 4, 4 + 3 + 1, 4 + 2 + 2 and 3.
TEST_CASE("memory: a sharded pipeline holds messages") {
  const Training training = {.global_batch = 8, .dtype = workload::Dtype::kFp16};
  Plan plan;
  plan.data = 2;
  plan.pipeline = 4;
  plan.zero = 3;
  const Layout layout = laid_out(gpt(1024, 16, 16), {}, training, plan);
  const double message = layout.stages[0].chunks[0].layers.back().output.b();
  const double expected[] = {8, 8, 8, 3};
  for (std::size_t s = 0; s < 4; ++s) {
    const Stage& stage = layout.stages[s];
    // Weights in two bytes, their gradients in four.
    const double parameters = stage.gathered.b() - expected[s] * message;
    CHECK(parameters / stage.parameters() == Approx(6));
  }
}

TEST_CASE("memory savers keep ranks and batch, and lay out") {
  const Training training = {.global_batch = 64, .microbatch = 2};
  Plan plan;
  plan.data = 8;
  plan.tensor = 2;
  const workload::Transformer model = gpt(1024, 8, 16);
  const auto before = memory_of(laid_out(model, {}, training, plan), kDevice);
  const auto savers = strategies::memory_savers(training, plan);
  std::vector<std::string> names;
  for (const strategies::MemorySaver& s : savers) {
    INFO(s.change);
    names.push_back(s.change);
    CHECK(strategies::ranks_of(s.plan) == 16);
    CHECK(s.training.global_batch == 64);
    const auto after = memory_of(laid_out(model, {}, s.training, s.plan), kDevice);
    CHECK(fullest(after).peak.value <= fullest(before).peak.value);
  }
  CHECK(names == std::vector<std::string>{
                     "selective recomputation", "full recomputation", "sequence parallelism",
                     "microbatch 1", "ZeRO-1", "ZeRO-2", "ZeRO-3", "offloaded optimizer",
                     "tensor parallelism 4", "pipeline of 2", "context parallelism 2"});
}

}  // namespace
}  // namespace rehearse::memory
