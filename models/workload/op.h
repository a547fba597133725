// Op: one operation of a layer, described by the kind, extents and number format that determine its
// time.
//
// Extents are those of one microbatch on one rank. Two tags say how parallelism divides them:
// `samples` names the extent that counts samples (and the tokens of each), `tensor` the one that
// tensor parallelism divides. Strategies divide extents by these tags alone, so they treat a model
// of the zoo and a recording in the same way.
//
//   kind          batch           m            n             k               bytes
//   gemm          matrices        rows         columns       summed over     follow from extents
//   convolution   groups          positions    channels out  inputs summed   input, output; weights
//                                                                            follow from extents
//   attention     samples, heads  queries      keys          head size       more than extents say
//   gather        –               rows taken   row length    rows of table   follow from extents
//   elementwise, norm, softmax    –            –             –               read and written
//   collective, copy                                                         of the message
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/collective.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::workload {

/// The number format of an operation's operands. TF32 operands are stored as FP32.
enum class Dtype : std::uint8_t { kFp32, kTf32, kFp16, kBf16, kFp8 };
inline constexpr std::string_view kDtypeNames[] = {"fp32", "tf32", "fp16", "bf16", "fp8"};
constexpr std::string_view to_string(Dtype d) { return kDtypeNames[static_cast<int>(d)]; }

/// The size in bytes of one element as a matrix operand.
constexpr double bytes_of(Dtype d) {
  switch (d) {
    case Dtype::kFp32:
    case Dtype::kTf32: return 4;
    case Dtype::kFp16:
    case Dtype::kBf16: return 2;
    case Dtype::kFp8: return 1;
  }
  return 4;
}

enum class OpKind : std::uint8_t {
  kGemm,
  kConvolution,
  kAttention,  ///< fused: scores never reach memory
  kElementwise,
  kNorm,
  kSoftmax,
  kGather,      ///< rows of a table: embeddings
  kCollective,  ///< of kind `collective` along `axis`
  kCopy,        ///< between device and host
};
inline constexpr std::string_view kOpKindNames[] = {"gemm",        "convolution", "attention",
                                                    "elementwise", "norm",        "softmax",
                                                    "gather",      "collective",  "copy"};
constexpr std::string_view to_string(OpKind k) { return kOpKindNames[static_cast<int>(k)]; }

enum class Extent : std::uint8_t { kNone, kBatch, kM, kN, kK, kBytes };

/// Extents and number format of a recorded time.
struct Extents {
  double batch, m, n, k;
  Bytes bytes;
  Dtype dtype;
  friend bool operator==(const Extents&, const Extents&) = default;
};

/// The ranks that take part in a collective: those that differ only along this axis of the plan.
enum class Axis : std::uint8_t { kTensor, kContext, kExpert, kData };
inline constexpr std::string_view kAxisNames[] = {"tensor", "context", "expert", "data"};
constexpr std::string_view to_string(Axis a) { return kAxisNames[static_cast<int>(a)]; }

/// Start of a communication, and the op that waits for it. Ops of a phase are ordered.
enum class Issue : std::uint8_t {
  kInline,       ///< begins when the op before it has ended; the op after it waits
  kOverlapNext,  ///< as inline, but the next ops (Op::alongside) overlap it; later ones wait for both
  kPrefetched,  ///< begins while the layer before runs; the op after it waits
  kDeferred,    ///< begins when the op before it has ended; only the optimizer step waits
};

struct Op {
  std::string_view name;  ///< a literal, or a name in Workload::names
  OpKind kind;
  Dtype dtype = Dtype::kBf16;
  double batch = 1;
  double m = 0;
  double n = 0;
  double k = 0;
  Bytes bytes = Bytes::b(0);
  double width = 0;     ///< norm and softmax: elements of a row
  bool causal = false;  ///< attention: half of the keys count
  double kernels = 1;   ///< number of kernels; each is launched
  /// The time of an op ÷ that of forward, per counted FLOP. The backward of fused attention
  /// computes scores again (2.5 of forward's FLOPs where 2 count) at 0.63 of the peak, where
  /// forward has 0.73 (Dao, FlashAttention-2, 2023, on A100): 1.45.
  double effort = 1;
  Extent samples = Extent::kNone;
  Extent tensor = Extent::kNone;
  bool expert = false;           ///< of a mixture's experts: expert parallelism divides `batch`
  bool channels_last = false;    ///< convolution: the elements of a position are adjacent (NHWC)
  bool core = false;             ///< attention's scores: selective recomputation runs it again
  bool weight_gradient = false;  ///< backward: no other layer waits for it
  CollectiveKind collective = CollectiveKind::kBarrier;
  Axis axis = Axis::kTensor;
  Issue issue = Issue::kInline;
  /// The number of computing ops that overlap the communications before them. Given by the last of
  /// these communications, and by the first op of a phase for those at the end of the layer before.
  std::uint32_t alongside = 1;
  bool host =
      false;  ///< on the processor of the host, at the rate of its memory: offloaded updates
  /// What the NVMe drives of the node read and write for it at the same time: copies and updates of
  /// state that is kept there.
  Bytes nvme = Bytes::b(0);
  /// The recorded time, for the extents in `measured_for`. For other extents, the cost model
  /// predicts the time (compute::OpCost::time).
  std::optional<Estimate<Seconds>> measured = {};
  /// Absent: those the op has. divide() keeps them.
  std::optional<Extents> measured_for = {};

  bool communicates() const { return kind == OpKind::kCollective || kind == OpKind::kCopy; }
  friend bool operator==(const Op&, const Op&) = default;
};

/// For maps of ops by value. Keys typically differ in little besides their extents.
struct OpHash {
  std::size_t operator()(const Op& op) const;
};

/// Counts a multiply-add as two, and only matrix operations, as MFU does. Attention counts all
/// keys, causal or not, as published utilisations do.
Flops flops_of(const Op& op);

/// Minimum bytes read and written.
Bytes bytes_of(const Op& op);

/// Divides the extent. `kNone` leaves the op unchanged. Counts that are whole up to rounding are
/// made whole, so that dividing and multiplying by the same number is exact.
void divide(Op& op, Extent extent, double by);

/// Changes the number format: bytes that do not follow from extents change in proportion.
void set_format(Op& op, Dtype dtype);

/// The current extents.
Extents extents_of(const Op& op);
/// Whether its extents or its number format differ from those of its recorded time.
bool differs_from_measured(const Op& op);
/// The op with the extents that its time was recorded for.
Op as_measured(Op op);

}  // namespace rehearse::workload
