// The part of a transformer that one GPU of an inference server holds, as the shapes of its
// kernels, by kind of layer.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "models/serving/kernels.h"
#include "models/workload/transformer.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::serving {

struct Precision {
  Weights weights = Weights::kBf16;
  CacheFormat cache = CacheFormat::kBf16;
};

/// The layout of one server. `data`: replicas of attention that share the experts. `context`: tensor
/// ranks that would hold the same keys and values divide them by tokens.
struct ServingPlan {
  std::uint32_t tensor = 1, pipeline = 1, expert = 1, data = 1, context = 1;
};

/// A product of all tokens with an n × k matrix.
struct Product {
  double n, k;
  Weights weights;
};

struct AttentionShape {
  double heads, kv_heads;    ///< on this rank
  double size;               ///< of a head in scores and values
  double queried, attended;  ///< elements of one query and of its result, all heads of this rank
  double bytes;              ///< cached per token, on this rank
  double flops;  ///< of one query and one cached token, all heads of this rank, in decode
};

/// Layers that are alike.
struct LayerShape {
  double count;
  std::optional<double> window = {};  ///< tokens that a query sees at most
  AttentionShape attention;
  std::vector<Product> products = {};
  std::vector<Product> context_products = {};  ///< of prompt tokens and their contexts alone
  std::optional<Experts> experts = {};
};

struct ServedModel {
  double hidden;
  std::vector<LayerShape> layers;
  double layer_count = 0;
  bool joint_query_norm = false;      ///< as workload::Transformer
  double experts = 0, per_token = 0;  ///< of a mixture layer, on all ranks
  Product head;
  /// Of the GPU that holds most: weights, and cached bytes per token of layers without and with a
  /// window.
  Bytes weights = Bytes::b(0);
  Bytes cache_per_token = Bytes::b(0), windowed_per_token = Bytes::b(0);
  double window = 0;
};

/// Fails where the plan does not divide the model, and for encoders.
Result<ServedModel> served(const workload::Transformer& model, const Precision& precision,
                           const ServingPlan& plan);

/// One layer more of the model, with its embedding and output head: an extra head that proposes
/// tokens (multi-token prediction).
Result<ServedModel> extra_layer(workload::Transformer model, const Precision& precision,
                                const ServingPlan& plan);

}  // namespace rehearse::serving
