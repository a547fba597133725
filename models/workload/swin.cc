#include <fmt/core.h>

#include "models/workload/description.h"
#include "models/workload/layer_builder.h"
#include "models/workload/transformer_block.h"

namespace rehearse::workload {
namespace {

constexpr std::size_t kMostSwinStages = 8;  // the width doubles from one to the next

Layer patches(NamePool& names, const Swin& m, const Transformer& stage, const Implementation& how) {
  LayerBuilder layer(names, how.dtype);
  const double inputs = 3. * m.patch * m.patch;
  const double tokens = stage.sequence;
  layer.linear({.name = "patches",
                .tokens = tokens,
                .out = double(stage.hidden),
                .in = inputs,
                .bias = true,
                .first = true});
  layer.keep({.name = "image", .bytes = layer.moved(tokens * inputs)});
  add_norm(layer, "patch_norm", stage, how, tokens, stage.hidden, false);
  layer.keep({.name = "norm input", .bytes = layer.moved(tokens * stage.hidden)});
  return layer.finish("patches", 1, layer.moved(tokens * stage.hidden));
}

// Four neighbours side by side, normalised, to twice the width.
Layer merging(NamePool& names, const Transformer& stage, const Implementation& how) {
  LayerBuilder layer(names, how.dtype);
  const double tokens = stage.sequence / 4.;
  const double width = 4. * stage.hidden;
  layer.traffic({.name = "gather_neighbours",
                 .forward = layer.moved(2 * tokens * width),
                 .backward = layer.moved(2 * tokens * width)});
  layer.keep({.name = "input", .bytes = layer.moved(tokens * width), .input = true});
  add_norm(layer, "merge_norm", stage, how, tokens, width, false);
  layer.linear({.name = "merge", .tokens = tokens, .out = width / 2, .in = width});
  layer.keep({.name = "merge input", .bytes = layer.moved(tokens * width)});
  return layer.finish("merge", 1, layer.moved(tokens * width / 2));
}

Layer classifier(NamePool& names, const Swin& m, const Transformer& stage,
                 const Implementation& how) {
  LayerBuilder layer(names, how.dtype);
  const double elements = double(stage.sequence) * stage.hidden;
  layer.keep({.name = "input", .bytes = layer.moved(elements), .input = true});
  add_norm(layer, "final_norm", stage, how, stage.sequence, stage.hidden, false);
  layer.traffic(
      {.name = "mean", .forward = layer.moved(elements), .backward = layer.moved(elements)});
  layer.linear({.name = "classifier",
                .tokens = 1,
                .out = double(m.classes),
                .in = double(stage.hidden),
                .bias = true});
  return layer.finish("head", 1, layer.moved(m.classes));
}

}  // namespace

Result<Workload> swin(const Swin& m, const Implementation& how) {
  if (m.blocks.empty() || m.blocks.size() > kMostSwinStages || m.blocks.size() != m.heads.size())
    return fail(fmt::format("'{}' has {} stages of blocks and {} of heads", m.name, m.blocks.size(),
                            m.heads.size()),
                "as many of either");
  if (m.patch == 0 || m.window == 0 || m.image < m.patch || m.image > kMostPixels ||
      m.window > kMostPixels)
    return fail(fmt::format("'{}' cuts {} pixels into patches of {}", m.name, m.image, m.patch));
  Workload w{.name = m.name};
  std::uint32_t side = m.image / m.patch;
  std::uint32_t hidden = m.hidden;
  for (std::size_t i = 0; i < m.blocks.size(); ++i, side /= 2, hidden *= 2) {
    if (side < m.window || m.heads[i] == 0 || hidden % m.heads[i] != 0)
      return fail(fmt::format("stage {} of '{}' has {} positions a side, windows of {}, {} heads "
                              "for {} channels",
                              i + 1, m.name, side, m.window, m.heads[i], hidden),
                  "windows that fit, and heads that divide the channels");
    const Transformer stage = {.name = m.name,
                               .hidden = hidden,
                               .layers = m.blocks[i],
                               .heads = m.heads[i],
                               .kv_heads = m.heads[i],
                               .head_size = hidden / m.heads[i],
                               .feed_forward = 4 * hidden,
                               .sequence = side * side,
                               .positions = Positions::kRelative,
                               .causal = false,
                               .window = m.window * m.window};
    if (i == 0) w.layers.push_back(patches(w.names, m, stage, how));
    Layer block = transformer_block(
        w.names, stage, how,
        {.name = fmt::format("stage{}", i + 1), .count = m.blocks[i], .causal = false});
    // A bias for each offset within a window, of each head.
    const double offsets = (2. * m.window - 1) * (2. * m.window - 1);
    block.weights.push_back({.count = offsets * m.heads[i], .tensor = true});
    w.layers.push_back(std::move(block));
    w.layers.push_back(i + 1 < m.blocks.size() ? merging(w.names, stage, how)
                                               : classifier(w.names, m, stage, how));
  }
  for (const std::uint32_t heads : m.heads) w.divided_by_tensor.push_back({"heads", double(heads)});
  TRY(verify(w));
  return w;
}

}  // namespace rehearse::workload
