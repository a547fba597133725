// The workload section of a job, and configurations of Hugging Face.
#include <fstream>
#include <map>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/workload/hugging_face.h"
#include "models/workload/read_model.h"
#include "models/workload/zoo.h"
#include "tests/support/data.h"

using namespace rehearse;
using namespace rehearse::workload;

namespace {

struct Read {
  std::optional<Workload> workload;
  std::string errors;
};

Read read(const std::string& text, const std::filesystem::path& folder = {}) {
  const Result<YamlFile> file = YamlFile::parse(text, "job.yaml");
  REQUIRE(file);
  const YamlMap map = file->root();
  Read result = {.workload = read_model(map, {}, folder), .errors = {}};
  map.no_other_keys();
  const Status status = file->status();
  if (!status) result.errors = to_string(status.error());
  return result;
}

Workload right(const std::string& text) {
  Read result = read(text);
  INFO(result.errors);
  REQUIRE(result.workload);
  CHECK(result.errors.empty());
  return *result.workload;
}

std::string parameters(const Workload& w) { return fmt::format("{:.0f}", w.parameters()); }

std::string parameters_of(const std::string& config) {
  const Result<Transformer> model = parse_hugging_face(config, "config.json");
  INFO((model ? "" : to_string(model.error())));
  REQUIRE(model);
  const Result<Workload> w = transformer(*model, {});
  INFO((w ? "" : to_string(w.error())));
  REQUIRE(w);
  return parameters(*w);
}

}  // namespace

TEST_CASE("a family with its dimensions is a model") {
  const Workload w = right(
      "model: gpt\nhidden: 12288\nlayers: 96\nheads: 96\nsequence: 2048\nvocabulary: 51200\n");
  CHECK(w.name == "gpt");
  // 12 l h^2 + 13 l h + 2 h of the blocks and the final norm, (V + s) h of the tables.
  const double h = 12288;
  CHECK(w.parameters() == 96 * (12 * h * h + 13 * h) + 2 * h + (51200 + 2048) * h);
  CHECK(w.tokens_per_sample == 2048);
}

TEST_CASE("given dimensions override those of the zoo") {
  const Workload own = right("model: gpt2\nlayers: 1\nname: small\n");
  CHECK(own.name == "small");
  CHECK(own.parameters() == 124'439'808 - 11 * (12 * 768. * 768 + 13 * 768));
  CHECK(parameters(right("model: resnet50\nclasses: 10\n")) == "23528522");
  CHECK(parameters(right("model: alexnet\nclasses: 10\n")) == "57044810");
  // 1024 patches and one token for the class, at 512 pixels
  CHECK(right("model: vit_b_16\nimage: 512\n").parameters() == 86'567'656 + (1025 - 197) * 768);
  CHECK(right("model: moe\nhidden: 64\nlayers: 2\nheads: 4\nexpert_feed_forward: 128\n"
              "sequence: 16\nvocabulary: 100\nexperts: 4\n")
            .experts == 4);
}

TEST_CASE("implementation keys are separate from the dimensions of a model") {
  const auto has_attention = [](const Workload& w) {
    for (const Op& op : w.layers[1].forward)
      if (op.kind == OpKind::kAttention) return true;
    return false;
  };
  CHECK(has_attention(right("model: gpt2\n")));
  CHECK_FALSE(has_attention(right("model: gpt2\nattention: unfused\n")));
  const Workload fused = right("model: gpt2\nloss: fused\nelementwise: compiled\ndropout: true\n");
  CHECK(fused.layers.back().saved.back().bytes.b() == 2. * 1024 * 50257);
}

TEST_CASE("a kind with all its dimensions needs no zoo") {
  CHECK(parameters(right("kind: vgg\nconvolutions: [1, 1, 2, 2, 2]\n")) == "132863336");
  const Workload w = right(R"(kind: convnet
image: 32
pieces:
  - {convolution: 16, kernel: 3, padding: 1, batch_norm: true, relu: true}
  - repeat: 2
    pieces:
      - branches:
          - pieces: []
          - pieces:
              - {convolution: 16, kernel: [1, 3], padding: [0, 1], batch_norm: true}
        join: add
        relu: true
  - {pool: global}
  - {linear: 10}
)");
  CHECK(w.layers.size() == 7);
  CHECK(w.parameters() == (3 * 9 * 16 + 32) + 2 * (16 * 16 * 3 + 32) + 170);
  CHECK(w.layers[2].inputs == std::vector<std::uint32_t>{0, 1});
  CHECK(w.layers[2].output.b() == 2 * 16 * 32 * 32.);
}

TEST_CASE("layers may be known by their measured times alone") {
  const Workload w = right(R"(samples: 64
layers:
  - {name: conv1, forward: 1.2 ms, backward: 2 ms, output: 4 MB, parameters: 1e6}
  - {name: conv2, forward: 3 ms, output: 2 MB, kept: 8 MB, count: 3}
  - {name: join, forward: 1 us, output: 2 MB, inputs: [conv1, conv2]}
)");
  CHECK(w.samples == 64);
  CHECK(w.layer_count() == 5);
  CHECK(w.parameters() == 1e6);
  CHECK(w.layers[0].forward[0].measured->value.ms() == Approx(1.2));
  CHECK(w.layers[1].backward[0].measured->value.ms() == Approx(6));
  CHECK(w.layers[1].saved_bytes().b() == 8e6);
  CHECK(w.layers[2].inputs == std::vector<std::uint32_t>{0, 1});
  CHECK(read("layers:\n  - {name: a, forward: 1 ms, output: 1 MB, inputs: [b]}\n").errors ==
        "job.yaml:2:52: layers[0].inputs: no earlier layer 'b'; no inputs, because it is the "
        "first layer");
}

TEST_CASE("errors have their place and the nearest name") {
  CHECK(read("model: gtp2\n").errors ==
        "job.yaml:1:8: model: unknown model 'gtp2'; did you mean 'gpt2'?");
  CHECK(read("model: gpt2\nhiden: 3\n").errors ==
        "job.yaml:2:1: hiden: unknown key; did you mean 'hidden'?");
  CHECK(read("model: gpt2\nheads: 7\n").errors ==
        "job.yaml:1:8: model: 'gpt2' divides a hidden size of 768 among 7 heads; heads that divide "
        "it, or a head size");
  CHECK(read("model: gpt2\nlayers: 0\n").errors ==
        "job.yaml:2:9: layers: 0 is out of range; a whole number from 1 to 100000000");
  CHECK(
      read("model: bert\n").errors ==
      "job.yaml:1:8: model: 'bert' has no hidden size; a whole number above zero; a model of this "
      "family: bert_base, bert_large");
  CHECK(read("hidden: 3\n")
            .errors.find("model: is missing; a model, a hugging_face config, a kind, or layers") !=
        std::string::npos);
  CHECK(read("model: gpt2\nkind: swin\n")
            .errors.find("cannot be combined with another description") != std::string::npos);
  CHECK(read("model: gpt2\nattention: flesh\n").errors ==
        "job.yaml:2:12: attention: unknown value 'flesh'; did you mean 'flash'?");
  CHECK(read("kind: convnet\npieces: [{convolution: 4, kernle: 3}]\n")
            .errors.find("pieces[0].kernle: unknown key; did you mean 'kernel'?") !=
        std::string::npos);
  CHECK(read("kind: convnet\npieces:\n  - repeat: 1000000\n    pieces:\n      - {convolution: 4}\n")
            .errors.find("exceeds the number of layers") != std::string::npos);
}

TEST_CASE("parameters of Hugging Face configs equal the published counts") {
  CHECK(parameters_of(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
    "n_inner": null, "n_positions": 1024, "vocab_size": 50257, "activation_function": "gelu_new"})") ==
        "124439808");
  CHECK(parameters_of(R"({"model_type": "gpt_neo", "hidden_size": 2048, "num_layers": 24,
    "num_heads": 16, "intermediate_size": null, "max_position_embeddings": 2048,
    "vocab_size": 50257})") == "1315575808");
  CHECK(parameters_of(R"({"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16,
    "n_inner": null, "n_positions": 2048, "vocab_size": 50400, "tie_word_embeddings": false})") ==
        "6050882784");
  CHECK(parameters_of(R"({"model_type": "gpt_neox", "hidden_size": 6144, "num_hidden_layers": 44,
    "num_attention_heads": 64, "intermediate_size": 24576, "max_position_embeddings": 2048,
    "vocab_size": 50432, "tie_word_embeddings": false})") == "20554567680");
  CHECK(parameters_of(R"({"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24,
    "num_attention_heads": 16, "ffn_dim": 4096, "max_position_embeddings": 2048,
    "word_embed_proj_dim": 512, "do_layer_norm_before": false, "vocab_size": 50272,
    "activation_function": "relu"})") == "331196416");
  CHECK(parameters_of(R"({"model_type": "bloom", "n_embed": 1024, "n_layer": 24,
    "num_attention_heads": 16, "vocab_size": 250880})") == "559214592");
  CHECK(parameters_of(R"({"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32,
    "expansion_ratio": 4, "max_seq_len": 2048, "vocab_size": 50432, "no_bias": true,
    "attn_config": {"alibi": true, "attn_impl": "torch"}})") == "6649286656");
  CHECK(parameters_of(R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
    "num_attention_heads": 71, "multi_query": true, "new_decoder_architecture": false,
    "parallel_attn": true, "bias": false, "alibi": false, "vocab_size": 65024})") == "6921720704");
  CHECK(parameters_of(R"({"model_type": "phi", "hidden_size": 2560, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": null, "intermediate_size": 10240,
    "max_position_embeddings": 2048, "vocab_size": 51200, "tie_word_embeddings": false})") ==
        "2779683840");
  CHECK(parameters_of(R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18,
    "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256,
    "intermediate_size": 16384, "max_position_embeddings": 8192, "vocab_size": 256000})") ==
        "2506172416");
  CHECK(parameters_of(R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
    "max_position_embeddings": 32768, "vocab_size": 152064, "tie_word_embeddings": false,
    "use_sliding_window": false, "sliding_window": 131072, "rope_theta": 1000000.0})") ==
        "7615616512");
  CHECK(parameters_of(R"({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "max_position_embeddings": 32768, "vocab_size": 32000, "sliding_window": 4096,
    "tie_word_embeddings": false})") == "7241732096");
  CHECK(parameters_of(R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "max_position_embeddings": 32768, "vocab_size": 32000, "sliding_window": null,
    "num_local_experts": 8, "num_experts_per_tok": 2})") == "46702792704");
  CHECK(parameters_of(R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "max_position_embeddings": 163840, "vocab_size": 129280})") == "671026404352");
  CHECK(parameters_of(R"({"model_type": "starcoder2", "hidden_size": 3072, "num_hidden_layers": 30,
    "num_attention_heads": 24, "num_key_value_heads": 2, "intermediate_size": 12288,
    "max_position_embeddings": 16384, "vocab_size": 49152, "use_bias": true,
    "sliding_window": 4096, "hidden_act": "gelu_pytorch_tanh"})") == "3030371328");
  CHECK(parameters_of(R"({"model_type": "bert", "hidden_size": 1024, "num_hidden_layers": 24,
    "num_attention_heads": 16, "intermediate_size": 4096, "max_position_embeddings": 512,
    "type_vocab_size": 2, "vocab_size": 30522, "hidden_act": "gelu"})") == "335141888");
  CHECK(parameters_of(R"({"model_type": "distilbert", "dim": 768, "n_layers": 6, "n_heads": 12,
    "hidden_dim": 3072, "max_position_embeddings": 512, "vocab_size": 30522})") == "66362880");
  CHECK(parameters_of(R"({"model_type": "roberta", "hidden_size": 768, "num_hidden_layers": 12,
    "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 514,
    "type_vocab_size": 1, "vocab_size": 50265})") == "124645632");
  CHECK(parameters_of(R"({"model_type": "t5", "d_model": 512, "d_ff": 1024, "d_kv": 64,
    "num_heads": 6, "num_layers": 8, "num_decoder_layers": 8, "vocab_size": 32128,
    "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})") == "76961152");
  CHECK(parameters_of(R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12,
    "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224, "patch_size": 16,
    "num_channels": 3, "qkv_bias": true, "id2label": {"0": "tench", "1": "goldfish"}})") ==
        "86567656");
}

TEST_CASE("every second layer of both stacks of a Switch Transformer is a mixture") {
  const Result<Transformer> model = parse_hugging_face(
      R"({"model_type": "switch_transformers", "d_model": 768, "d_ff": 3072, "d_kv": 64,
    "num_heads": 12, "num_layers": 12, "num_decoder_layers": 12, "num_experts": 8,
    "encoder_sparse_step": 2, "decoder_sparse_step": 2, "vocab_size": 32128,
    "feed_forward_proj": "relu"})",
      "config.json");
  REQUIRE(model);
  const Result<Workload> w = transformer(*model, {});
  REQUIRE(w);
  CHECK(w->layer_count() == 26);
  // T5-base, and in 12 layers seven more experts and a router.
  CHECK(w->parameters() == 222'903'552 + 12 * (7 * 2 * 768. * 3072 + 768 * 8));
  CHECK(w->experts_per_token == 1);
}

TEST_CASE("configs of measured models are read, and give their parameters") {
  const auto folder = test::shared_data("neusight-models/model_configs");
  SKIP_WITHOUT_DATA(folder);
  const std::map<std::string, std::string> known = {{"bert_large", "335141888"},
                                                    {"gpt2_large", "774030080"},
                                                    {"gpt2_xl", "1557611200"},
                                                    {"opt_13", "1315758080"},
                                                    {"gpt3_27", "2651553280"}};
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    INFO(entry.path().string());
    const Result<Transformer> model = load_hugging_face(entry.path());
    INFO((model ? "" : to_string(model.error())));
    REQUIRE(model);
    const Result<Workload> w = transformer(*model, {});
    REQUIRE(w);
    if (const auto found = known.find(entry.path().stem().string()); found != known.end()) {
      CHECK(parameters(*w) == found->second);
      ++compared;
    }
  }
  CHECK(compared == known.size());
}

TEST_CASE("a config in the folder of the job gives the model, with overrides of the job") {
  const std::filesystem::path folder = test::scratch_folder();
  std::ofstream(folder / "config.json")
      << R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192,
  "max_position_embeddings": 131072, "vocab_size": 128256, "tie_word_embeddings": true,
  "rope_scaling": {"factor": 32.0}, "architectures": ["LlamaForCausalLM"]})";
  const Read found = read("hugging_face: config.json\nsequence: 8192\n", folder);
  INFO(found.errors);
  REQUIRE(found.workload);
  CHECK(parameters(*found.workload) == "1235814400");
  CHECK(found.workload->tokens_per_sample == 8192);

  std::ofstream(folder / "wrong.json") << R"({"model_type": "llama", "hidden_size": "big"})";
  CHECK(read("hugging_face: wrong.json\n", folder)
            .errors.find("hugging_face: " + (folder / "wrong.json").string() +
                         ":1:40: hidden_size: 'big' is not a number") != std::string::npos);
}

TEST_CASE("the config of a quantised checkpoint gives the format of its weights") {
  const auto read = [](const std::string& quantisation) {
    return parse_hugging_face(
        R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 512,
  "vocab_size": 100, "quantization_config": )" +
            quantisation + "}",
        "config.json");
  };
  const auto group = [](const std::string& weights) {
    return R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": )" +
           weights + "}}}";
  };
  using F = WeightFormat;
  const std::vector<std::pair<std::string, F>> known = {
      {"null", F::kBf16},
      {R"({"quant_method": "fp8", "weight_block_size": [128, 128]})", F::kFp8Block},
      {R"({"quant_method": "fp8", "weight_block_size": null})", F::kFp8},
      {R"({"quant_method": "fbgemm_fp8"})", F::kFp8},
      {R"({"quant_method": "mxfp4"})", F::kMxfp4},
      {R"({"quant_method": "awq", "bits": 4})", F::kInt4},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", F::kNvfp4},
      {group(R"({"type": "float", "num_bits": 8, "strategy": "channel"})"), F::kFp8},
      {group(R"({"type": "float", "num_bits": 8, "strategy": "block"})"), F::kFp8Block},
      {group(R"({"type": "int", "num_bits": 4})"), F::kInt4}};
  for (const auto& [text, format] : known) {
    const Result<Transformer> model = read(text);
    INFO(text << (model ? "" : to_string(model.error())));
    REQUIRE(model);
    CHECK(model->published == format);
  }
  const Result<Transformer> unknown = read(R"({"quant_method": "gptq", "bits": 3})");
  REQUIRE_FALSE(unknown);
  CHECK(to_string(unknown.error()).find("quantization_config: names a format of weights") !=
        std::string::npos);
}

TEST_CASE("configs that cannot be read are errors with the reason") {
  const auto error = [](const std::string& config) {
    const Result<Transformer> model = parse_hugging_face(config, "config.json");
    return model ? "no error" : to_string(model.error());
  };
  CHECK(error(R"({"model_type": "gpt_noe"})") ==
        "config.json:1:16: model_type: unknown model type 'gpt_noe'; did you mean 'gpt_neo'?");
  CHECK(error(R"({"hidden_size": 64})") == "config.json:1:1: model_type: is missing");
  CHECK(error(R"({"model_type": "llama", "hidden_size": "big"})").find("hidden_size: 'big'") !=
        std::string::npos);
  CHECK(error(R"({"model_type": "llama", "hidden_size": 64})") ==
        "'config.json' has no layers; a whole number above zero");
}
