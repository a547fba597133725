// The ranges that PyTorch's emit_nvtx opens around operators, by the grammar of their texts:
//   NAME[, seq = N][, op_id = K][, sizes = [[..], ..]][, input_op_ids = [..]]
// (torch/csrc/profiler/util.cpp, getNvtxStr).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rehearse::ingest {

struct TorchRange {
  std::string_view name;
  bool is_operator;  ///< else a range that the program itself names
  std::optional<std::uint32_t> sequence = {};
  std::optional<std::uint32_t> op_id = {};  ///< number of the record function
  std::string_view shapes = {};             ///< "[[2, 3], []]"; empty if not given or cut off
};

/// Nothing if the text is not such a range. Texts may be cut at their end.
std::optional<TorchRange> parse_torch_range(std::string_view text);

/// Whether an operator with this name computes gradients and so carries the number of a forward
/// operator.
bool names_backward_node(std::string_view name);

}  // namespace rehearse::ingest
