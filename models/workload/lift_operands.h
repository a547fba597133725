// Operands of a recorded operator, and the computation that its name implies.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "models/workload/op.h"

namespace rehearse::workload::lifting {

struct Operand {
  std::vector<double> extents;      ///< empty: no tensor, or a number
  double element = 0;               ///< bytes; 0: no tensor, or of unknown type
  std::optional<Dtype> dtype = {};  ///< for floating types of matrix operations

  bool is_tensor() const { return !extents.empty(); }
  bool is_floating() const { return dtype.has_value(); }
  double elements() const;
  double bytes() const { return elements() * element; }
  double last(std::size_t from_end = 0) const { return extents[extents.size() - 1 - from_end]; }
  friend bool operator==(const Operand&, const Operand&) = default;
};

/// Parses texts such as "[[32, 3, 224, 224], [64, 3, 7, 7], []]" and ["float", "float", "Int"].
/// Tensors of a list replace the list, without a type if the recording only states a list. Other
/// operands keep their place and are empty.
std::vector<Operand> parse_operands(std::string_view shapes, std::string_view types);

/// The role of an operator; kPlain if its name has none, so that its children decide.
enum class Role {
  kPlain,
  kConvolution,
  kLinear,  ///< its weight has rows of outputs
  kMatrix,  ///< mm, bmm, addmm, matmul
  kAttention,
  kNorm,
  kSoftmax,
  kGather,
  kPool,
};

/// "aten::cudnn_convolution", "DropoutAddLayerNormFn", "_flash_attention_forward". Backward
/// operators have the role of their forward ones.
Role role_of(std::string_view name);

/// The two operands that an operator of role kLinear or kMatrix multiplies, as rows × summed and
/// summed × columns; more extents in front count matrices. Nothing if the operands do not match.
struct Factors {
  Operand a, b;
};
std::optional<Factors> factors_of(std::string_view name, const std::vector<Operand>& operands);

/// Whether backward needs no tensor of this operator: additions, copies, changes of layout.
bool keeps_nothing(std::string_view name);

/// "relu_", "add_": writes where it reads.
bool in_place(std::string_view name);

/// The number format of a kernel by its name: an operand without extents.
std::optional<Operand> type_of_kernel(std::string_view kernel);

/// Without namespaces: "aten::conv2d" -> "conv2d".
std::string_view short_name(std::string_view name);

}  // namespace rehearse::workload::lifting
