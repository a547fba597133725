#include "models/serving/cache_space.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

#include "models/memory/memory.h"

namespace rehearse::serving {
namespace {

/// Tokens that a tier without a known size holds.
constexpr double kUnlimited = 1e12;

/// The peak of a pass of so many tokens: hidden states and the widest intermediate results in half
/// precision, and logits of every row in half and in single precision, with a copy for sampling.
Bytes activation_peak(const Deployment& d, const ServedModel& model, const CacheSettings& s) {
  double widest = 0;
  for (const LayerShape& layer : model.layers) {
    for (const Product& p : layer.products) widest = std::max(widest, p.n);
    if (layer.experts)
      widest = std::max(widest, 2 * layer.experts->width * model.per_token + model.hidden);
  }
  const double batches = d.offload ? d.offload->batches : 1;
  const double tokens = static_cast<double>(s.step_tokens) / batches;
  const double rows = static_cast<double>(std::min(s.rows, s.step_tokens)) / batches;
  return Bytes::b(2 * tokens * (4 * model.hidden + 1.5 * widest) +
                  rows * d.model.vocabulary * (2 + 4 + 4));
}

/// Two layers that are off the device are on it at a time.
Bytes resident_weights(const Deployment& d, const ServedModel& model) {
  if (!d.offload) return model.weights;
  const double away = d.offload->weights.all();
  return model.weights * (1 - away + std::min(away, 2 * away / model.layer_count));
}

/// Tokens whose keys and values a tier holds next to its share of the weights; no limit if it holds
/// none, or its size is not known.
double tokens_in(std::optional<Bytes> size, double weights_share, double cache_share,
                 const ServedModel& model, Bytes per_token) {
  if (cache_share <= 0 || !size) return kUnlimited;
  return (*size - model.weights * weights_share) / (per_token * cache_share);
}

}  // namespace

Result<CacheSpace> cache_space(const Deployment& d, const CacheSettings& s) {
  if (!(s.memory > 0 && s.memory <= 1))
    return fail(fmt::format("memory fraction {:g} is out of range", s.memory),
                "a number above 0, up to 1");
  if (s.block_tokens < 1 || s.step_tokens < 1 || s.rows < 1)
    return fail("a block, a step and a batch need at least one token", "numbers from 1");
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(d.device));
  ServedModel model = TRY(served(d.model, d.precision, d.plan));
  if (d.draft) {
    const ServedModel draft = TRY(served_draft(d));
    model.weights += draft.weights;
    model.cache_per_token += draft.cache_per_token + draft.windowed_per_token;
  }
  const memory::Device device = memory::device_of(gpu);
  const std::uint32_t communicators = d.plan.tensor * d.plan.data * d.plan.pipeline > 1 ? 1 : 0;
  CacheSpace space{.usable = device.usable,
                   .weights = resident_weights(d, model),
                   .context = memory::context_of(device, communicators),
                   .activations = activation_peak(d, model, s),
                   .cache = Bytes::b(0),
                   .per_token = model.cache_per_token + model.windowed_per_token,
                   .blocks = 0};
  const Bytes taken = space.weights + space.context + space.activations;
  space.cache = d.framework == Framework::kVllm ? s.memory * space.usable - taken
                : d.framework == Framework::kSglang
                    ? s.memory * (space.usable - space.context) - space.weights
                    : s.memory * (space.usable - taken);
  // What windowed layers hold does not grow beyond the window.
  Bytes windowed = Bytes::b(0), growing = space.per_token;
  if (model.window > 0 && model.cache_per_token > Bytes::b(0)) {
    windowed = std::min(model.windowed_per_token * (model.window * static_cast<double>(s.rows)),
                        space.cache * 0.5);
    growing = model.cache_per_token;
  }
  double tokens = (space.cache - windowed) / growing;
  if (d.offload) {
    const Offload& o = *d.offload;
    for (const auto& [size, share, tier] :
         {std::tuple(o.host_memory, o.weights.host, "host"), {o.nvme, o.weights.nvme, "drives"}})
      if (size && *size < model.weights * share)
        return fail(fmt::format("{:.1f} GiB of weights do not fit the {:.1f} GiB of the {}",
                                (model.weights * share).gib(), size->gib(), tier),
                    "offload: {weights: {…}} with another share, or a larger host");
    const double away = o.cache.all();
    tokens = std::min({away < 1                     ? tokens / (1 - away)
                       : space.cache >= Bytes::b(0) ? kUnlimited
                                                    : 0,
                       tokens_in(o.host_memory, o.weights.host, o.cache.host, model, growing),
                       tokens_in(o.nvme, o.weights.nvme, o.cache.nvme, model, growing)});
  }
  const double blocks = std::floor(tokens / static_cast<double>(s.block_tokens));
  if (tokens >= 1 && blocks < 1)
    return fail(fmt::format("a block of {} tokens is larger than the memory for {:.0f} tokens",
                            s.block_tokens, std::floor(tokens)),
                "a smaller block_size");
  if (!(blocks >= 1))
    return fail(
        fmt::format("'{}' does not fit on {}: weights {:.1f} GiB, context {:.1f} GiB and "
                    "activations {:.1f} GiB leave no block of keys and values in {:.1f} GiB at "
                    "memory {:g}",
                    d.model.name, d.device, space.weights.gib(), space.context.gib(),
                    space.activations.gib(), space.usable.gib(), s.memory),
        "a larger device", "raise plan.tensor, or narrow precision.weights");
  space.blocks = static_cast<std::int64_t>(blocks);
  const Bytes block = growing * static_cast<double>(s.block_tokens);
  for (const CacheTier& tier : s.tiers) {
    const double held = std::floor(tier.size / block);
    if (held < 1)
      return fail(fmt::format("{} of the tier '{}' hold no block of {}", to_string(tier.size),
                              tier.name, to_string(block)),
                  fmt::format("cache_tiers: {{{}: {{size: …}}}} of a block or more", tier.name));
    space.tiers.push_back({static_cast<std::int64_t>(held), block / tier.rate, tier.latency});
  }
  if (d.offload)
    space.cache =
        growing * (blocks * static_cast<double>(s.block_tokens)) * (1 - d.offload->cache.all());
  return space;
}

}  // namespace rehearse::serving
