#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "models/workload/description.h"

namespace rehearse::workload {
namespace {

constexpr double kMostBlocks = 10'000;
constexpr std::size_t kMostStages = 16;  // widths double from one to the next
constexpr std::uint32_t kMostWidth = 16'384;

Piece convolution(std::uint32_t channels, std::uint32_t kernel, std::uint32_t stride,
                  std::uint32_t groups = 1) {
  return {.kind = PieceKind::kConvolution,
          .channels = channels,
          .kernel_height = kernel,
          .kernel_width = kernel,
          .stride = stride,
          .padding_height = kernel / 2,
          .padding_width = kernel / 2,
          .groups = groups};
}

// Convolution, batch norm, ReLU.
Piece normed(Piece piece, bool relu = true) {
  piece.norm = true;
  piece.relu = relu;
  return piece;
}

Piece pool(PieceKind kind, std::uint32_t kernel, std::uint32_t stride, std::uint32_t padding) {
  return {.kind = kind,
          .kernel_height = kernel,
          .kernel_width = kernel,
          .stride = stride,
          .padding_height = padding,
          .padding_width = padding};
}

Piece linear(std::uint32_t outputs, bool relu) {
  return {.kind = PieceKind::kLinear, .channels = outputs, .bias = true, .relu = relu};
}

Piece residual_block(const ResNet& net, std::uint32_t planes, std::uint32_t stride, bool project) {
  std::vector<Piece> path;
  std::uint32_t out = planes;
  if (net.bottleneck) {
    const std::uint32_t width = planes * net.width_per_group / 64 * net.groups;
    out = 4 * planes;
    path = {normed(convolution(width, 1, 1)), normed(convolution(width, 3, stride, net.groups)),
            normed(convolution(out, 1, 1), false)};
  } else {
    path = {normed(convolution(planes, 3, stride)), normed(convolution(planes, 3, 1), false)};
  }
  std::vector<Piece> shortcut;
  if (project) shortcut.push_back(normed(convolution(out, 1, stride), false));
  return {.kind = PieceKind::kBranches,
          .relu = true,
          .branches = {std::move(shortcut), std::move(path)},
          .join = Join::kAdd};
}

Status check_stages(const std::string& name, std::string_view what,
                    const std::vector<std::uint32_t>& stages) {
  const double sum = std::accumulate(stages.begin(), stages.end(), 0.);
  if (stages.empty())
    return fail(fmt::format("'{}' has no {}", name, what), "a list with the number per stage");
  if (stages.size() > kMostStages || sum > kMostBlocks)
    return fail(fmt::format("'{}' has {} {} in {} stages", name, sum, what, stages.size()),
                fmt::format("at most {} in {}", kMostBlocks, kMostStages));
  return {};
}

ConvNet square(std::string name, std::uint32_t image) {
  return {.name = std::move(name), .channels = 3, .height = image, .width = image};
}

}  // namespace

Result<ConvNet> convnet_of(const ResNet& net) {
  TRY(check_stages(net.name, "blocks", net.blocks));
  if (double(net.groups) * net.width_per_group > kMostWidth)
    return fail(
        fmt::format("'{}' has {} groups of width {}", net.name, net.groups, net.width_per_group),
        fmt::format("at most {} together", kMostWidth));
  ConvNet made = square(net.name, net.image);
  made.pieces = {normed(convolution(64, 7, 2)), pool(PieceKind::kMaxPool, 3, 2, 1)};
  std::uint32_t planes = 64;
  for (std::size_t stage = 0; stage < net.blocks.size(); ++stage, planes *= 2)
    for (std::uint32_t i = 0; i < net.blocks[stage]; ++i) {
      const std::uint32_t stride = stage > 0 && i == 0 ? 2 : 1;
      made.pieces.push_back(
          residual_block(net, planes, stride, i == 0 && (stage > 0 || net.bottleneck)));
    }
  made.pieces.push_back({.kind = PieceKind::kGlobalPool});
  made.pieces.push_back(linear(net.classes, false));
  return made;
}

Result<ConvNet> convnet_of(const Vgg& net) {
  TRY(check_stages(net.name, "convolutions", net.convolutions));
  ConvNet made = square(net.name, net.image);
  std::uint32_t channels = 64;
  for (const std::uint32_t convolutions : net.convolutions) {
    for (std::uint32_t i = 0; i < convolutions; ++i) {
      Piece piece = convolution(channels, 3, 1);
      piece.bias = true;
      piece.norm = net.norm;
      piece.relu = true;
      made.pieces.push_back(piece);
    }
    made.pieces.push_back(pool(PieceKind::kMaxPool, 2, 2, 0));
    channels = std::min(2 * channels, 512U);
  }
  // For images of another size than 224 the classifier still sees 7 × 7 positions.
  if (net.image != 224)
    made.pieces.push_back(
        {.kind = PieceKind::kAdaptivePool, .kernel_height = 7, .kernel_width = 7});
  for (const std::uint32_t outputs : {4096U, 4096U}) made.pieces.push_back(linear(outputs, true));
  made.pieces.push_back(linear(net.classes, false));
  return made;
}

Result<ConvNet> convnet_of(const DenseNet& net) {
  TRY(check_stages(net.name, "blocks", net.blocks));
  ConvNet made = square(net.name, net.image);
  made.pieces = {normed(convolution(net.initial, 7, 2)), pool(PieceKind::kMaxPool, 3, 2, 1)};
  const Piece norm = {.kind = PieceKind::kNorm, .norm = true, .relu = true};
  std::uint32_t channels = net.initial;
  for (std::size_t block = 0; block < net.blocks.size(); ++block) {
    for (std::uint32_t i = 0; i < net.blocks[block]; ++i, channels += net.growth)
      made.pieces.push_back({.kind = PieceKind::kBranches,
                             .branches = {{},
                                          {norm, normed(convolution(4 * net.growth, 1, 1)),
                                           convolution(net.growth, 3, 1)}}});
    made.pieces.push_back(norm);
    if (block + 1 == net.blocks.size()) break;
    channels /= 2;
    made.pieces.push_back(convolution(channels, 1, 1));
    made.pieces.push_back(pool(PieceKind::kAveragePool, 2, 2, 0));
  }
  made.pieces.push_back({.kind = PieceKind::kGlobalPool});
  made.pieces.push_back(linear(net.classes, false));
  return made;
}

}  // namespace rehearse::workload
