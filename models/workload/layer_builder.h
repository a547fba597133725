// LayerBuilder: a layer from its pieces in the order of forward. Each piece brings its backward
// along, so that the backward list is forward's pieces in reverse.
//
// Rules that strategies rely on:
//  1. The backward of a linear is the gradient of its input, immediately followed by that of its
//     weights, then the accumulation of the latter.
//  2. A gemm or gather whose extent `k` is divided by tensor parallelism leaves partial sums,
//     except for gradients of weights, which sum over tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/workload.h"
#include "sim/base/names.h"

namespace rehearse::workload {

/// The dimension of a weight matrix that tensor parallelism divides (Megatron-LM's names).
enum class Split : std::uint8_t {
  kNone,
  kColumns,  ///< outputs
  kRows,     ///< inputs: the results are partial sums
};

struct Linear {
  std::string_view name;
  double tokens;  ///< tokens per expert if there are several
  double out;
  double in;
  Split split = Split::kNone;
  bool bias = false;
  double experts = 0;       ///< number of matrices, one for each expert; 0: no mixture
  bool first = false;       ///< the gradient of its input is not needed: it is the first
  bool has_matrix = true;   ///< else the matrix is another layer's
  bool accumulated = true;  ///< its gradient is added to that of earlier microbatches
  bool casts_input = true;  ///< in FP8; else the previous linear cast the same input
};

/// Square kernels and others: `kernel` is the number of positions they cover.
struct Convolution {
  double groups;
  double positions;  ///< output positions
  double out;        ///< output channels
  double in;
  double kernel;
  Bytes moved;  ///< input and output
  bool bias;
  bool first;  ///< as in Linear
  bool channels_last = false;
};

/// A memory-bound piece. Backward has no op where `backward` is zero.
struct Traffic {
  std::string_view name;
  OpKind kind = OpKind::kElementwise;
  Bytes forward;
  Bytes backward;
  bool tensor = false;
  bool core = false;
  double width = 0;
  double kernels = 1;
  double kernels_backward = 1;
};

class LayerBuilder {
 public:
  /// Keeps a reference to `names`.
  LayerBuilder(NamePool& names, Dtype dtype, bool fused_accumulation = false)
      : names_(names), dtype_(dtype), fused_accumulation_(fused_accumulation) {}

  /// Stored activations: 8-bit numbers are operands only.
  double element() const { return dtype_ == Dtype::kFp8 ? 2 : bytes_of(dtype_); }
  /// The bytes of that number of activations, read or written.
  Bytes moved(double elements) const { return Bytes::b(elements * element()); }

  void linear(const Linear& piece);
  void convolution(const Convolution& piece);
  void traffic(const Traffic& piece);
  /// A product of activations: `batch` matrices, divided by samples and by tensor parallelism.
  void product(std::string_view name, double batch, double m, double n, double k);
  /// Fused attention. Backward is twice forward: twice the FLOPs and the bytes. One recomputation
  /// of the scores, which MFU does not count, is left out.
  void attention(double batch, double queries, double keys, double head_size, bool causal);
  /// Lookup of rows in a table of weights with `in` rows, divided by rows of the table.
  void lookup(std::string_view name, double tokens, double width, double rows);
  void weights(double count, bool tensor, bool expert = false);
  void keep(const SavedActivation& saved) { layer_.saved.push_back(saved); }

  /// The layer; the builder is empty then.
  Layer finish(std::string name, std::uint32_t count, Bytes output);

 private:
  std::string_view named(std::string_view name, std::string_view part);
  Op op(std::string_view name, OpKind kind) const;
  Op accumulation(std::string_view name, double parameters, bool tensor, bool expert);
  void cast(const Linear& piece, std::vector<Op>& gradients);

  NamePool& names_;
  Dtype dtype_;
  bool fused_accumulation_;  // products of weight gradients add to the sums themselves
  Layer layer_{};
  std::vector<std::vector<Op>> backward_ = {};  // by piece
};

/// The bytes moved by adding the gradient of one parameter to the accumulated one: the new gradient
/// is read, and the FP32 sum is read and written. Megatron's published runs show 10 for half
/// precision.
constexpr double accumulation_bytes(Dtype dtype) {
  return 8 + (dtype == Dtype::kFp8 ? 2 : bytes_of(dtype));
}

}  // namespace rehearse::workload
