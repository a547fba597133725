// Convolutional networks: chains and branches of convolutions, pools and fully connected layers,
// from a small description to a Workload for one sample.
//
// One layer per piece: a convolution with its batch norm and ReLU, a pool, or a fully
// connected layer. Where branches meet, one layer joins them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/transformer.h"
#include "models/workload/workload.h"
#include "sim/base/result.h"

namespace rehearse::workload {

enum class PieceKind : std::uint8_t {
  kConvolution,
  kMaxPool,
  kAveragePool,
  kGlobalPool,    ///< the mean of each channel
  kAdaptivePool,  ///< to `kernel_height` × `kernel_width` positions
  kNorm,          ///< batch norm and ReLU alone, in front of a convolution
  kLinear,
  kBranches,
  kRepeat,  ///< the one branch, `times` over
};

enum class Join : std::uint8_t { kConcatenate, kAdd };
inline constexpr std::string_view kJoinNames[] = {"concatenate", "add"};

struct Piece {
  PieceKind kind;
  std::uint32_t channels = 0;  ///< output channels
  std::uint32_t kernel_height = 1;
  std::uint32_t kernel_width = 1;
  std::uint32_t stride = 1;
  std::uint32_t padding_height = 0;
  std::uint32_t padding_width = 0;
  std::uint32_t groups = 1;
  bool bias = false;
  bool norm = false;
  bool relu = false;
  bool round_up = false;                          ///< for pools: partly covered positions count
  std::vector<std::vector<Piece>> branches = {};  ///< an empty one passes its input on
  Join join = Join::kConcatenate;
  std::uint32_t times = 1;
};

struct ConvNet {
  std::string name;
  std::uint32_t channels = 3;  ///< channels of a sample
  std::uint32_t height = 224;
  std::uint32_t width = 224;
  std::vector<Piece> pieces = {};
};

/// Fails if a piece leaves no positions, if groups do not divide channels, or if added branches
/// differ in shape. Only `dtype`, `elementwise` and
/// `channels_last` of `how` are used.
Result<Workload> convnet(const ConvNet& net, const Implementation& how);

/// Sets the number of classes of the last fully connected layer; without one, nothing changes.
void set_classes(ConvNet& net, std::uint32_t classes);

}  // namespace rehearse::workload
