// The memory of an inference server: the blocks of keys and values that fit along with the weights.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/serving/step_price.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/serving/rules.h"

namespace rehearse::serving {

/// A store below a GPU for its keys and values (sim/serving/tiers.h). All is of one GPU: the ranks of a
/// replica move their shares at the same time.
struct CacheTier {
  std::string_view name;  ///< outlives this
  Bytes size;
  ByteRate rate;  ///< to the GPU, and from it
  Seconds latency = Seconds::s(0);
};

struct CacheSettings {
  /// The framework's own flag. vLLM: share of the device that the server may use. SGLang: share for
  /// weights and cache. TensorRT-LLM: share for the cache of what is free after weights.
  double memory = 0.9;
  std::int64_t block_tokens = 16;
  std::int64_t step_tokens = 8192;  ///< most tokens of a step: the server tries such a pass first
  std::int64_t rows = 256;          ///< most requests of a step
  std::vector<CacheTier> tiers = {};
};

/// On the GPU that holds most.
struct CacheSpace {
  Bytes usable, weights, context, activations, cache;
  Bytes per_token;  ///< of layers without a window, and of windowed ones up to their window
  std::int64_t blocks;
  std::vector<Tier> tiers = {};  ///< as CacheSettings::tiers
  /// Bytes that everything takes when the cache is full.
  Bytes total() const { return weights + context + activations + cache; }
};

/// Layers with a window hold at most the window of each request: `rows` of them are set aside, at
/// most half of the cache. Fails with a remedy where no block fits, or a tier is smaller than one. Source of the rules and their
/// error: docs/concepts/serving-price.md.
Result<CacheSpace> cache_space(const Deployment& deployment, const CacheSettings& settings);

}  // namespace rehearse::serving
