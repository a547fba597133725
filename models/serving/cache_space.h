// The memory of an inference server: the blocks of keys and values that fit along with the weights.
#pragma once

#include <cstdint>

#include "models/serving/step_price.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::serving {

struct CacheSettings {
  /// The framework's own flag. vLLM: share of the device that the server may use. SGLang: share for
  /// weights and cache. TensorRT-LLM: share for the cache of what is free after weights.
  double memory = 0.9;
  std::int64_t block_tokens = 16;
  std::int64_t step_tokens = 8192;  ///< most tokens of a step: the server tries such a pass first
  std::int64_t rows = 256;          ///< most requests of a step
};

/// On the GPU that holds most.
struct CacheSpace {
  Bytes usable, weights, context, activations, cache;
  Bytes per_token;  ///< of layers without a window, and of windowed ones up to their window
  std::int64_t blocks;
  /// Bytes that everything takes when the cache is full.
  Bytes total() const { return weights + context + activations + cache; }
};

/// Layers with a window hold at most the window of each request: `rows` of them are set aside, at
/// most half of the cache. Fails with a remedy where no block fits. Source of the rules and their
/// error: docs/concepts/serving-price.md.
Result<CacheSpace> cache_space(const Deployment& deployment, const CacheSettings& settings);

}  // namespace rehearse::serving
