#include "models/workload/transformer.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/workload/layer_builder.h"
#include "models/workload/transformer_block.h"

namespace rehearse::workload {
namespace {

constexpr double kRelativeBuckets = 32;  // T5: of distances, whose biases are learned

Status missing(std::string_view what, const Transformer& model) {
  return fail(fmt::format("'{}' has no {}", model.name, what), "a whole number above zero");
}

Transformer complete(Transformer m) {
  if (m.image) m.sequence = m.image->tokens();
  if (m.feed_forward == 0 && !m.gated) m.feed_forward = 4 * m.hidden;
  if (m.kv_heads == 0) m.kv_heads = m.heads;
  if (m.latent) m.kv_heads = m.heads;
  if (m.head_size == 0) m.head_size = m.hidden / m.heads;
  if (m.decoder_sequence == 0) m.decoder_sequence = m.sequence;
  if (m.position_table == 0) m.position_table = std::max(m.sequence, m.decoder_sequence);
  if (m.embedding_size == 0) m.embedding_size = m.hidden;
  return m;
}

Layer embedding(NamePool& names, const Transformer& m, const Implementation& how) {
  LayerBuilder layer(names, how.dtype);
  const double tokens = m.sequence;
  const double width = m.embedding_size;
  const double hidden = m.hidden;
  const double elements = tokens * hidden;
  double added = 0;  // tables whose rows are added: one read, one written
  if (m.image) {
    const double patches = tokens - (m.image->class_token ? 1 : 0);
    layer.linear({.name = "patches",
                  .tokens = patches,
                  .out = width,
                  .in = double(m.image->channels) * m.image->patch * m.image->patch,
                  .bias = true,
                  .first = true});
    layer.keep(
        {.name = "image",
         .bytes = layer.moved(patches * m.image->channels * m.image->patch * m.image->patch)});
    if (m.image->class_token) layer.weights(width, false);
  } else {
    // Encoder and decoder each look their tokens up in the one table.
    const double looked_up = tokens + (m.decoder_layers > 0 ? m.decoder_sequence : 0);
    layer.lookup("embedding", looked_up, width, m.vocabulary);
  }
  if (m.embedding_size != m.hidden) {
    layer.linear({"embedding_projection", tokens, hidden, width});
    layer.keep({.name = "embedding", .bytes = layer.moved(tokens * width)});
  }
  if (m.positions == Positions::kLearned) {
    layer.weights(double(m.position_table) * hidden, false);
    ++added;
  }
  if (m.token_types > 0) {
    layer.weights(double(m.token_types) * hidden, false);
    ++added;
  }
  if (m.positions == Positions::kRelative)  // of each stack
    layer.weights(kRelativeBuckets * m.heads * (m.decoder_layers > 0 ? 2 : 1), true);
  if (added > 0)
    layer.traffic({.name = "positions",
                   .forward = layer.moved(2 * added * elements),
                   .backward = layer.moved(added * elements),
                   .kernels = added,
                   .kernels_backward = added});
  if (m.embedding_norm) {
    add_norm(layer, "embedding_norm", m, how, tokens, hidden, false);
    layer.keep({.name = "embedding norm input", .bytes = layer.moved(elements)});
  }
  if (how.dropout) {
    const Bytes both = layer.moved(2 * elements) + Bytes::b(elements);  // and the mask
    layer.traffic({.name = "embedding_dropout", .forward = both, .backward = both});
    layer.keep({.name = "embedding dropout mask", .bytes = Bytes::b(elements)});
  }
  return layer.finish("embedding", 1, layer.moved(elements));
}

double tokens_of_head(const Transformer& m) {
  return m.decoder_layers > 0 ? m.decoder_sequence : m.sequence;
}

void add_logits(LayerBuilder& layer, const Transformer& m, const Implementation& how) {
  const double tokens = tokens_of_head(m);
  if (m.embedding_size != m.hidden)
    layer.linear({"head_projection", tokens, double(m.embedding_size), double(m.hidden)});
  layer.linear({.name = "logits",
                .tokens = tokens,
                .out = double(m.vocabulary),
                .in = double(m.embedding_size),
                .split = Split::kColumns,
                .bias = m.head_bias,
                .has_matrix = !m.tied_embedding});
  if (m.final_norm || m.embedding_size != m.hidden)
    layer.keep({.name = "head input",
                .bytes = layer.moved(tokens * m.embedding_size),
                .gathered = how.gathered_inputs});
  // Each copy is written once and read once; the eager loss then moves the 32 bytes per logit that
  // Megatron's published runs show. An in-place loss still reads logits twice and writes gradients
  // once. A compiler's kernels keep FP32 in registers: they read logits for the maximum, for the sum
  // and in backward, and write gradients.
  const double logits = tokens * m.vocabulary;
  const double saved = std::max(bytes_per_logit(how.loss), layer.element());
  const double moved =
      how.loss == Loss::kCompiled ? 4 * layer.element() : std::max(2 * saved, 3 * layer.element());
  const bool one = how.loss == Loss::kFused || how.elementwise == Elementwise::kCompiled;
  layer.traffic({.name = "loss",
                 .forward = Bytes::b(logits * moved / 2),
                 .backward = Bytes::b(logits * moved / 2),
                 .tensor = true,
                 .width = double(m.vocabulary),
                 .kernels = one ? 1. : 5.,
                 .kernels_backward = one ? 1. : 4.});
  layer.keep({.name = "logits and loss",
              .bytes = Bytes::b(logits * how.logit_bytes.value_or(saved)),
              .tensor = true,
              .transient = true});
}

Layer head(NamePool& names, const Transformer& m, const Implementation& how) {
  LayerBuilder layer(names, how.dtype == Dtype::kFp8 ? Dtype::kBf16 : how.dtype,
                     how.fused_accumulation);
  const double tokens = tokens_of_head(m);
  layer.keep({.name = "input", .bytes = layer.moved(tokens * m.hidden), .input = true});
  if (m.final_norm) {
    add_norm(layer, "final_norm", m, how, tokens, m.hidden, false);
    if (m.decoder_layers > 0) layer.weights(m.hidden, false);  // the encoder's
  }
  const double width = m.hidden;
  if (m.pooler)
    layer.linear({.name = "pooler", .tokens = 1, .out = width, .in = width, .bias = true});
  if (m.image)
    layer.linear({.name = "classifier",
                  .tokens = 1,
                  .out = double(m.image->classes),
                  .in = width,
                  .bias = true});
  else
    add_logits(layer, m, how);
  return layer.finish("head", 1, Bytes::b(4));
}

// The layers of one stack, mixtures where the model has them.
void add_stack(Workload& w, const Transformer& m, const Implementation& how, std::string name,
               std::uint32_t layers, bool cross) {
  const auto add = [&](std::string part, std::uint32_t count, bool mixture) {
    if (count > 0)
      w.layers.push_back(transformer_block(w.names, m, how,
                                           {.name = std::move(part),
                                            .count = count,
                                            .mixture = mixture,
                                            .cross = cross,
                                            .causal = m.causal || cross}));
  };
  if (!m.mixture) return add(std::move(name), layers, false);
  const std::string dense = "dense_" + name, mixture = "mixture_" + name;
  add(dense, m.mixture->first_dense, false);
  const std::uint32_t rest = layers - m.mixture->first_dense;
  const std::uint32_t every = m.mixture->every;
  if (every == 1) return add(mixture, rest, true);
  for (std::uint32_t done = 0; done < rest; done += every) {
    add(dense, std::min(every - 1, rest - done), false);
    if (rest - done >= every) add(mixture, 1, true);
  }
}

}  // namespace

Status check(const Transformer& m) {
  if (m.hidden == 0) return missing("hidden size", m);
  if (m.layers == 0) return missing("layers", m);
  if (m.layers > kMostLayers || m.decoder_layers > kMostLayers)
    return fail(fmt::format("'{}' has {} layers", m.name, std::max(m.layers, m.decoder_layers)),
                fmt::format("at most {}", kMostLayers));
  if (m.heads == 0) return missing("heads", m);
  if (m.sequence == 0 && !m.image) return missing("sequence length", m);
  if (m.vocabulary == 0 && !m.image) return missing("vocabulary", m);
  const bool all_mixtures = m.mixture && m.mixture->first_dense == 0 && m.mixture->every == 1;
  if (m.image &&
      (m.image->patch == 0 || m.image->patch > m.image->side || m.image->side > kMostPixels))
    return fail(fmt::format("'{}' cuts {} pixels into patches of {}", m.name, m.image->side,
                            m.image->patch),
                fmt::format("patches that are smaller than the image, of at most {} pixels a side",
                            kMostPixels));
  if (m.feed_forward == 0 && m.gated && !all_mixtures) return missing("feed-forward size", m);
  if (m.head_size == 0 && !m.latent && m.hidden % m.heads != 0)
    return fail(
        fmt::format("'{}' divides a hidden size of {} among {} heads", m.name, m.hidden, m.heads),
        "heads that divide it, or a head size");
  if (m.kv_heads > 0 && m.heads % m.kv_heads != 0)
    return fail(
        fmt::format("'{}' has {} heads for {} of keys and values", m.name, m.heads, m.kv_heads),
        "kv_heads that divide heads");
  if (!m.mixture) return {};
  const Mixture& x = *m.mixture;
  if (x.experts == 0 || x.feed_forward == 0 || x.every == 0 || !(x.per_token > 0))
    return fail(fmt::format("'{}' has experts without a number or a size", m.name));
  if (x.per_token > x.experts)
    return fail(
        fmt::format("'{}' sends a token to {} of {} experts", m.name, x.per_token, x.experts),
        "experts_per_token up to experts");
  if (x.first_dense >= m.layers || (m.decoder_layers > 0 && x.first_dense >= m.decoder_layers))
    return fail(fmt::format("'{}' has {} dense layers before its mixtures, of {} in all", m.name,
                            x.first_dense, m.layers),
                "fewer than layers");
  return {};
}

Result<Workload> transformer(const Transformer& model, const Implementation& how) {
  TRY(check(model));
  const Transformer m = complete(model);
  Workload w{.name = m.name};
  w.layers.push_back(embedding(w.names, m, how));
  add_stack(w, m, how, m.decoder_layers > 0 ? "encoder" : "block", m.layers, false);
  if (m.decoder_layers > 0) add_stack(w, m, how, "decoder", m.decoder_layers, true);
  w.layers.push_back(head(w.names, m, how));

  w.tokens_per_sample = m.image ? 0 : m.sequence;
  w.divided_by_tensor = {{"heads", double(m.heads)}};
  if (!m.latent) w.divided_by_tensor.push_back({"kv_heads", double(m.kv_heads)});
  if (m.feed_forward > 0) w.divided_by_tensor.push_back({"feed_forward", double(m.feed_forward)});
  if (m.mixture) {
    w.divided_by_tensor.push_back({"feed_forward of an expert", double(m.mixture->feed_forward)});
    w.experts = m.mixture->experts;
    w.experts_per_token = m.mixture->per_token;
  }
  w.tied_embedding = m.tied_embedding && !m.image;
  TRY(verify(w));
  return w;
}

}  // namespace rehearse::workload
