#include "models/workload/convnet.h"

#include <optional>

#include <fmt/core.h>

#include "models/workload/layer_builder.h"

namespace rehearse::workload {
namespace {

// Operator records per launch of recorded convolution nets (2.4 to 2.9), and those of a Llama block.
constexpr double kRecordsOfLaunch = 2.65, kRecordsOfBlock = 171;

struct Tensor {
  std::optional<std::uint32_t> layer = {};  // that made it; absent: the sample
  std::uint32_t channels;
  std::uint32_t height;
  std::uint32_t width;
  double positions() const { return double(height) * width; }
  double elements() const { return channels * positions(); }
};

// Along one axis; nothing where the kernel does not fit.
std::uint32_t positions_after(std::uint32_t in, std::uint32_t kernel, std::uint32_t stride,
                              std::uint32_t padding, bool round_up) {
  const std::uint32_t padded = in + 2 * padding;
  if (padded < kernel || stride == 0) return 0;
  std::uint32_t out = (padded - kernel + (round_up ? stride - 1 : 0)) / stride + 1;
  // A position that begins in the padding at the end does not count.
  if (round_up && (out - 1) * stride >= in + padding) --out;
  return out;
}

class ConvNetMaker {
 public:
  ConvNetMaker(const ConvNet& net, const Implementation& how)
      : net_(net), how_(how), eager_(how.elementwise != Elementwise::kCompiled) {
    w_.name = net.name;
  }

  Result<Workload> make() {
    const Tensor sample = {.channels = net_.channels, .height = net_.height, .width = net_.width};
    TRY(chain(sample, net_.pieces, ""));
    TRY(verify(w_));
    return std::move(w_);
  }

 private:
  Result<Tensor> chain(Tensor tensor, const std::vector<Piece>& pieces, const std::string& path) {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      tensor = TRY(piece(tensor, pieces[i], fmt::format("{}[{}]", path, i)));
    return tensor;
  }

  Result<Tensor> piece(const Tensor& in, const Piece& p, const std::string& path) {
    if (w_.layers.size() > kMostLayers)
      return wrong(path, "exceeds the number of layers", fmt::format("at most {}", kMostLayers));
    switch (p.kind) {
      case PieceKind::kConvolution: return convolution(in, p, path);
      case PieceKind::kMaxPool:
      case PieceKind::kAveragePool:
      case PieceKind::kGlobalPool:
      case PieceKind::kAdaptivePool: return pool(in, p, path);
      case PieceKind::kNorm: return norm(in, p);
      case PieceKind::kLinear: return linear(in, p, path);
      case PieceKind::kBranches: return branches(in, p, path);
      case PieceKind::kRepeat: break;
    }
    Tensor tensor = in;
    for (std::uint32_t i = 0; i < p.times; ++i)
      tensor = TRY(chain(tensor, p.branches.front(), path));
    return tensor;
  }

  tl::unexpected<Error> wrong(const std::string& path, std::string problem, std::string expected) {
    return fail(fmt::format("layers{} of '{}' {}", path, net_.name, problem), std::move(expected));
  }

  Result<Tensor> shaped(const Tensor& in, const Piece& p, std::uint32_t channels,
                        const std::string& path) {
    Tensor out = in;
    out.channels = channels;
    out.height =
        positions_after(in.height, p.kernel_height, p.stride, p.padding_height, p.round_up);
    out.width = positions_after(in.width, p.kernel_width, p.stride, p.padding_width, p.round_up);
    if (out.positions() > 0) return out;
    return wrong(path,
                 fmt::format("has no output positions: kernel {} × {} on {} × {}", p.kernel_height,
                             p.kernel_width, in.height, in.width),
                 "a kernel within the padded input, a stride above zero");
  }

  // The layer that reads `inputs` and makes `out`.
  Tensor add(Layer layer, const std::vector<Tensor>& inputs, Tensor out) {
    const auto index = static_cast<std::uint32_t>(w_.layers.size());
    std::vector<std::uint32_t> from;
    for (const Tensor& in : inputs)
      if (in.layer) from.push_back(*in.layer);
    // A layer that reads only the previous layer needs no inputs.
    if (!(from.size() == 1 && from[0] + 1 == index)) layer.inputs = from;
    double launches = 0;
    for (const Op& op : layer.forward) launches += op.kernels;
    layer.host_work = launches * kRecordsOfLaunch / kRecordsOfBlock;
    out.layer = index;
    w_.layers.push_back(std::move(layer));
    return out;
  }

  std::string numbered(std::string_view what) {
    return fmt::format("{}{}", what, w_.layers.size() + 1);
  }

  // Batch norm: read for the moments, read again and written. Backward: input and gradient are read
  // twice, and a gradient is written. Eager kernels with channels first have a cost of their own: a
  // norm without a row. ReLU works in place; in eager mode it is a separate pass.
  void add_norm_and_relu(LayerBuilder& layer, const Piece& p, const Tensor& out) {
    const double elements = out.elements();
    if (p.norm) {
      const bool fused = p.relu && !eager_;
      layer.traffic({.name = "batch_norm",
                     .kind = eager_ && !how_.channels_last ? OpKind::kNorm : OpKind::kElementwise,
                     .forward = layer.moved(3 * elements),
                     .backward = layer.moved((fused ? 6 : 5) * elements),
                     .kernels = 1,
                     .kernels_backward = 1});
      layer.weights(2. * out.channels, false);
    }
    if (p.relu && (eager_ || !p.norm))
      layer.traffic({.name = "relu",
                     .forward = layer.moved(2 * elements),
                     .backward = layer.moved(3 * elements)});
  }

  // In eager mode a separate kernel adds the bias, and backward sums it up.
  static void add_bias(LayerBuilder& layer, const Tensor& out) {
    layer.traffic({.name = "bias",
                   .forward = layer.moved(2 * out.elements()),
                   .backward = layer.moved(out.elements())});
  }

  // The input of the next layer, which is also all that checkpoints of each layer would keep.
  static void keep_output(LayerBuilder& layer, const Tensor& out) {
    layer.keep({.name = "output", .bytes = layer.moved(out.elements()), .input = true});
  }

  void keep_sample(LayerBuilder& layer, const Tensor& in) {
    if (!in.layer) layer.keep({.name = "sample", .bytes = layer.moved(in.elements())});
  }

  Result<Tensor> convolution(const Tensor& in, const Piece& p, const std::string& path) {
    if (p.groups == 0 || in.channels % p.groups != 0 || p.channels % p.groups != 0)
      return wrong(
          path,
          fmt::format("has {} groups for {} and {} channels", p.groups, in.channels, p.channels),
          "a number of groups that divides both");
    const Tensor out = TRY(shaped(in, p, p.channels, path));
    LayerBuilder layer(w_.names, how_.dtype);
    keep_sample(layer, in);
    layer.convolution({.groups = double(p.groups),
                       .positions = out.positions(),
                       .out = double(p.channels),
                       .in = double(in.channels),
                       .kernel = double(p.kernel_height) * p.kernel_width,
                       .moved = layer.moved(in.elements() + out.elements()),
                       .bias = p.bias,
                       .first = !in.layer,
                       .channels_last = how_.channels_last});
    if (eager_ && p.bias) add_bias(layer, out);
    add_norm_and_relu(layer, p, out);
    if (p.norm) layer.keep({.name = "before the norm", .bytes = layer.moved(out.elements())});
    keep_output(layer, out);
    return add(layer.finish(numbered("conv"), 1, layer.moved(out.elements())), {in}, out);
  }

  Result<Tensor> pool(const Tensor& in, const Piece& p, const std::string& path) {
    Tensor out = in;
    if (p.kind == PieceKind::kGlobalPool) {
      out.height = out.width = 1;
    } else if (p.kind == PieceKind::kAdaptivePool) {
      out.height = p.kernel_height;
      out.width = p.kernel_width;
    } else {
      out = TRY(shaped(in, p, in.channels, path));
    }
    LayerBuilder layer(w_.names, how_.dtype);
    keep_sample(layer, in);
    layer.traffic({.name = "pool",
                   .forward = layer.moved(in.elements() + out.elements()),
                   .backward = layer.moved(in.elements() + out.elements())});
    // The position of the largest value, in 64 bits.
    if (p.kind == PieceKind::kMaxPool)
      layer.keep({.name = "positions", .bytes = Bytes::b(8 * out.elements())});
    keep_output(layer, out);
    return add(layer.finish(numbered("pool"), 1, layer.moved(out.elements())), {in}, out);
  }

  Result<Tensor> norm(const Tensor& in, const Piece& p) {
    LayerBuilder layer(w_.names, how_.dtype);
    add_norm_and_relu(layer, p, in);
    keep_output(layer, in);
    return add(layer.finish(numbered("norm"), 1, layer.moved(in.elements())), {in}, in);
  }

  Result<Tensor> linear(const Tensor& in, const Piece& p, const std::string& path) {
    if (p.channels == 0) return wrong(path, "has no outputs", "a whole number above zero");
    const Tensor out = {.channels = p.channels, .height = 1, .width = 1};
    LayerBuilder layer(w_.names, how_.dtype);
    keep_sample(layer, in);
    layer.linear({.name = "linear",
                  .tokens = 1,
                  .out = double(p.channels),
                  .in = in.elements(),
                  .bias = p.bias,
                  .first = !in.layer,
                  .accumulated = false});
    add_norm_and_relu(layer, p, out);
    keep_output(layer, out);
    return add(layer.finish(numbered("fc"), 1, layer.moved(out.elements())), {in}, out);
  }

  Result<Tensor> branches(const Tensor& in, const Piece& p, const std::string& path) {
    if (!in.layer)
      return wrong(path, "branches directly from the sample", "a layer in front of branches");
    std::vector<Tensor> ends;
    for (std::size_t i = 0; i < p.branches.size(); ++i)
      ends.push_back(TRY(chain(in, p.branches[i], fmt::format("{}.branches[{}]", path, i))));
    Tensor out = ends.front();
    for (std::size_t i = 1; i < ends.size(); ++i) {
      const bool same = ends[i].height == out.height && ends[i].width == out.width &&
                        (p.join == Join::kConcatenate || ends[i].channels == out.channels);
      if (!same)
        return wrong(path,
                     fmt::format("joins {} × {} × {} and {} × {} × {}", out.channels, out.height,
                                 out.width, ends[i].channels, ends[i].height, ends[i].width),
                     "branches of one shape");
      if (p.join == Join::kConcatenate) out.channels += ends[i].channels;
    }
    LayerBuilder layer(w_.names, how_.dtype);
    if (p.join == Join::kConcatenate) {
      layer.traffic({.name = "concatenate",
                     .forward = layer.moved(2 * out.elements()),
                     .backward = layer.moved(2 * out.elements())});
      keep_output(layer, out);
    } else {
      // In place, onto the last branch; the gradients of both branches are summed where they split.
      layer.traffic({.name = "add",
                     .forward = layer.moved(3. * double(ends.size() - 1) * out.elements()),
                     .backward = layer.moved(3. * double(ends.size() - 1) * in.elements())});
      add_norm_and_relu(layer, p, out);
    }
    return add(layer.finish(numbered("join"), 1, layer.moved(out.elements())), ends, out);
  }

  const ConvNet& net_;
  const Implementation& how_;
  bool eager_;
  Workload w_{};
};

}  // namespace

Result<Workload> convnet(const ConvNet& net, const Implementation& how) {
  return ConvNetMaker(net, how).make();
}

void set_classes(ConvNet& net, std::uint32_t classes) {
  for (std::size_t i = net.pieces.size(); i-- > 0;)
    if (net.pieces[i].kind == PieceKind::kLinear) {
      net.pieces[i].channels = classes;
      return;
    }
}

}  // namespace rehearse::workload
