// The price of a step of an inference server, and its memory.
#include <catch2/catch.hpp>

#include "models/serving/cache_space.h"
#include "models/serving/formats.h"
#include "models/serving/step_price.h"
#include "models/workload/zoo.h"

namespace rehearse::serving {
namespace {

Deployment deployment(const char* model, const char* device, Precision precision = {},
                      ServingPlan plan = {}) {
  return {.model = std::get<workload::Transformer>(*workload::find_description(model)),
          .device = device,
          .precision = precision,
          .plan = plan};
}

StepPrice price_of(const Deployment& d) {
  Result<StepPrice> price = StepPrice::of(d);
  REQUIRE(price);
  return *price;
}

Step decode(std::int64_t rows, double context) {
  return {.decode_rows = rows, .decode_context = context * static_cast<double>(rows)};
}

Step prefill(std::int64_t tokens, std::int64_t context) {
  return {.prefill = {{tokens, context}}, .finished_prefills = 1};
}

double device_time(const StepPrice& price, const Step& step) {
  return price.price(step).device.s();
}

TEST_CASE("a product of 64 rows on H100 takes what its law says", "[serving]") {
  const Kernels h100(compute::facts_of(**cluster::find_gpu("h100_sxm5_80")),
                     ByteRate::gb_per_s(450), "vllm", "");
  // 51.6 MB of weights, inputs and outputs at 0.862 of 3.35 TB/s: 17.9 us. 48 tiles of 64 × 128 on
  // 132 multiprocessors, 0.36 waves that count as 0.60, at 0.55 of 989 TFLOP/s: 9.8 us. Their fourth
  // powers add up to 18.3 us; 3.0 us start, and 0.04 us for the depth.
  CHECK(h100.product(Weights::kBf16, 64, 6144, 4096) == Approx(21.3e-6).epsilon(0.01));
  CHECK(h100.provenance() == Provenance::kInterpolated);
  // Half as many bytes per weight are not half the time: FP8 quantises its input.
  CHECK(h100.product(Weights::kFp8, 64, 6144, 4096) > 0.5 * 21.3e-6);
}

TEST_CASE("weights of 4 bits multiply in half precision where a device has no units for them",
          "[serving]") {
  // 8,192 rows: multiplying decides.
  const auto time = [](std::string_view device, Weights weights) {
    return Kernels(compute::facts_of(**cluster::find_gpu(device)), ByteRate::gb_per_s(450), "vllm",
                   "")
        .product(weights, 8192, 8192, 28672);
  };
  for (const Weights narrow : {Weights::kNvfp4, Weights::kMxfp4, Weights::kInt4}) {
    CHECK(time("h100_sxm5_80", narrow) ==
          Approx(time("h100_sxm5_80", Weights::kBf16)).epsilon(0.01));
    CHECK(time("l40s", narrow) == Approx(time("l40s", Weights::kBf16)).epsilon(0.01));
  }
  CHECK(time("b200_sxm_180", Weights::kNvfp4) < 0.5 * time("b200_sxm_180", Weights::kBf16));
  // Few rows: the bytes of the weights decide.
  const Kernels h100(compute::facts_of(**cluster::find_gpu("h100_sxm5_80")),
                     ByteRate::gb_per_s(450), "vllm", "");
  CHECK(h100.product(Weights::kNvfp4, 1, 8192, 28672) <
        0.35 * h100.product(Weights::kBf16, 1, 8192, 28672));
}

TEST_CASE("a format that no table of a device has takes the constants of its family", "[serving]") {
  // RTX PRO 6000 has the constants of Ada, whose table has no NVFP4. B200's are 1.071 of the FP8 peak (935.6 TFLOP/s here)
  // for many rows: 3.84 TFLOP take 3.86 ms, and 1.825 bytes per input at 1.79 TB/s 0.24 ms. At Ada's 0.40 they took 10 ms.
  const Kernels pro(compute::facts_of(**cluster::find_gpu("rtx_pro_6000_server")),
                    ByteRate::gb_per_s(64), "vllm", "");
  CHECK(pro.product(Weights::kNvfp4, 8192, 8192, 28672) == Approx(4.114e-3).epsilon(0.01));
}

TEST_CASE("a server starts only with formats that it has kernels for", "[serving]") {
  const auto starts = [](Framework framework, const char* version, const char* device,
                         Precision precision) {
    return check_formats(framework, version, precision, **cluster::find_gpu(device)).has_value();
  };
  using enum workload::WeightFormat;
  const Precision half = {}, fp8 = {.weights = kFp8}, nvfp4 = {.weights = kNvfp4},
                  int4 = {.weights = kInt4}, fp8_cache = {.cache = CacheFormat::kFp8};
  // Marlin widens FP8 from Ampere on, and on Turing in newer versions; Volta has int4 until then.
  CHECK(starts(Framework::kVllm, "", "a100_sxm4_80", fp8));
  CHECK(starts(Framework::kVllm, "", "t4", fp8));
  CHECK_FALSE(starts(Framework::kVllm, "0.11", "t4", fp8));
  CHECK_FALSE(starts(Framework::kVllm, "", "v100_sxm2_32", fp8));
  CHECK_FALSE(starts(Framework::kVllm, "", "v100_sxm2_32", fp8_cache));
  CHECK(starts(Framework::kVllm, "", "v100_sxm2_32", half));
  CHECK(starts(Framework::kVllm, "0.11", "v100_sxm2_32", int4));
  CHECK(starts(Framework::kVllm, "", "h100_sxm5_80", nvfp4));
  CHECK_FALSE(starts(Framework::kSglang, "", "h100_sxm5_80", nvfp4));
  CHECK_FALSE(starts(Framework::kSglang, "", "v100_sxm2_32", half));
  CHECK_FALSE(starts(Framework::kTrtllm, "", "a100_sxm4_80", fp8));
  CHECK_FALSE(starts(Framework::kTrtllm, "", "h100_sxm5_80", nvfp4));
  CHECK(starts(Framework::kTrtllm, "", "b200_sxm_180", nvfp4));
  CHECK_FALSE(starts(Framework::kTrtllm, "", "t4", half));
  CHECK_FALSE(starts(Framework::kTrtllm, "", "mi300x", half));
  CHECK(starts(Framework::kVllm, "", "mi300x", fp8));
  // Every device that has a table has the formats of its table.
  CHECK(starts(Framework::kVllm, "", "l40s", fp8));
  CHECK(starts(Framework::kVllm, "", "b200_sxm_180:1g.23gb", nvfp4));
}

TEST_CASE("versions of servers are numbers with dots", "[serving]") {
  for (const char* wrong : {"-1", "latest", ".", "99999999999", "v"}) {
    INFO(wrong);
    CHECK_FALSE(is_version(wrong));
  }
  for (const char* right : {"", "1", "0.11", "0.11.2"}) {
    INFO(right);
    CHECK(is_version(right));
  }
}

TEST_CASE("experts in several nodes exchange tokens by the links between them", "[serving]") {
  // DeepEP on H800 with 400 Gbit/s per GPU, 128 tokens of 7,168 and 8 experts each: 118 us to dispatch and 195 us to
  // combine on 16 GPUs, 155 and 273 us on 32, 173 and 314 us on 64 (its published table, recalled).
  for (const auto& [ranks, published] : {std::pair{16u, 313e-6}, {32u, 428e-6}, {64u, 487e-6}}) {
    Deployment d = deployment("deepseek_v3", "h100_sxm5_80", {.weights = Weights::kFp8Block},
                              {.expert = ranks, .data = ranks});
    d.nodes = {.devices = 8, .rate = ByteRate::gb_per_s(50)};
    // Besides its exchanges, a step of one tensor rank communicates nothing.
    const double each = price_of(d).parts(decode(128, 1000)).communication / 58;
    CHECK(each == Approx(published).epsilon(0.05));
  }
  // Within a node nothing changes.
  Deployment d = deployment("deepseek_v3", "h200_sxm_141", {.weights = Weights::kFp8Block},
                            {.expert = 8, .data = 8});
  const double within = price_of(d).parts(decode(128, 1000)).communication;
  d.nodes = {.devices = 8, .rate = ByteRate::gb_per_s(50)};
  CHECK(price_of(d).parts(decode(128, 1000)).communication == within);
}

TEST_CASE("tensor ranks in two nodes add a ring over the nodes", "[serving]") {
  Deployment d = deployment("llama3.1_405b", "h100_sxm5_80", {}, {.tensor = 8});
  const double half = price_of(d).parts(decode(32, 1000)).communication;
  d.plan.tensor = 16;
  d.nodes = {.devices = 8, .rate = ByteRate::gb_per_s(50), .latency = Seconds::us(5)};
  // 253 all-reduces of 32 · 16,384 values of 2 bytes: each of eight devices exchanges half of its eighth twice,
  // 2 · (5 us + 65,536 B / 50 GB/s) = 12.6 us.
  CHECK(price_of(d).parts(decode(32, 1000)).communication - half ==
        Approx(253 * 12.62e-6).epsilon(0.01));
  CHECK(price_of(d).reach().provenance == Provenance::kExtrapolated);
}

TEST_CASE("TensorRT-LLM has products of its own for prompts", "[serving]") {
  // 8,192 rows on B200: computing decides, so that the times are as the shares of vLLM's and of
  // TensorRT-LLM's table: 0.3396 / 0.5 in FP8, and 1.071 / 0.83 in NVFP4.
  const auto ratio = [](Weights weights, double rows) {
    const auto time = [&](std::string_view framework) {
      return Kernels(compute::facts_of(**cluster::find_gpu("b200_sxm_180")),
                     ByteRate::gb_per_s(900), framework, "")
          .product(weights, rows, 8192, 28672);
    };
    return time("trtllm") / time("vllm");
  };
  CHECK(ratio(Weights::kFp8, 8192) == Approx(0.679).epsilon(0.05));
  CHECK(ratio(Weights::kNvfp4, 8192) == Approx(1.29).epsilon(0.05));
  CHECK(ratio(Weights::kFp8, 512) == 1);
}

TEST_CASE("vLLM runs another kernel for experts in FP8 blocks on Blackwell from 0.19 on",
          "[serving]") {
  // MiniMax M2.5 on two B200, 64 tokens: 512 pairs that use all 256 experts. In NVFP4 a weight has 0.5625 bytes; the same
  // law with 1 byte and half the rate of multiplication streams 256 · 3 · 3072 · 768 B at 0.8856 of the memory's rate.
  const auto time = [](std::string_view version, const char* device, Weights weights) {
    return Kernels(compute::facts_of(**cluster::find_gpu(device)), ByteRate::gb_per_s(900), "vllm",
                   version)
        .mixture({.hidden = 3072, .width = 768, .held = 256, .weights = weights}, 512, 256);
  };
  const double newer = time("0.19.0", "b200_sxm_180", Weights::kFp8Block);
  const double four_bits = time("0.19.0", "b200_sxm_180", Weights::kNvfp4);
  const double bytes = 256.0 * 3 * 3072 * 768;
  const double rate =
      0.8856 * compute::facts_of(**cluster::find_gpu("b200_sxm_180")).memory_rate.bytes_per_s();
  CHECK(newer - four_bits > 0.9 * (1 - 0.5625) * bytes / rate);
  CHECK(newer - four_bits < 1.2 * (1 - 0.5625) * bytes / rate);
  CHECK(time("", "b200_sxm_180", Weights::kFp8Block) == newer);
  CHECK(time("0.18.2", "b200_sxm_180", Weights::kFp8Block) > 1.25 * newer);
  CHECK(time("0.18", "h100_sxm5_80", Weights::kFp8Block) ==
        time("0.19", "h100_sxm5_80", Weights::kFp8Block));
}

TEST_CASE("a larger step takes longer", "[serving]") {
  for (const char* model : {"llama3.1_8b", "minimax_m2", "gpt_oss_120b", "deepseek_v3"})
    for (const char* device : {"h100_sxm5_80", "b200_sxm_180", "t4", "mi300x"}) {
      CAPTURE(model, device);
      const StepPrice price = price_of(deployment(model, device));
      double before = 0;
      for (const std::int64_t rows : {1, 8, 64, 256, 1024}) {
        const double now = device_time(price, decode(rows, 1000));
        CHECK(now > before);
        CHECK(device_time(price, decode(rows, 4000)) > now);
        before = now;
      }
      for (const std::int64_t tokens : {16, 512, 2048, 8192}) {
        CHECK(device_time(price, prefill(tokens, 4096)) >= device_time(price, prefill(tokens, 0)));
        CHECK(device_time(price, prefill(2 * tokens, 0)) >= device_time(price, prefill(tokens, 0)));
      }
    }
}

TEST_CASE("tensor ranks divide weights and add all-reduces", "[serving]") {
  const StepPrice one = price_of(deployment("llama3.1_70b", "h200_sxm_141"));
  const StepPrice four =
      price_of(deployment("llama3.1_70b", "h200_sxm_141", {}, ServingPlan{.tensor = 4}));
  CHECK(four.model().weights / one.model().weights == Approx(0.25));
  const StepParts a = one.parts(decode(16, 1000)), b = four.parts(decode(16, 1000));
  CHECK(a.communication == 0);
  CHECK(b.communication > 0);
  CHECK(b.products < 0.5 * a.products);
  CHECK(b.products > 0.25 * a.products);
}

TEST_CASE("ranks that hold the same keys and values divide them by tokens", "[serving]") {
  const auto with = [](std::uint32_t tensor, std::uint32_t context) {
    return deployment("deepseek_v3", "h200_sxm_141", {.weights = Weights::kFp8Block},
                      {.tensor = tensor, .context = context});
  };
  const StepPrice whole = price_of(with(8, 1)), divided = price_of(with(8, 8));
  CHECK(divided.model().cache_per_token.b() == 8'784);  // 70,272 / 8
  const auto blocks = [&](std::uint32_t context) {
    return static_cast<double>(cache_space(with(8, context), {})->blocks);
  };
  CHECK(blocks(8) / (8 * blocks(1)) == Approx(1).epsilon(1e-3));
  // Three exchanges per layer: a loss where there is little to read, a gain where there is much.
  CHECK(device_time(divided, decode(1, 100)) > device_time(whole, decode(1, 100)));
  CHECK(device_time(divided, decode(64, 100'000)) < device_time(whole, decode(64, 100'000)));
  CHECK(divided.parts(prefill(512, 0)).communication == whole.parts(prefill(512, 0)).communication);
  CHECK(divided.parts(prefill(512, 64)).communication >
        whole.parts(prefill(512, 64)).communication);
  CHECK(divided.reach().high == Approx(1.15 * whole.reach().high));
  // A layer that adds one row: queries of 16 heads · 576 and results of 16 · 512 elements on each of 8 ranks. Two
  // bytes each, and four for a normaliser; 7/8 of them pass a link.
  const double one = divided.parts(decode(1, 100)).communication,
               more = divided.parts(decode(257, 100)).communication,
               reduces = whole.parts(decode(257, 100)).communication -
                         whole.parts(decode(1, 100)).communication;
  const double bytes = 61 * 256 * 8 * 16.0 * (2 * 576 + 2 * 512 + 4) * 7 / 8;
  CHECK((more - one - reduces) * 450e9 / bytes > 1);  // no link is faster than NVLink
  CHECK((more - one - reduces) * 450e9 / bytes < 2);
  // Llama's 8 heads of keys are divided over 16 ranks in pairs.
  const auto model = deployment("llama3.1_70b", "h200_sxm_141").model;
  CHECK(served(model, {}, {.tensor = 16, .context = 2})->cache_per_token.b() == 20'480);
  CHECK(to_string(served(model, {}, {.tensor = 8, .context = 2}).error())
            .find("does not divide the 1 tensor ranks") != std::string::npos);
}

TEST_CASE("cached bytes per token", "[serving]") {
  // 2 · 80 layers · 8 heads · 128 · 2 bytes.
  CHECK(served(deployment("llama3.1_70b", "h100_sxm5_80").model, {}, {})->cache_per_token.b() ==
        327'680);
  // One of the eight heads on each of 16 ranks, in one byte.
  CHECK(served(deployment("llama3.1_70b", "h100_sxm5_80").model, {.cache = CacheFormat::kFp8},
               {.tensor = 16})
            ->cache_per_token.b() == 20'480);
  // Latents are not divided: 61 · 576 · 2.
  CHECK(served(deployment("deepseek_v3", "h100_sxm5_80").model, {}, {.tensor = 8})
            ->cache_per_token.b() == 70'272);
  // Half of the layers of gpt-oss see 128 tokens.
  const Result<ServedModel> windowed =
      served(deployment("gpt_oss_120b", "h100_sxm5_80").model, {.weights = Weights::kMxfp4}, {});
  CHECK(windowed->cache_per_token == windowed->windowed_per_token);
  CHECK(windowed->window == 128);
}

TEST_CASE("blocks of keys and values are those of a server's log", "[serving]") {
  // vLLM 0.19 with Llama 3.1 8B on an RTX 4090: 2,588 blocks of 16 tokens (serving-vllm-replays).
  const Result<CacheSpace> space =
      cache_space(deployment("llama3.1_8b", "rtx4090"), {.memory = 0.9, .step_tokens = 2048});
  REQUIRE(space);
  CHECK(static_cast<double>(space->blocks) == Approx(2588).epsilon(0.08));
  CHECK(space->total() <= space->usable);
}

TEST_CASE("prompts of experts have passes over their hidden states", "[serving]") {
  // vLLM from 0.14 on: 66 passes of 2 · 2,048 · 2,880 bytes in each of 36 layers at 0.8 · 3.35 TB/s,
  // 1.58 times the time of experts, and 0.932 of all kernels. Steps of up to 2,048 tokens are in
  // graphs here; otherwise the host's 36 · 0.36 ms are less.
  Deployment d = deployment("gpt_oss_120b", "h100_sxm5_80", {.weights = Weights::kMxfp4});
  d.version = "0.18";
  d.graphs = 2048;
  const StepPrice price = price_of(d);
  const StepParts parts = price.parts(prefill(2048, 0));
  const double passes = 36 * 66 * 2.0 * 2048 * 2880 / (0.8 * 3.35e12);
  CHECK(device_time(price, prefill(2048, 0)) ==
        Approx(0.932 * (parts.kernels() + 0.58 * parts.experts) + passes + 36 * 10.4e-6 + 0.23e-3 +
               4.85e-6));
  // A dense model of the same version has none.
  Deployment dense = deployment("llama3.1_8b", "h100_sxm5_80");
  dense.graphs = 2048;
  CHECK(device_time(price_of(dense), prefill(2048, 0)) ==
        Approx(0.932 * price_of(dense).parts(prefill(2048, 0)).kernels() + 32 * 10.4e-6 + 0.23e-3 +
               4.85e-6));
}

TEST_CASE("a step that verifies drafts reads keys once, and multiplies more rows", "[serving]") {
  Deployment d = deployment("llama3.1_70b", "h100_sxm5_80", {}, {.tensor = 4});
  const StepPrice plain = price_of(d);
  const Step one = decode(16, 2000);
  Step four = one;
  four.drafted = 3 * 16;
  CHECK(plain.parts(four).attention == Approx(plain.parts(one).attention).epsilon(1e-3));
  CHECK(plain.parts(four).products == Approx(plain.parts(decode(64, 2000)).products));
  CHECK(plain.parts(four).head == Approx(plain.parts(decode(64, 2000)).head));
  // An extra layer: a pass over the tokens of the step, and two of the rows alone.
  d.draft = Draft{.tokens = 3};
  const StepPrice heads = price_of(d);
  const Result<ServedModel> layer = extra_layer(d.model, d.precision, d.plan);
  REQUIRE(layer);
  CHECK(layer->weights / plain.model().weights < 1.5 / 80);
  const double cost = device_time(heads, four) - device_time(plain, four);
  const double per_layer = (plain.parts(four).kernels() - plain.parts(four).head) / 80;
  CHECK(cost > 0.9 * (per_layer + 3 * plain.parts(one).head));
  CHECK(cost < 1.2 * (3 * per_layer + 3 * plain.parts(four).head + 3 * 20e-6));
  // A model as large as the served one costs about as much as it for every proposal.
  d.draft->model = d.model;
  CHECK(device_time(price_of(d), four) > 3.5 * device_time(plain, one));
  CHECK(price_of(d).reach().high > plain.reach().high);
  d.plan = {.tensor = 2, .pipeline = 2};
  CHECK(!StepPrice::of(d));
  const auto blocks = [&](std::optional<Draft> draft) {
    Deployment b = deployment("llama3.1_8b", "h100_sxm5_80");
    b.draft = std::move(draft);
    return cache_space(b, {})->blocks;
  };
  CHECK(blocks(Draft{}) < blocks({}));
}

TEST_CASE("without graphs a step takes what the host needs to launch it", "[serving]") {
  // vLLM 0.6: 80 layers of 0.41 ms, 4.4 ms per step and 10 us for the row that ends.
  Deployment d = deployment("llama3.1_70b", "h100_sxm5_80", {}, {.tensor = 8});
  d.version = "0.6.0";
  CHECK(device_time(price_of(d), prefill(16, 0)) == Approx(80 * 0.41e-3 + 4.4e-3 + 10e-6));
  CHECK(device_time(price_of(d), decode(1, 16)) < 0.02);
}

TEST_CASE("prompts are tokenised one after another", "[serving]") {
  // vLLM from 0.14 on: 2.8 ms per request and 5 ms per 1,000 tokens, in which no other request enters; then 8 ms.
  Deployment d = deployment("llama3.1_8b", "h100_sxm5_80");
  d.version = "0.19";
  const RequestTime time = price_of(d).request(3000);
  CHECK(time.serial.ms() == Approx(2.8 + 3 * 5));
  CHECK(time.latency.ms() == Approx(8));
}

TEST_CASE("what does not fit is refused with a remedy", "[serving]") {
  const Result<CacheSpace> space = cache_space(deployment("llama3.1_70b", "h100_sxm5_80"), {});
  REQUIRE(!space);
  CHECK(to_string(space.error()).find("does not fit on h100_sxm5_80") != std::string::npos);
  CHECK(to_string(space.error()).find("raise plan.tensor") != std::string::npos);
  CHECK(!cache_space(deployment("llama3.1_8b", "h100_sxm5_80"), {.block_tokens = 0}));
  CHECK(!StepPrice::of(deployment("llama3.1_8b", "h100_sxm5_80", {}, {.expert = 2})));
  CHECK(!StepPrice::of(deployment("llama3.1_8b", "h100_sxm5_80", {}, {.tensor = 64})));
  CHECK(!StepPrice::of(deployment("bert_base", "h100_sxm5_80")));
}

TEST_CASE("a step with state off the device takes the longest of device, link and drives",
          "[serving]") {
  Deployment d = deployment("llama3.1_8b", "h100_sxm5_80");
  const StepPrice whole = price_of(d);
  const Bytes weights = whole.model().weights, token = whole.model().cache_per_token;
  const double link = 0.8 * 16 * 4e9;  // PCIe 5.0 with 16 lanes
  const Step step = decode(64, 2000);

  // Half of the weights and all keys and values are loaded; 64 tokens are stored meanwhile.
  d.offload = Offload{.weights = {.host = 0.5}, .cache = {.host = 1}};
  const double loads = (0.5 * weights.b() + 64 * 2000 * token.b()) / link;
  CHECK(device_time(price_of(d), step) == Approx(loads));
  CHECK(price_of(d).reach().high > whole.reach().high);

  // The drives read the rest of the weights and their half of the cache, and write half of 64 tokens.
  d.offload =
      Offload{.weights = {.nvme = 0.5}, .cache = {.nvme = 0.5}, .nvme_rate = ByteRate::gb_per_s(2)};
  CHECK(device_time(price_of(d), step) ==
        Approx(0.5 * (weights.b() + (64 * 2000 + 64) * token.b()) / 2e9));
  d.offload->nvme_rate.reset();
  CHECK(!StepPrice::of(d));

  // On the host, attention reads the cache at the rate of its memory after the products of the device:
  // 16 ms for each GB and 50 GB/s in all, instead of the device's own attention.
  d.offload = Offload{.cache = {.host = 1}, .host_attention = true};
  const double slow = device_time(price_of(d), step);
  d.offload->host_memory_rate = ByteRate::gb_per_s(100);
  const double fast = device_time(price_of(d), step);
  CHECK(slow - fast == Approx(64 * 2000 * token.b() * (1 / 50e9 - 1 / 100e9)));
  CHECK(fast - 64 * 2000 * token.b() / 100e9 < device_time(whole, step));

  // What a prompt's chunk reads is loaded nevertheless.
  d.offload->host_memory_rate = ByteRate::gb_per_s(1e-3);
  const Step chunk = {.prefill = {{1, 200000}}};
  CHECK(device_time(price_of(d), chunk) == Approx(200000 * token.b() / link));

  // Prompts that are stored: 100,000 tokens of 128 KiB at 51.2 GB/s are shorter than computing them.
  d.offload = Offload{.cache = {.host = 1}};
  CHECK(device_time(price_of(d), prefill(20000, 0)) == device_time(whole, prefill(20000, 0)));

  // Two parts of 64 rows each read the weights of a layer from the device's memory.
  d.offload = Offload{.batches = 2};
  CHECK(device_time(price_of(d), decode(128, 10)) > 1.5 * device_time(whole, decode(128, 10)));
  d.plan.tensor = 2;
  CHECK(!StepPrice::of(d));
}

TEST_CASE("each tier limits the keys and values of its share", "[serving]") {
  Deployment d = deployment("llama3.1_8b", "h100_sxm5_80");
  const ServedModel model = served(d.model, d.precision, d.plan).value();
  const double block = 16 * model.cache_per_token.b();
  d.offload = Offload{.weights = {.host = 0.5, .nvme = 0.5},
                      .cache = {.host = 0.75, .nvme = 0.25},
                      .host_memory = Bytes::gb(20),
                      .nvme = Bytes::gb(10)};
  // The host has 20 GB less half of 16 GB of weights for three quarters of each block.
  const double by_host = (20e9 - 0.5 * model.weights.b()) / 0.75 / block,
               by_nvme = (10e9 - 0.5 * model.weights.b()) / 0.25 / block;
  CHECK(cache_space(d, {})->blocks == static_cast<std::int64_t>(std::min(by_host, by_nvme)));
  CHECK(cache_space(d, {})->cache == Bytes::b(0));  // of the device
  d.offload->nvme = Bytes::gb(9);
  CHECK(cache_space(d, {})->blocks ==
        static_cast<std::int64_t>((9e9 - 0.5 * model.weights.b()) / 0.25 / block));
  d.offload->nvme = Bytes::gb(8);
  CHECK(
      to_string(cache_space(d, {}).error()).find("weights do not fit the 7.5 GiB of the drives") !=
      std::string::npos);
  // Without weights the device has more room for them than with all of its own.
  const CacheSpace all = *cache_space(deployment("llama3.1_8b", "h100_sxm5_80"), {});
  d.offload = Offload{.weights = {.host = 1}};
  const CacheSpace away = *cache_space(d, {});
  CHECK((all.weights - away.weights).b() == Approx(model.weights.b() * (1 - 2.0 / 32)));
  CHECK(away.blocks > all.blocks);
}

TEST_CASE("versions whose runs disagree have a wider interval", "[serving]") {
  const auto reach = [](const char* version, const char* architecture) {
    const Server server = server_for(Framework::kTrtllm, version, architecture);
    CHECK(server.first_low < 1);
    CHECK(server.first_high >= server.high);
    return server.high / server.low;
  };
  CHECK(reach("1.0.0rc3", "hopper_gh100") > reach("1.2.0", "blackwell_gb100"));
  CHECK(reach("1.2.0rc6", "hopper_gh100") > reach("1.0.0rc3", "hopper_gh100"));
}

TEST_CASE("an unknown device has a price with a wider interval", "[serving]") {
  const auto width = [](const char* device) {
    const Estimate<double> reach = price_of(deployment("llama3.1_8b", device)).reach();
    CHECK(reach.low < 1);
    CHECK(reach.high > 1);
    return reach.high / reach.low;
  };
  CHECK(width("h200_sxm_141") == width("h100_sxm5_80"));
  CHECK(width("b300") > width("b200_sxm_180"));
  CHECK(width("mi300x") > width("b300"));
}

}  // namespace
}  // namespace rehearse::serving
