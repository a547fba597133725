#include "models/serving/cache_space.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/memory/memory.h"

namespace rehearse::serving {
namespace {

/// The peak of a pass of so many tokens: hidden states and the widest intermediate results in half
/// precision, and logits of every row in half and in single precision, with a copy for sampling.
Bytes activation_peak(const Deployment& d, const ServedModel& model, const CacheSettings& s) {
  double widest = 0;
  for (const LayerShape& layer : model.layers) {
    for (const Product& p : layer.products) widest = std::max(widest, p.n);
    if (layer.experts)
      widest = std::max(widest, 2 * layer.experts->width * model.per_token + model.hidden);
  }
  const double tokens = static_cast<double>(s.step_tokens);
  const double rows = static_cast<double>(std::min(s.rows, s.step_tokens));
  return Bytes::b(2 * tokens * (4 * model.hidden + 1.5 * widest) +
                  rows * d.model.vocabulary * (2 + 4 + 4));
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
                   .weights = model.weights,
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
  const double blocks =
      std::floor((space.cache - windowed) / (growing * static_cast<double>(s.block_tokens)));
  if (!(blocks >= 1))
    return fail(
        fmt::format("'{}' does not fit on {}: weights {:.1f} GiB, context {:.1f} GiB and "
                    "activations {:.1f} GiB leave no block of keys and values in {:.1f} GiB at "
                    "memory {:g}",
                    d.model.name, d.device, space.weights.gib(), space.context.gib(),
                    space.activations.gib(), space.usable.gib(), s.memory),
        "a larger device", "raise plan.tensor, or narrow precision.weights");
  space.blocks = static_cast<std::int64_t>(blocks);
  return space;
}

}  // namespace rehearse::serving
