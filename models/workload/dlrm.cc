#include <numeric>

#include <fmt/core.h>

#include "models/workload/description.h"
#include "models/workload/layer_builder.h"

namespace rehearse::workload {
namespace {

// Fully connected layers with ReLU, for one sample.
Layer network(NamePool& names, const Implementation& how, std::string name, double in,
              const std::vector<std::uint32_t>& widths, bool first) {
  LayerBuilder layer(names, how.dtype);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    layer.linear({.name = "linear",
                  .tokens = 1,
                  .out = double(widths[i]),
                  .in = in,
                  .bias = true,
                  .first = first && i == 0,
                  .accumulated = false});
    layer.keep({.name = "input", .bytes = layer.moved(in), .input = i == 0});
    in = widths[i];
    layer.traffic(
        {.name = "relu", .forward = layer.moved(2 * in), .backward = layer.moved(3 * in)});
  }
  layer.keep({.name = "output", .bytes = layer.moved(in)});
  return layer.finish(std::move(name), 1, layer.moved(in));
}

// Products of all pairs of features. The lower triangle is appended to the dense features.
Layer pairs(LayerBuilder layer, double features, double size, double out) {
  layer.keep({.name = "input", .bytes = layer.moved(features * size), .input = true});
  layer.traffic({.name = "concatenate",
                 .forward = layer.moved(2 * features * size),
                 .backward = layer.moved(2 * features * size)});
  layer.product("pairs", 1, features, features, size);
  layer.traffic({.name = "triangle",
                 .forward = layer.moved(2 * out),
                 .backward = layer.moved(features * features + out),
                 .kernels = 2,
                 .kernels_backward = 2});
  Layer made = layer.finish("interaction", 1, layer.moved(out));
  // It is not attention: only samples divide it.
  for (std::vector<Op>* ops : {&made.forward, &made.backward})
    for (Op& op : *ops) {
      op.core = false;
      op.tensor = Extent::kNone;
    }
  return made;
}

// x0 * (W (V x) + b) + x, with V of low rank (Wang et al., 2020).
Layer crosses(LayerBuilder layer, const Dlrm& m, double width) {
  layer.keep({.name = "input", .bytes = layer.moved(width), .input = true});
  layer.traffic({.name = "concatenate",
                 .forward = layer.moved(2 * width),
                 .backward = layer.moved(2 * width)});
  for (std::uint32_t i = 0; i < m.cross_layers; ++i) {
    layer.linear({.name = "cross_down",
                  .tokens = 1,
                  .out = double(m.cross_rank),
                  .in = width,
                  .accumulated = false});
    layer.linear({.name = "cross_up",
                  .tokens = 1,
                  .out = width,
                  .in = double(m.cross_rank),
                  .bias = true,
                  .accumulated = false});
    layer.traffic({.name = "cross",
                   .forward = layer.moved(4 * width),
                   .backward = layer.moved(6 * width),
                   .kernels = 2,
                   .kernels_backward = 3});
    layer.keep({.name = "cross", .bytes = layer.moved(2 * width + m.cross_rank)});
  }
  return layer.finish("interaction", 1, layer.moved(width));
}

Layer tables(LayerBuilder layer, const Dlrm& m) {
  const double rows = std::accumulate(m.rows.begin(), m.rows.end(), 0.);
  const double count = static_cast<double>(m.rows.size());
  layer.lookup("tables", count * m.lookups, m.embedding_size, rows);
  // Indices of 64 bits each, with which backward finds the rows.
  layer.keep({.name = "indices", .bytes = Bytes::b(8 * count * m.lookups)});
  Layer made = layer.finish("tables", 1, layer.moved(count * m.embedding_size));
  made.weights = {{.count = rows * m.embedding_size, .expert = true, .sparse = true}};
  std::erase_if(made.backward, [](const Op& op) { return op.kind != OpKind::kGather; });
  for (std::vector<Op>* ops : {&made.forward, &made.backward})
    for (Op& op : *ops) {
      op.tensor = Extent::kNone;
      op.expert = true;
    }
  return made;
}

}  // namespace

Result<Workload> dlrm(const Dlrm& m, const Implementation& how) {
  if (m.rows.empty() || m.embedding_size == 0 || m.bottom.empty() || m.top.empty() ||
      !(m.lookups > 0))
    return fail(fmt::format("'{}' lacks tables, their embedding_size, or a network", m.name),
                "rows, embedding_size, bottom and top");
  if (m.bottom.back() != m.embedding_size)
    return fail(fmt::format("the bottom network of '{}' ends in {}", m.name, m.bottom.back()),
                fmt::format("the embedding's {}", m.embedding_size));
  if (m.cross_layers > 0 && m.cross_rank == 0)
    return fail(fmt::format("'{}' has cross layers without a rank", m.name), "cross_rank");
  Workload w{.name = m.name};
  const double features = static_cast<double>(m.rows.size()) + 1;
  const double size = m.embedding_size;
  const double joined = m.cross_layers > 0 ? features * size : features * (features - 1) / 2 + size;

  w.layers.push_back(tables(LayerBuilder(w.names, how.dtype), m));
  w.layers.push_back(network(w.names, how, "bottom", m.dense, m.bottom, true));
  w.layers.push_back(m.cross_layers > 0
                         ? crosses(LayerBuilder(w.names, how.dtype), m, joined)
                         : pairs(LayerBuilder(w.names, how.dtype), features, size, joined));
  w.layers.back().inputs = {0, 1};
  w.layers.push_back(network(w.names, how, "top", joined, m.top, false));
  w.experts = static_cast<std::uint32_t>(m.rows.size());
  TRY(verify(w));
  return w;
}

}  // namespace rehearse::workload
