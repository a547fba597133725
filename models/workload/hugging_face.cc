#include "models/workload/hugging_face.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include <fmt/core.h>

#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::workload {
namespace {

// Reads the given values; JSON's null counts as not given.
class Config {
 public:
  explicit Config(const YamlMap& map) : map_(map) {}

  bool has(std::string_view key) const { return map_.has(key) && !map_.is_null(key); }

  std::optional<std::uint32_t> count(std::string_view key) const {
    if (!has(key)) return std::nullopt;
    const auto value = map_.within<std::int64_t>(key, 0, kMostOfDimension);
    return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
  }
  // The first of the keys that is present: configs of one type have differed over time.
  void set(std::uint32_t& to, std::initializer_list<std::string_view> keys) const {
    for (const std::string_view key : keys)
      if (const std::optional<std::uint32_t> value = count(key)) {
        to = *value;
        return;
      }
  }
  bool flag(std::string_view key, bool otherwise) const {
    if (!has(key)) return otherwise;
    return map_.optional<bool>(key).value_or(otherwise);
  }
  std::string text(std::string_view key) const {
    if (!has(key)) return {};
    return map_.optional<std::string>(key).value_or("");
  }
  double number(std::string_view key, double otherwise) const {
    if (!has(key)) return otherwise;
    return map_.optional<double>(key).value_or(otherwise);
  }
  std::optional<Config> map(std::string_view key) const {
    if (!map_.is_map(key)) return std::nullopt;
    return Config(*map_.map(key));
  }

 private:
  YamlMap map_;
};

Activation activation_of(const Config& c, std::initializer_list<std::string_view> keys,
                         Activation otherwise) {
  for (const std::string_view key : keys) {
    const std::string name = c.text(key);
    if (name.empty()) continue;
    return name == "relu"       ? Activation::kRelu
           : name == "silu"     ? Activation::kSilu
           : name == "gelu_new" ? Activation::kGeluNew
                                : Activation::kGelu;
  }
  return otherwise;
}

void read_sizes(const Config& c, Transformer& m) {
  c.set(m.hidden, {"hidden_size", "n_embd", "n_embed", "d_model", "dim"});
  c.set(m.layers, {"num_hidden_layers", "n_layer", "num_layers", "n_layers"});
  c.set(m.heads, {"num_attention_heads", "n_head", "num_heads", "n_heads"});
  c.set(m.kv_heads, {"num_key_value_heads", "num_kv_heads"});
  c.set(m.head_size, {"head_dim", "d_kv"});
  c.set(m.feed_forward,
        {"intermediate_size", "n_inner", "ffn_dim", "d_ff", "hidden_dim", "ffn_hidden_size"});
  c.set(m.vocabulary, {"vocab_size"});
  c.set(m.sequence,
        {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"});
  m.tied_embedding = c.flag("tie_word_embeddings", m.tied_embedding);
}

void set_bias(Transformer& m, bool all) { m.query_bias = m.output_bias = m.linear_bias = all; }

void like_gpt(const Config& c, Transformer& m) {
  read_sizes(c, m);
  m.activation = activation_of(c, {"activation_function", "hidden_act"}, m.activation);
}

void like_llama(const Config& c, Transformer& m) {
  m.gated = true;
  m.activation = Activation::kSilu;
  m.norm = Norm::kRms;
  m.positions = Positions::kRotary;
  m.tied_embedding = false;
  set_bias(m, false);
  read_sizes(c, m);
  m.query_bias = m.output_bias = c.flag("attention_bias", false);
  m.linear_bias = c.flag("mlp_bias", false);
  if (c.flag("use_sliding_window", true)) c.set(m.window, {"sliding_window"});
}

void qwen2(const Config& c, Transformer& m) {
  like_llama(c, m);
  m.query_bias = true;
  if (!c.flag("use_sliding_window", false)) m.window = 0;
}

void qwen3(const Config& c, Transformer& m) {
  like_llama(c, m);
  m.query_norm = true;
  if (!c.flag("use_sliding_window", false)) m.window = 0;
}

void gemma(const Config& c, Transformer& m) {
  like_llama(c, m);
  m.activation = Activation::kGelu;
  m.tied_embedding = c.flag("tie_word_embeddings", true);
}

void read_experts(const Config& c, Transformer& m) {
  Mixture x = {.experts = 0, .per_token = 2, .feed_forward = m.feed_forward};
  c.set(x.experts, {"num_local_experts", "num_experts", "n_routed_experts"});
  c.set(x.feed_forward, {"moe_intermediate_size"});
  x.per_token = c.number("num_experts_per_tok", x.per_token);
  c.set(x.shared, {"shared_expert_intermediate_size"});
  x.shared_gate = x.shared > 0;
  if (const std::optional<std::uint32_t> shared = c.count("n_shared_experts"))
    x.shared = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{*shared} * x.feed_forward, kMostOfDimension));
  c.set(x.first_dense, {"first_k_dense_replace"});
  c.set(x.every, {"decoder_sparse_step", "moe_layer_freq"});
  if (x.experts > 0) m.mixture = x;
}

void mixtral(const Config& c, Transformer& m) {
  like_llama(c, m);
  read_experts(c, m);
}
void qwen2_moe(const Config& c, Transformer& m) {
  qwen2(c, m);
  read_experts(c, m);
}
void qwen3_moe(const Config& c, Transformer& m) {
  qwen3(c, m);
  read_experts(c, m);
}
void minimax(const Config& c, Transformer& m) {
  qwen3(c, m);
  m.joint_query_norm = c.text("qk_norm_type") == "per_layer";
  read_experts(c, m);
}
void gpt_oss(const Config& c, Transformer& m) {
  mixtral(c, m);
  m.query_bias = m.output_bias = true;
  m.full_every = 2;
  if (m.mixture) {
    m.mixture->clamped = true;
    m.mixture->per_token = c.number("experts_per_token", m.mixture->per_token);
  }
}
void deepseek(const Config& c, Transformer& m) {
  mixtral(c, m);
  Latent x = {};
  c.set(x.query_rank, {"q_lora_rank"});
  c.set(x.key_value_rank, {"kv_lora_rank"});
  c.set(x.plain_size, {"qk_nope_head_dim"});
  c.set(x.rotary_size, {"qk_rope_head_dim"});
  c.set(x.value_size, {"v_head_dim"});
  if (x.key_value_rank > 0) m.latent = x;
}

void gpt_neo(const Config& c, Transformer& m) {
  like_gpt(c, m);
  m.query_bias = false;
}

void gptj(const Config& c, Transformer& m) {
  m.tied_embedding = false;
  like_gpt(c, m);
  m.positions = Positions::kRotary;
  m.query_bias = m.output_bias = false;
  m.head_bias = true;
  m.shared_norm = true;
}

void gpt_neox(const Config& c, Transformer& m) {
  m.tied_embedding = false;
  like_gpt(c, m);
  m.positions = Positions::kRotary;
}

void opt(const Config& c, Transformer& m) {
  m.activation = Activation::kRelu;
  read_sizes(c, m);
  m.activation = activation_of(c, {"activation_function"}, m.activation);
  m.position_table = m.sequence + 2;  // two rows precede the first position
  c.set(m.embedding_size, {"word_embed_proj_dim"});
  m.final_norm = c.flag("do_layer_norm_before", true);
}

void bloom(const Config& c, Transformer& m) {
  like_gpt(c, m);
  m.positions = Positions::kNone;
  m.embedding_norm = true;
  if (m.sequence == 0) m.sequence = 2048;
}

void mpt(const Config& c, Transformer& m) {
  read_sizes(c, m);
  m.feed_forward = static_cast<std::uint32_t>(m.hidden * c.number("expansion_ratio", 4));
  const std::optional<Config> attention = c.map("attn_config");
  const bool alibi = attention && attention->flag("alibi", true);
  m.positions = alibi || !c.flag("learned_pos_emb", true) ? Positions::kNone : Positions::kLearned;
  if (c.flag("no_bias", true)) {
    set_bias(m, false);
    m.norm_bias = false;
  }
}

void falcon(const Config& c, Transformer& m) {
  read_sizes(c, m);
  set_bias(m, c.flag("bias", false));
  m.positions = c.flag("alibi", false) ? Positions::kNone : Positions::kRotary;
  const bool grouped = c.flag("new_decoder_architecture", false);
  if (!grouped) m.kv_heads = c.flag("multi_query", true) ? 1 : m.heads;
  m.shared_norm = !grouped && c.flag("parallel_attn", true);
  if (m.sequence == 0) m.sequence = 2048;
}

void phi(const Config& c, Transformer& m) {
  m.tied_embedding = false;
  like_gpt(c, m);
  m.positions = Positions::kRotary;
  m.head_bias = true;
  m.shared_norm = true;
}

void starcoder2(const Config& c, Transformer& m) {
  like_gpt(c, m);
  set_bias(m, c.flag("use_bias", true));
  m.positions = Positions::kRotary;
  c.set(m.window, {"sliding_window"});
}

void bert(const Config& c, Transformer& m) {
  like_gpt(c, m);
  m.causal = false;
  m.final_norm = false;
  m.embedding_norm = true;
  m.token_types = 2;
  c.set(m.token_types, {"type_vocab_size"});
  m.pooler = true;
}

void roberta(const Config& c, Transformer& m) {
  bert(c, m);
  m.position_table = m.sequence;  // two rows are never used
  m.sequence -= m.sequence > 2 ? 2 : 0;
}

void distilbert(const Config& c, Transformer& m) {
  bert(c, m);
  m.token_types = 0;
  m.pooler = false;
}

void t5(const Config& c, Transformer& m) {
  m.activation = Activation::kRelu;
  m.norm = Norm::kRms;
  m.positions = Positions::kRelative;
  m.causal = false;
  set_bias(m, false);
  read_sizes(c, m);
  const std::string feed_forward = c.text("feed_forward_proj");
  m.gated = feed_forward.find("gated") != std::string::npos;
  if (feed_forward.find("gelu") != std::string::npos) m.activation = Activation::kGelu;
  m.decoder_layers = m.layers;
  c.set(m.decoder_layers, {"num_decoder_layers"});
  if (const std::optional<std::uint32_t> positions = c.count("n_positions"))
    m.sequence = *positions;
  if (m.sequence == 0) m.sequence = 512;
}

void switch_transformers(const Config& c, Transformer& m) {
  t5(c, m);
  Mixture x = {.experts = 0, .per_token = 1, .feed_forward = m.feed_forward, .every = 2};
  c.set(x.experts, {"num_experts"});
  c.set(x.every, {"encoder_sparse_step"});
  if (x.experts > 0) m.mixture = x;
}

void vit(const Config& c, Transformer& m) {
  like_gpt(c, m);
  m.causal = false;
  m.vocabulary = 0;
  Image image;
  image.patch = 16;
  c.set(image.side, {"image_size"});
  c.set(image.patch, {"patch_size"});
  c.set(image.channels, {"num_channels"});
  c.set(image.classes, {"num_labels"});
  m.image = image;
  m.query_bias = c.flag("qkv_bias", true);
}

/// The format of the weights that a checkpoint says it has. Null if it is none of those known.
std::optional<WeightFormat> quantised(const Config& c) {
  const std::string method = c.text("quant_method");
  const auto bits = [](const Config& map, std::string_view key) {
    return map.count(key).value_or(0);
  };
  if (method == "mxfp4") return WeightFormat::kMxfp4;
  if (method == "fbgemm_fp8") return WeightFormat::kFp8;
  if (method == "fp8")
    return c.has("weight_block_size") ? WeightFormat::kFp8Block : WeightFormat::kFp8;
  if ((method == "awq" || method == "gptq") && bits(c, "bits") == 4) return WeightFormat::kInt4;
  if (method == "modelopt") {
    const std::string algorithm = c.text("quant_algo");
    if (algorithm == "FP8") return WeightFormat::kFp8;
    if (algorithm == "NVFP4") return WeightFormat::kNvfp4;
  }
  const std::optional<Config> groups = c.map("config_groups");
  const std::optional<Config> group = groups ? groups->map("group_0") : std::nullopt;
  const std::optional<Config> weights = group ? group->map("weights") : std::nullopt;
  if (method != "compressed-tensors" || !weights) return std::nullopt;
  const std::uint32_t width = bits(*weights, "num_bits");
  if (weights->text("type") == "int")
    return width == 4 ? std::optional(WeightFormat::kInt4) : std::nullopt;
  if (width == 4) return WeightFormat::kNvfp4;
  if (width != 8) return std::nullopt;
  return weights->text("strategy") == "block" ? WeightFormat::kFp8Block : WeightFormat::kFp8;
}

struct Type {
  std::string_view name;
  void (*read)(const Config&, Transformer&);
};
constexpr Type kTypes[] = {
    {"bert", bert},
    {"bloom", bloom},
    {"deepseek", deepseek},
    {"deepseek_v2", deepseek},
    {"deepseek_v3", deepseek},
    {"distilbert", distilbert},
    {"falcon", falcon},
    {"gemma", gemma},
    {"gpt2", like_gpt},
    {"gpt_neo", gpt_neo},
    {"gpt_neox", gpt_neox},
    {"gpt_oss", gpt_oss},
    {"gptj", gptj},
    {"kimi_k2", deepseek},
    {"llama", like_llama},
    {"minimax_m2", minimax},
    {"mistral", like_llama},
    {"mixtral", mixtral},
    {"mpt", mpt},
    {"opt", opt},
    {"phi", phi},
    {"phi3", like_llama},
    {"qwen2", qwen2},
    {"qwen2_moe", qwen2_moe},
    {"qwen3", qwen3},
    {"qwen3_moe", qwen3_moe},
    {"roberta", roberta},
    {"starcoder2", starcoder2},
    {"switch_transformers", switch_transformers},
    {"t5", t5},
    {"vit", vit},
};

}  // namespace

std::vector<std::string_view> hugging_face_types() {
  std::vector<std::string_view> names;
  for (const Type& type : kTypes) names.push_back(type.name);
  return names;
}

Result<Transformer> parse_hugging_face(const std::string& text, std::string name) {
  const YamlFile file = TRY(YamlFile::parse(text, name));
  const YamlMap root = file.root();
  Transformer model = {.name = std::move(name)};
  const std::optional<std::string> wanted = root.required<std::string>("model_type");
  const Type* found = nullptr;
  for (const Type& type : kTypes)
    if (wanted && type.name == *wanted) found = &type;
  if (found) {
    const Config config(root);
    found->read(config, model);
    if (const std::optional<Config> quantisation = config.map("quantization_config")) {
      const std::optional<WeightFormat> format = quantised(*quantisation);
      if (!format)
        root.report("quantization_config", "names a format of weights that is not known",
                    "remove the key; precision.weights states the format of a server");
      model.published = format.value_or(WeightFormat::kBf16);
    }
    if (const std::string own = config.text("_name_or_path"); !own.empty()) model.name = own;
  } else if (wanted) {
    root.report("model_type", fmt::format("unknown model type '{}'", *wanted),
                suggest(*wanted, hugging_face_types()));
  }
  TRY(file.status());
  // Missing values of the config are reported here, where its name is known.
  TRY(check(model));
  return model;
}

Result<Transformer> load_hugging_face(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path));
  return parse_hugging_face(text, path.string());
}

}  // namespace rehearse::workload
