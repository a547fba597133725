#include "models/workload/transformer_block.h"

#include <initializer_list>
#include <utility>

namespace rehearse::workload {
namespace {

// Passes over memory: activations read or written per element of the named tensor. For GPT, the
// eager ones add up to the values of Megatron's published runs: forward 11u + 8u/t + 6u/t + 4.5
// scores, backward 21u + 28u/t + 5.5 scores (docs/concepts/workload.md lists them). The compiled
// ones remain when every value that one fused kernel makes and the next would read stays in
// registers, dropout masks are drawn again, and views replace copies.
struct Passes {
  double forward;
  double backward;
};

// Operator records of recorded layers, relative to the 171 of a Llama layer: BERT's 103, the 287
// of a layer of two attentions, and the geometric mean of DeepSeek-V3's 1.4 to 4 times.
constexpr double kPlainHostWork = 0.6, kMixtureHostWork = 2.4, kCrossHostWork = 1.7;

class Block {
 public:
  Block(NamePool& names, const Transformer& model, const Implementation& how, const BlockKind& kind)
      : layer_(names, how.dtype, how.fused_accumulation),
        m_(model),
        how_(how),
        kind_(kind),
        eager_(how.elementwise != Elementwise::kCompiled),
        by_terms_(how.elementwise == Elementwise::kUnfused),
        tokens_(kind.cross ? model.decoder_sequence : model.sequence),
        hidden_(model.hidden),
        key_size_(model.latent ? model.latent->plain_size + model.latent->rotary_size
                               : model.head_size),
        value_size_(model.latent ? model.latent->value_size : model.head_size),
        queries_(tokens_ * model.heads * key_size_) {}

  Layer make() {
    self_attention();
    if (kind_.cross) cross_attention();
    feed_forward();
    Layer layer = layer_.finish(kind_.name, kind_.count, layer_.moved(tokens_ * hidden_));
    const bool plain = !m_.gated && m_.positions != Positions::kRotary;
    layer.host_work = kind_.mixture ? kMixtureHostWork
                      : kind_.cross ? kCrossHostWork
                      : plain       ? kPlainHostWork
                                    : 1;
    return layer;
  }

 private:
  void keep(std::string_view name, double elements, bool tensor, bool core = false) {
    layer_.keep({.name = name, .bytes = layer_.moved(elements), .tensor = tensor, .core = core});
  }

  // The input of products that tensor parallelism divides by columns.
  void keep_input(std::string_view name, std::string_view taken_by = {}) {
    layer_.keep({.name = name,
                 .bytes = layer_.moved(tokens_ * hidden_),
                 .gathered = how_.gathered_inputs,
                 .taken_by = taken_by,
                 .for_weights = 1});
  }

  // One pass over a tensor of `elements`; a dropout mask has one byte per element.
  void move(std::string_view name, double elements, Passes passes, bool tensor, double kernels,
            double kernels_backward, double masks = 0) {
    const Bytes mask = Bytes::b(elements * masks);
    layer_.traffic({.name = name,
                    .forward = layer_.moved(elements * passes.forward) + mask,
                    .backward = layer_.moved(elements * passes.backward) + mask,
                    .tensor = tensor,
                    .kernels = kernels,
                    .kernels_backward = kernels_backward});
  }

  void norm(std::string_view name, std::string_view saved, bool input) {
    add_norm(layer_, name, m_, how_, tokens_, hidden_, true);
    layer_.keep({.name = saved, .bytes = layer_.moved(tokens_ * hidden_), .input = input});
  }

  // A matrix that takes the hidden state, divided by its columns.
  void project(std::string_view name, double out, bool bias, bool first = true) {
    layer_.linear({.name = name,
                   .tokens = tokens_,
                   .out = out,
                   .in = hidden_,
                   .split = Split::kColumns,
                   .bias = bias,
                   .casts_input = first});
  }

  // Several matrices of the same input, whose gradients are then added: each is read, and the sum
  // is written; in eager mode, two at a time.
  void projections(std::initializer_list<std::pair<std::string_view, double>> matrices, bool bias) {
    const auto count = static_cast<double>(matrices.size());
    for (const auto& [name, out] : matrices) {
      const bool first = name == matrices.begin()->first;
      project(name, out, bias, first);
      if (first)
        move("input_gradients", tokens_ * hidden_, {0, eager_ ? 3 * (count - 1) : count + 1}, false,
             0, eager_ ? count - 1 : 1);
    }
  }

  void self_attention() {
    norm("attention_norm", "input", true);
    keep_input("attention input", m_.latent ? "" : how_.fused_projections ? "qkv" : "query");
    if (m_.latent)
      latents();
    else if (how_.fused_projections)
      project("qkv", (m_.heads + m_.kv_heads) * key_size_ + m_.kv_heads * value_size_,
              m_.query_bias);
    else
      projections({{"query", m_.heads * key_size_},
                   {"key", m_.kv_heads * key_size_},
                   {"value", m_.kv_heads * value_size_}},
                  m_.query_bias);
    attend(tokens_, kind_.causal);
  }

  void cross_attention() {
    norm("cross_attention_norm", "cross attention norm input", false);
    keep_input("cross attention input");
    layer_.linear({.name = "query",
                   .tokens = tokens_,
                   .out = m_.heads * key_size_,
                   .in = hidden_,
                   .split = Split::kColumns,
                   .bias = m_.query_bias});
    layer_.linear({.name = "key_value",
                   .tokens = double(m_.sequence),
                   .out = m_.kv_heads * (key_size_ + value_size_),
                   .in = hidden_,
                   .split = Split::kColumns,
                   .bias = m_.query_bias});
    attend(m_.sequence, false);
  }

  void latents() {
    const Latent& l = *m_.latent;
    if (l.query_rank > 0) {
      layer_.linear({"query_down", tokens_, double(l.query_rank), hidden_});
      add_norm(layer_, "query_norm", m_, how_, tokens_, l.query_rank, false);
      keep("query latent", 2 * tokens_ * l.query_rank, false);
    }
    layer_.linear({"query_up", tokens_, m_.heads * key_size_,
                   l.query_rank > 0 ? double(l.query_rank) : hidden_, Split::kColumns});
    layer_.linear({"key_value_down", tokens_, double(l.key_value_rank + l.rotary_size), hidden_});
    add_norm(layer_, "key_value_norm", m_, how_, tokens_, l.key_value_rank, false);
    keep("key and value latent", tokens_ * (2. * l.key_value_rank + l.rotary_size), false);
    layer_.linear({"key_value_up", tokens_, m_.heads * (l.plain_size + value_size_),
                   double(l.key_value_rank), Split::kColumns});
  }

  void attend(double key_tokens, bool causal) {
    const double keys = key_tokens * m_.kv_heads * key_size_;
    const double values = key_tokens * m_.kv_heads * value_size_;
    const double all = queries_ + keys + values;
    // Forward: to the layout of the product by heads. Backward: the same, and gathered into one
    // matrix of gradients.
    move("transposes", all, eager_ ? Passes{2, 4} : Passes{0, 2}, true, 4, 8);
    if (m_.query_norm) {
      const Passes passes = {2, 5};
      move("query_key_norm", queries_ + keys, passes, true, 2, 4);
      layer_.weights(2 * key_size_, false);
    }
    if (m_.positions == Positions::kRotary) {
      const double share = m_.latent ? m_.latent->rotary_size / key_size_ : 1;
      // Eager: half of it is negated and copied, then two products with cosines and sines, and
      // their sum.
      move("rotary", share * (queries_ + keys), eager_ ? Passes{9, 9} : Passes{2, 2}, true, 8, 8);
      if (how_.values_are_views) keep("queries and keys before rotation", queries_ + keys, true);
    }
    const bool grouped = m_.kv_heads < m_.heads;
    const double group = double(m_.heads) / m_.kv_heads;
    if (grouped && eager_ && how_.expanded_keys)
      move("expand_keys", keys + values, {1 + group, 1 + group}, true, 2, 2);
    const double copies = how_.expanded_keys ? group : 1;
    keep("queries", queries_, true);
    keep("keys and values", copies * (keys + values), true);

    // A window of w keys is as many products of w by w, the windows side by side (Swin) or sliding.
    const bool windowed = m_.window > 0 && m_.full_every == 0 && m_.window < tokens_;
    const double rows = windowed ? m_.window : tokens_;
    const double columns = windowed ? m_.window : key_tokens;
    const double batch = m_.heads * (windowed ? tokens_ / m_.window : 1);
    if (how_.attention == Attention::kFlash) {
      // Scores sum over keys' size, results over values': their mean gives the FLOPs of both.
      layer_.attention(batch, rows, columns, (key_size_ + value_size_) / 2, causal && !windowed);
      layer_.keep({.name = "log-sum-exp",
                   .bytes = Bytes::b(4. * m_.heads * tokens_),
                   .tensor = true,
                   .core = true});
    } else {
      unfused(batch, rows, columns);
    }
    keep("context", tokens_ * m_.heads * value_size_, true);
    layer_.linear({.name = "projection",
                   .tokens = tokens_,
                   .out = hidden_,
                   .in = m_.heads * value_size_,
                   .split = Split::kRows,
                   .bias = m_.output_bias});
    dropout_add("attention_dropout_add");
  }

  void unfused(double batch, double rows, double columns) {
    const double scores = batch * rows * columns;
    layer_.product("scores", batch, rows, columns, key_size_);
    const auto over_scores = [&](std::string_view name, OpKind kind, Passes passes, double kernels,
                                 double kernels_backward, double masks) {
      const Bytes mask = Bytes::b(scores * masks);
      layer_.traffic({.name = name,
                      .kind = kind,
                      .forward = layer_.moved(scores * passes.forward) + mask,
                      .backward = layer_.moved(scores * passes.backward) + mask,
                      .tensor = true,
                      .core = true,
                      .width = columns,
                      .kernels = kernels,
                      .kernels_backward = kernels_backward});
    };
    if (m_.positions == Positions::kRelative)
      over_scores("position_bias", OpKind::kElementwise, eager_ ? Passes{2, 1} : Passes{0, 1}, 1, 1,
                  0);
    // Scaled, masked and normalised: one pass each way; backward reads gradient and result.
    // Compiled, dropout belongs to the same kernel and writes a second result.
    const bool dropout = how_.dropout;
    if (by_terms_) {
      over_scores("scale", OpKind::kElementwise, {2, 2}, 1, 1, 0);
      over_scores("mask", OpKind::kElementwise, {2, 2}, 1, 1, 0);
    }
    const double launches = eager_ && !by_terms_ ? 3 : 1;
    over_scores("softmax", OpKind::kSoftmax, {!eager_ && dropout ? 3. : 2., 3}, launches, launches,
                0);
    keep("softmax", scores, true, true);
    if (dropout) {
      if (eager_) over_scores("attention_dropout", OpKind::kElementwise, {2, 2}, 1, 1, 1);
      layer_.keep({.name = "attention dropout mask",
                   .bytes = Bytes::b(scores),
                   .tensor = true,
                   .core = true});
      keep("attention dropout", scores, true, true);
    }
    layer_.product("context", batch, rows, value_size_, columns);
  }

  // Bias, dropout and residual in one pass: two are read, one and the mask are written. Unfused,
  // dropout is a separate read and write. Compiled, it is part of the following norm.
  void dropout_add(std::string_view name) {
    const double elements = tokens_ * hidden_;
    const bool dropout = how_.dropout;
    if (eager_)
      move(name, elements, {dropout && by_terms_ ? 5. : 3., dropout ? 2. : 0.}, false,
           dropout ? 3 : 2, 3, dropout ? 1 : 0);
    if (dropout) layer_.keep({.name = "dropout mask", .bytes = Bytes::b(elements)});
  }

  // The activation of `tokens` rows of `width`: GeLU and its bias, or the gate's product.
  void activate(std::string_view name, double elements) {
    if (m_.gated)
      move(name, elements, eager_ ? Passes{5, 8} : Passes{3, 5}, true, eager_ ? 2 : 1,
           eager_ ? 4 : 1);
    else if (by_terms_ && m_.activation == Activation::kGeluNew)
      // 0.5 x (1 + tanh(c (x + a x^3))): six unary operations at 2 passes, two binary ones at 3.
      // Backward: 5 for the product, 6 for the cube, 3 for tanh, 2 for each factor, by measured
      // times of each; and 3 for each of the two sums of gradients of x.
      move(name, elements, {18, 26}, true, 8, 11);
    else
      move(name, elements, eager_ ? Passes{2, 4} : Passes{2, 3}, true, eager_ ? 2 : 1,
           eager_ ? 4 : 1);
  }

  void keep_activation(std::string_view before, std::string_view after, std::string_view taken_by,
                       double elements) {
    // ReLU's gradient can be told from its result.
    const bool result_alone = !m_.gated && m_.activation == Activation::kRelu;
    if (!result_alone) keep(before, (m_.gated ? 2 : 1) * elements, true);
    // Of a gate and the product, the gate's own gradient needs one.
    layer_.keep({.name = after,
                 .bytes = layer_.moved((m_.gated ? 2 : 1) * elements),
                 .tensor = true,
                 .taken_by = result_alone ? "" : taken_by,
                 .for_weights = m_.gated ? 0.5 : 1});
  }

  void dense(std::string_view up, std::string_view act, std::string_view down, double width) {
    if (m_.gated && !how_.fused_projections)
      projections({{"gate", width}, {up, width}}, m_.linear_bias);
    else
      project(up, (m_.gated ? 2 : 1) * width, m_.linear_bias);
    activate(act, tokens_ * width);
    keep_activation("activation input", "activation output", down, tokens_ * width);
    layer_.linear({.name = down,
                   .tokens = tokens_,
                   .out = hidden_,
                   .in = width,
                   .split = Split::kRows,
                   .bias = m_.linear_bias});
  }

  void experts(const Mixture& mixture) {
    const double routed = tokens_ * mixture.per_token;
    const double each = routed / mixture.experts;
    const double width = mixture.feed_forward;
    layer_.linear({"router", tokens_, double(mixture.experts), hidden_});
    // Probabilities in FP32, and the choice of the largest.
    const double choices = tokens_ * mixture.experts;
    layer_.traffic({.name = "route",
                    .kind = OpKind::kSoftmax,
                    .forward = Bytes::b(12 * choices),
                    .backward = Bytes::b(12 * choices),
                    .width = double(mixture.experts),
                    .kernels = 6,
                    .kernels_backward = 6});
    layer_.keep({.name = "routing", .bytes = Bytes::b(4 * choices)});
    move("permute", routed * hidden_, {2, 2}, false, 2, 2);
    keep("permuted", routed * hidden_, false);
    layer_.linear({.name = "expert_up",
                   .tokens = each,
                   .out = (m_.gated ? 2 : 1) * width,
                   .in = hidden_,
                   .split = Split::kColumns,
                   .bias = m_.linear_bias,
                   .experts = double(mixture.experts)});
    // Each half is clamped, and both are joined again; backward has two masks and two joined
    // gradients.
    if (mixture.clamped && !how_.fused_experts)
      move("expert_clamp", routed * width, {8, 10}, true, 3, 4);
    activate("expert_activation", routed * width);
    keep_activation("expert activation input", "expert activation output", "expert_down",
                    routed * width);
    layer_.linear({.name = "expert_down",
                   .tokens = each,
                   .out = hidden_,
                   .in = width,
                   .split = Split::kRows,
                   .bias = m_.linear_bias,
                   .experts = double(mixture.experts)});
    // In FP32, expert by expert: bias times weight, the sum, then all are joined and rounded.
    // Backward also has the gradients of both factors.
    if (m_.linear_bias && !how_.fused_experts)
      move("expert_bias", routed * hidden_, {14, 20}, false, 4, 8);
    // Weighted by the router and summed by token.
    move("combine", routed * hidden_, {1 + 1 / mixture.per_token, 2 + 1 / mixture.per_token}, false,
         2, 2);
    keep("expert output", routed * hidden_, false);
    if (mixture.shared == 0) return;
    if (mixture.shared_gate) layer_.linear({"shared_gate", tokens_, 1, hidden_});
    dense("shared_up", "shared_activation", "shared_down", mixture.shared);
    move("shared_add", tokens_ * hidden_, {3, 0}, false, 1, 0);
  }

  void feed_forward() {
    if (!m_.shared_norm) {
      norm("feed_forward_norm", "feed-forward norm input", false);
      keep_input("feed-forward input", kind_.mixture ? "" : "up");
    }
    if (kind_.mixture)
      experts(*m_.mixture);
    else
      dense("up", "activation", "down", m_.feed_forward);
    dropout_add("feed_forward_dropout_add");
  }

  LayerBuilder layer_;
  const Transformer& m_;
  const Implementation& how_;
  const BlockKind& kind_;
  bool eager_;
  bool by_terms_;
  double tokens_;
  double hidden_;
  double key_size_;
  double value_size_;
  double queries_;  // elements
};

}  // namespace

void add_norm(LayerBuilder& layer, std::string_view name, const Transformer& model,
              const Implementation& how, double tokens, double width, bool residual) {
  const double elements = tokens * width;
  const bool eager = how.elementwise != Elementwise::kCompiled;
  // Eager: one is read, one is written. Backward: input and gradient are read, and a gradient is
  // written; both are read again for the weights; then the residual's gradient is added, with two
  // read and one written. Compiled, the same kernel adds the residual, forward and backward.
  const double forward = eager || !residual ? 2 : 4;
  const double backward = !residual ? 5 : eager ? 5 : 6;
  if (residual && eager)
    layer.traffic(
        {.name = "residual", .forward = Bytes::b(0), .backward = layer.moved(3 * elements)});
  layer.traffic({.name = name,
                 .kind = OpKind::kNorm,
                 .forward = layer.moved(forward * elements),
                 .backward = layer.moved(backward * elements),
                 .width = width,
                 .kernels = 1,
                 .kernels_backward = 2});
  layer.weights(width * (model.norm == Norm::kLayer && model.norm_bias ? 2 : 1), false);
}

Layer transformer_block(NamePool& names, const Transformer& model, const Implementation& how,
                        const BlockKind& kind) {
  return Block(names, model, how, kind).make();
}

}  // namespace rehearse::workload
