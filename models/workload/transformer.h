// Transformers: GPT, Llama, BERT, T5, ViT and their mixtures of experts, from their dimensions to a
// Workload for one sample. Formulas, their sources and how far they hold:
// docs/concepts/workload.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/workload/weight_format.h"
#include "models/workload/workload.h"
#include "sim/base/result.h"

namespace rehearse::workload {

/// The limits of dimensions in a description, so that products of two remain exact.
inline constexpr std::uint32_t kMostOfDimension = 100'000'000;
inline constexpr std::uint32_t kMostLayers = 100'000;
inline constexpr std::uint32_t kMostPixels = 65'535;  ///< along a side

enum class Norm : std::uint8_t { kLayer, kRms };
inline constexpr std::string_view kNormNames[] = {"layer", "rms"};

enum class Positions : std::uint8_t {
  kNone,      ///< or positions that cost nothing: ALiBi
  kLearned,   ///< a table, added to the embedding
  kRotary,    ///< queries and keys turned in every layer
  kRelative,  ///< a bias of the scores that all layers share (T5)
};
inline constexpr std::string_view kPositionsNames[] = {"none", "learned", "rotary", "relative"};

enum class Activation : std::uint8_t {
  kGelu,
  kRelu,
  kSilu,
  kGeluNew,  ///< GeLU by its tanh formula, which frameworks spell out term by term (GPT-2)
};
inline constexpr std::string_view kActivationNames[] = {"gelu", "relu", "silu", "gelu_new"};

/// Experts instead of the feed-forward part.
struct Mixture {
  std::uint32_t experts;
  double per_token;               ///< experts that a token goes to
  std::uint32_t feed_forward;     ///< width of one expert
  std::uint32_t shared = 0;       ///< feed-forward size of the experts that every token goes to
  std::uint32_t first_dense = 0;  ///< number of layers before the first mixture
  std::uint32_t every = 1;        ///< distance of mixture layers, the last of each group
  bool shared_gate = false;       ///< a number per token weighs the shared experts (Qwen)
  bool clamped = false;           ///< both inputs of a gated activation are clamped (GPT-OSS)
};

/// Attention over low-rank latents (DeepSeek-V2).
struct Latent {
  std::uint32_t query_rank;  ///< 0: queries come straight from the hidden state
  std::uint32_t key_value_rank;
  std::uint32_t plain_size;   ///< per head, without positions
  std::uint32_t rotary_size;  ///< per head, with positions; its key is shared by all heads
  std::uint32_t value_size;
};

/// An image cut into square patches, each a token; a class is predicted from one token or from the
/// mean of all.
struct Image {
  std::uint32_t side = 224;  ///< pixels
  std::uint32_t patch = 0;   ///< pixels along each side
  std::uint32_t channels = 3;
  std::uint32_t classes = 1000;
  bool class_token = true;  ///< one more token, which holds the class
  std::uint32_t tokens() const { return (side / patch) * (side / patch) + (class_token ? 1 : 0); }
};

struct Transformer {
  std::string name;
  std::uint32_t hidden = 0;
  std::uint32_t layers = 0;            ///< layers of the encoder if there is a decoder
  std::uint32_t decoder_layers = 0;    ///< with cross-attention, after the encoder (T5)
  std::uint32_t decoder_sequence = 0;  ///< tokens of a sample in the decoder; 0: as `sequence`
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;      ///< 0: as many as heads
  std::uint32_t head_size = 0;     ///< 0: hidden / heads
  std::uint32_t feed_forward = 0;  ///< 0: four times hidden, where there is no gate
  std::uint32_t vocabulary = 0;
  std::uint32_t sequence = 0;        ///< tokens of a sample; of images: their patches
  std::uint32_t position_table = 0;  ///< rows of learned positions; 0: as the sequence
  bool gated = false;                ///< feed-forward with a gate: SwiGLU, GeGLU
  Activation activation = Activation::kGelu;
  Norm norm = Norm::kLayer;
  bool norm_bias = true;  ///< for Norm::kLayer
  Positions positions = Positions::kLearned;
  bool causal = true;
  bool tied_embedding = true;
  bool query_bias = true;   ///< of queries, keys and values
  bool output_bias = true;  ///< of the projection after attention
  bool linear_bias = true;  ///< of the feed-forward part
  bool head_bias = false;   ///< of the logits
  bool query_norm = false;  ///< queries and keys normalised by head (Qwen3)
  /// The same over all heads, whose squares tensor ranks sum up (MiniMax M2).
  bool joint_query_norm = false;
  bool shared_norm = false;  ///< one norm before attention and feed-forward (GPT-J, Falcon)
  bool final_norm = true;
  bool embedding_norm = false;
  std::uint32_t token_types = 0;     ///< rows of a second table added to the embedding (BERT)
  bool pooler = false;               ///< a square matrix on the first token (BERT)
  std::uint32_t embedding_size = 0;  ///< width of the tables, with projections to hidden; 0: hidden
  std::uint32_t window = 0;          ///< keys a query sees at most; 0: all
  /// Distance of layers without the window (GPT-OSS 2, Gemma 3 6); 0: all layers have it. A training
  /// step counts all layers as without, if there are any.
  std::uint32_t full_every = 0;
  std::optional<Mixture> mixture = {};
  std::optional<Latent> latent = {};
  std::optional<Image> image = {};
  WeightFormat published =
      WeightFormat::kBf16;  ///< weights as they are published, which servers load
};

enum class Attention : std::uint8_t { kUnfused, kFlash };
inline constexpr std::string_view kAttentionNames[] = {"unfused", "flash"};

enum class Elementwise : std::uint8_t {
  kEager,     ///< kernels fused by hand: scale-mask-softmax, bias-GeLU, bias-dropout-add (Megatron)
  kCompiled,  ///< neighbours fused: torch.compile and its like
  kUnfused,   ///< a kernel for each term of a formula, as model files of Hugging Face run
};
inline constexpr std::string_view kElementwiseNames[] = {"eager", "compiled", "unfused"};

/// The treatment of logits in the loss. The name states which implementation's copies are meant.
enum class Loss : std::uint8_t { kFused, kMpt, kCompiled, kEager };
inline constexpr std::string_view kLossNames[] = {"fused", "mpt", "compiled", "eager"};
/// The bytes per logit held at once, with half-precision logits. A compiled loss holds them, their
/// gradient and a copy in FP32: 26 peaks of GPT-2 on 13 GPUs.
constexpr double bytes_per_logit(Loss loss) {
  constexpr double kBytes[] = {2, 6, 8, 16};
  return kBytes[static_cast<int>(loss)];
}

/// The implementation of a model in a framework, which its description does not state.
struct Implementation {
  Dtype dtype = Dtype::kBf16;
  Attention attention = Attention::kFlash;
  Elementwise elementwise = Elementwise::kEager;
  bool dropout = false;
  Loss loss = Loss::kEager;
  /// Products of weight gradients add to the sums of earlier microbatches themselves, as in
  /// Megatron-LM since 2022; otherwise a separate kernel does.
  bool fused_accumulation = false;
  bool expanded_keys = true;  ///< keys and values are kept once per query head, not per its group
  /// One matrix makes queries, keys and values, and one makes both halves of a gated input, as in
  /// Megatron-LM; otherwise each has its own product, as in Hugging Face's models and torchtitan.
  bool fused_projections = true;
  /// Ops between the products of experts are fused into their kernels, and the device never waits
  /// for the host (DeepSeek-V3, Megatron-LM since the middle of 2026). Otherwise clamping, and
  /// adding router-weighted biases, are PyTorch's own kernels.
  bool fused_experts = false;
  GatheredInputs gathered_inputs = GatheredInputs::kAgain;
  /// Images keep the channels of a position together (PyTorch: channels_last), as matrix units read
  /// them. Frameworks do not, unless asked to.
  bool channels_last = false;
  /// Saved values are a view of the product of queries, keys and values, so that queries and keys
  /// stay as they were before rotation, too (nanotron).
  bool values_are_views = false;
  /// The bytes held at once per logit, if a framework's loss holds more than `loss` says: torchtitan
  /// of 2024, which compiled its layers alone, 14, and 22 under tensor parallelism, whose reductions
  /// over ranks are not fused (inferred from published peaks).
  std::optional<double> logit_bytes = {};
};

/// Fails where dimensions are missing or do not divide each other.
Status check(const Transformer& model);

/// For one sample. Layers: "embedding"; "block" (or "encoder" and "decoder"; with prefix "dense_"
/// and "mixture_" if some layers are mixtures); "head", with the final norm, the
/// logits and the loss. Fails as check() does.
Result<Workload> transformer(const Transformer& model, const Implementation& implementation);

}  // namespace rehearse::workload
