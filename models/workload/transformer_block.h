// One block of a transformer: attention, then feed-forward or a mixture of experts.
#pragma once

#include <cstdint>
#include <string>

#include "models/workload/layer_builder.h"
#include "models/workload/transformer.h"

namespace rehearse::workload {

struct BlockKind {
  std::string name;
  std::uint32_t count;
  bool mixture = false;
  bool cross = false;  ///< attends to the encoder's output as well
  bool causal = true;
};

/// REQUIRES: no dimension of `model` is left to its default.
Layer transformer_block(NamePool& names, const Transformer& model, const Implementation& how,
                        const BlockKind& kind);

/// A norm over `tokens` rows of `width`, with its weights; `residual` if its input also bypasses
/// the following layers, so that two gradients are added.
void add_norm(LayerBuilder& layer, std::string_view name, const Transformer& model,
              const Implementation& how, double tokens, double width, bool residual);

}  // namespace rehearse::workload
