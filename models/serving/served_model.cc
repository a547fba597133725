#include "models/serving/served_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace rehearse::serving {
namespace {

using workload::Transformer;

double bytes_of(const Product& p) { return p.n * p.k * serving::bytes_of(p.weights); }

/// Formats that quantise experts alone leave the other products in half precision: so do
/// gpt-oss (mxfp4) and Kimi (int4), and NVIDIA's nvfp4 of models with latent attention.
Weights dense_weights(const Transformer& m, Weights weights) {
  const bool experts_alone = weights == Weights::kMxfp4 || weights == Weights::kInt4 ||
                             (weights == Weights::kNvfp4 && m.latent);
  return m.mixture && experts_alone ? Weights::kBf16 : weights;
}

void add_attention(const Transformer& m, const Precision& precision, const ServingPlan& plan,
                   LayerShape& layer) {
  const double tensor = plan.tensor;
  const Weights weights = dense_weights(m, precision.weights);
  const double cache = serving::bytes_of(precision.cache);
  const double heads = std::ceil(m.heads / tensor), hidden = m.hidden;
  if (m.latent) {
    const workload::Latent& x = *m.latent;
    const double rank = x.key_value_rank, rotary = x.rotary_size;
    const double query = heads * (x.plain_size + rotary), value = heads * x.value_size;
    layer.attention = {.heads = heads,
                       .kv_heads = 1,
                       .size = 0.5 * (x.plain_size + rotary + x.value_size),
                       .queried = heads * (rank + rotary),
                       .attended = heads * rank,
                       .bytes = (rank + rotary) * cache / plan.context,
                       .flops = 2 * heads * (2 * rank + rotary)};
    if (x.query_rank > 0) {
      layer.products.push_back({x.query_rank + rank + rotary, hidden, weights});
      layer.products.push_back({query, double{1} * x.query_rank, weights});
    } else {
      layer.products.push_back({query + rank + rotary, hidden, weights});
    }
    // Absorbed into queries and outputs in decode; keys and values are expanded for prompts.
    layer.products.push_back({heads * (x.plain_size + x.value_size), rank, Weights::kBf16});
    layer.context_products.push_back({heads * (x.plain_size + x.value_size), rank, weights});
    layer.products.push_back({hidden, value, weights});
    return;
  }
  const double kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads;
  const double kv = std::max(1.0, std::ceil(kv_heads / tensor));
  const double size = m.head_size > 0 ? m.head_size : hidden / m.heads;
  layer.attention = {.heads = heads,
                     .kv_heads = kv,
                     .size = size,
                     .queried = heads * size,
                     .attended = heads * size,
                     .bytes = 2 * kv * size * cache / plan.context,
                     .flops = 4 * heads * size};
  layer.products.push_back({(heads + 2 * kv) * size, hidden, weights});
  layer.products.push_back({hidden, heads * size, weights});
}

void add_feed_forward(const Transformer& m, double width, Weights weights, LayerShape& layer) {
  layer.products.push_back({(m.gated ? 2 : 1) * width, double{1} * m.hidden, weights});
  layer.products.push_back({double{1} * m.hidden, width, weights});
}

Status check(const Transformer& m, const ServingPlan& plan) {
  if (m.decoder_layers > 0 || !m.causal || m.image)
    return fail(fmt::format("'{}' does not generate tokens", m.name), "a causal decoder");
  const auto divides = [&](std::uint32_t degree, std::uint32_t whole,
                           std::string_view of) -> Status {
    if (degree > 0 && (whole % degree == 0 || degree % whole == 0)) return {};
    return fail(
        fmt::format("degree {} does not divide the {} {} of '{}'", degree, whole, of, m.name),
        "a divisor");
  };
  if (Status ok = divides(plan.tensor, m.heads, "heads"); !ok || plan.tensor > m.heads)
    return !ok ? ok
               : fail(fmt::format("tensor degree {} exceeds the {} heads of '{}'", plan.tensor,
                                  m.heads, m.name),
                      "at most one rank per head");
  if (plan.pipeline == 0 || plan.pipeline > m.layers)
    return fail(fmt::format("{} stages for the {} layers of '{}'", plan.pipeline, m.layers, m.name),
                "1 to the number of layers");
  if (plan.expert > 1 && !m.mixture)
    return fail(fmt::format("'{}' has no experts to divide over {} ranks", m.name, plan.expert),
                "expert: 1");
  if (plan.expert > 1) TRY(divides(plan.expert, m.mixture->experts, "experts"));
  const std::uint32_t heads = m.latent ? 1 : m.kv_heads > 0 ? m.kv_heads : m.heads;
  const std::uint32_t alike = std::max(1U, plan.tensor / heads);
  if (plan.context == 0 || alike % plan.context != 0)
    return fail(fmt::format("context degree {} does not divide the {} tensor ranks that hold the "
                            "same keys and values of '{}'",
                            plan.context, alike, m.name),
                "a divisor");
  if (plan.context > 1 && m.window > 0)
    return fail(fmt::format("windows of '{}' are not divided by tokens", m.name), "context: 1");
  if (plan.data == 0 || plan.expert == 0 || plan.expert > plan.tensor * plan.data)
    return fail(fmt::format("expert degree {} exceeds the {} ranks of the plan", plan.expert,
                            plan.tensor * plan.data),
                "1 to tensor × data");
  return {};
}

}  // namespace

Result<ServedModel> served(const Transformer& m, const Precision& precision,
                           const ServingPlan& plan) {
  TRY(workload::check(m));
  TRY(check(m, plan));
  const double tensor = plan.tensor, hidden = m.hidden;
  const Weights dense = dense_weights(m, precision.weights);
  ServedModel served{.hidden = hidden,
                     .layers = {},
                     .layer_count = double{1} * m.layers,
                     .joint_query_norm = m.joint_query_norm,
                     .head = {std::ceil(m.vocabulary / tensor), hidden, Weights::kBf16},
                     .window = double{1} * m.window};
  const auto add = [&](double count, bool windowed, bool mixture) {
    if (!(count > 0)) return;
    LayerShape layer{.count = count, .attention = {}};
    if (windowed) layer.window = m.window;
    add_attention(m, precision, plan, layer);
    double extra = 0;
    if (mixture) {
      const workload::Mixture& x = *m.mixture;
      // Ranks that share an expert divide its width.
      const double sharing = std::max(1.0, tensor * plan.data / plan.expert);
      const double divided = plan.expert > 1 ? sharing : tensor;
      layer.experts = Experts{.hidden = hidden,
                              .width = x.feed_forward / divided,
                              .held = double{1} * x.experts / plan.expert,
                              .weights = precision.weights};
      served.experts = x.experts;
      served.per_token = x.per_token;
      layer.products.push_back({double{1} * x.experts, hidden, Weights::kBf16});  // the router
      if (x.shared > 0) add_feed_forward(m, x.shared / tensor, dense, layer);
      extra = (m.gated ? 3 : 2) * hidden * layer.experts->width * layer.experts->held *
              serving::bytes_of(precision.weights);
    } else {
      const double width = m.feed_forward > 0 ? m.feed_forward : 4 * hidden;
      add_feed_forward(m, width / tensor, dense, layer);
    }
    double bytes = extra;
    for (const Product& p : layer.products) bytes += bytes_of(p);
    const double held = count / plan.pipeline;
    served.weights += Bytes::b(bytes * held);
    (windowed ? served.windowed_per_token : served.cache_per_token) +=
        Bytes::b(layer.attention.bytes * held);
    served.layers.push_back(std::move(layer));
  };
  const double layers = m.layers;
  const double dense_layers = !m.mixture ? layers
                                         : std::min<double>(layers, m.mixture->first_dense) +
                                               std::max(0.0, layers - m.mixture->first_dense) *
                                                   (1 - 1.0 / std::max(1u, m.mixture->every));
  const double whole = m.window == 0 ? 1 : m.full_every > 0 ? 1.0 / m.full_every : 0;
  for (const bool windowed : {false, true})
    for (const bool mixture : {false, true})
      add((mixture ? layers - dense_layers : dense_layers) * (windowed ? 1 - whole : whole),
          windowed, mixture);
  const double tables = m.tied_embedding ? 1 : 2;
  served.weights += Bytes::b((plan.pipeline > 1 ? 1 : tables) * bytes_of(served.head));
  return served;
}

Result<ServedModel> extra_layer(Transformer m, const Precision& precision,
                                const ServingPlan& plan) {
  m.layers = 1;
  if (m.mixture) m.mixture->first_dense = 0;
  Result<ServedModel> layer = served(m, precision, plan);
  const double tables = m.tied_embedding ? 1 : 2;
  if (layer) layer->weights = layer->weights - Bytes::b(tables * bytes_of(layer->head));
  return layer;
}

}  // namespace rehearse::serving
