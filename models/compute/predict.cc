#include <algorithm>

#include "models/compute/alignment.h"
#include "models/compute/constants.h"
#include "models/compute/convolution_law.h"
#include "models/compute/transfer.h"
#include "sim/base/check.h"

namespace rehearse::compute {
namespace {

using workload::Op;
using workload::OpKind;

double kernels_of(const Op& op) { return std::max(op.kernels, 1.0); }

double moved(const DeviceFacts& facts, const MemoryConstants& memory, double share, const Op& op) {
  return workload::bytes_of(op).b() / (share * facts.memory_rate.bytes_per_s()) +
         kernels_of(op) * memory.call;
}

/// Time to quantise `elements`, by several kernels that read each other's results. Where
/// memory is not stacked, the cache is faster: working sets of up to half of it take 0.43 of the
/// time, from one and a half on all of it. Source: L40S; H100, whose memory is, shows no difference.
double quantising(const DeviceFacts& facts, double bytes, double elements) {
  constexpr double kKernels = 9e-6, kWorkingSet = 6, kHeld = 0.5, kCached = 0.43;
  double missed = 1;
  if (facts.l2 && !facts.stacked_memory)
    missed = std::clamp(kWorkingSet * elements / facts.l2->b() - kHeld, 0.0, 1.0);
  return kKernels +
         (kCached + (1 - kCached) * missed) * bytes * elements / facts.memory_rate.bytes_per_s();
}

/// The bytes of a product, as a time at the rate of memory: all of them in a job, and those that L2
/// does not hold in a benchmark, with the others at the rate of L2. Source: L40S, whose products
/// are faster than its memory up to a sixth of its L2, with six operands in turn.
double bytes_from_memory(const DeviceFacts& facts, double memory_rate, const Op& op,
                         const Timing& timing) {
  constexpr double kLost = 1.3;  // working set ÷ L2, from which nothing is held
  const double bytes = workload::bytes_of(op).b();
  if (!(timing.copies > 0) || !facts.l2 || !facts.boost_hz) return bytes;
  const double others = (timing.copies - 1) * op.batch * op.n * op.k * workload::bytes_of(op.dtype);
  const double missed = std::clamp(((bytes + others) / facts.l2->b() - 1) / (kLost - 1), 0.0, 1.0);
  const double cache = timing.cache * facts.multiprocessors * *facts.boost_hz;
  return bytes * (missed + (1 - missed) * std::min(1.0, memory_rate / cache));
}

/// The share of input and result that convolutions in matrix units convert from channels first:
/// cuDNN 8 and 9 on A100 and H100 convert both (recorded kernels: 1.1 and 1.0 times the time of their
/// bytes), cuDNN 7 on T4 the input alone.
double converted_share(const DeviceFacts& facts) {
  const bool before_ampere =
      facts.vendor == "nvidia" && !facts.peaks[static_cast<std::size_t>(Arithmetic::kTf32)];
  return before_ampere ? 0.5 : 1;
}

OpClass class_of_product(const DeviceFacts& facts, Arithmetic arithmetic, bool thin) {
  if (in_matrix_units(facts, arithmetic)) return thin ? OpClass::kThinUnitGemm : OpClass::kUnitGemm;
  return thin                         ? OpClass::kThinGemm
         : facts.half_in_matrix_units ? OpClass::kGemm
                                      : OpClass::kEarlyGemm;
}

Predicted matrix(const DeviceFacts& facts, const Constants& constants, const Op& op,
                 const Timing& timing) {
  const bool on_cores = op.kind == OpKind::kConvolution && needs_cores(op);
  const Arithmetic arithmetic = on_cores ? Arithmetic::kFp32 : arithmetic_of(facts, op.dtype);
  const MatrixConstants& c = constants.matrix[static_cast<std::size_t>(arithmetic)];
  const double sustained =
      c.factor * (op.batch > 1 ? c.batched : 1) *
      (on_cores ? facts.peak(arithmetic) : peak_of(facts, op.dtype)).flop_per_s() *
      (op.kind == OpKind::kGemm ? aligned_share(facts, arithmetic, op) : 1);
  const WaveDevice device{.multiprocessors = facts.multiprocessors,
                          .rate = sustained,
                          .memory_rate = facts.memory_rate.bytes_per_s(),
                          .reread = c.reread,
                          .clock = facts.boost_hz.value_or(0)};
  const MatrixProduct product{
      .batch = op.batch,
      .m = op.m,
      .n = op.n,
      .k = op.k,
      .bytes = bytes_from_memory(facts, c.shape.memory * device.memory_rate, op, timing)};
  const double alone = op.kind == OpKind::kConvolution
                           ? convolution_time(c.shape, device, arithmetic, op,
                                              converted_share(facts), spare_share(facts))
                           : wave_time(c.shape, device, product);
  double seconds = alone + (kernels_of(op) - 1) * c.shape.launch * pace(c.shape, device.clock);
  if (arithmetic == Arithmetic::kFp8 && timing.quantises)
    seconds += quantising(facts, c.quantise, op.batch * op.m * op.k);
  const double flops = workload::flops_of(op).flop();
  const OpClass kind = op.kind == OpKind::kConvolution
                           ? OpClass::kConvolution
                           : class_of_product(facts, arithmetic, flops < 0.5 * seconds * sustained);
  const bool inside = op.kind == OpKind::kGemm && flops >= c.from && flops <= c.to;
  return {
      seconds, kind,
      inside || c.provenance == Provenance::kDatasheet ? c.provenance : Provenance::kExtrapolated};
}

/// Seconds per byte of attention at `memory_rate`. A benchmark repeats the same operands: what fits
/// in half of L2 is read from there, and from one and a half on nothing is.
double attention_byte(const DeviceFacts& facts, double memory_rate, double bytes,
                      const Timing& timing) {
  constexpr double kHeld = 0.5;
  if (!(timing.copies > 0) || !facts.l2 || !facts.boost_hz) return 1 / memory_rate;
  const double missed = std::clamp(bytes / facts.l2->b() - kHeld, 0.0, 1.0);
  const double cache = timing.cache * facts.multiprocessors * *facts.boost_hz;
  return missed / memory_rate + (1 - missed) / std::max(cache, memory_rate);
}

Predicted attention(const DeviceFacts& facts, const Constants& constants, const Op& op,
                    const Timing& timing) {
  const Arithmetic arithmetic = arithmetic_of(facts, op.dtype);
  const double peak = peak_of(facts, op.dtype).flop_per_s();
  const double factor = constants.matrix[static_cast<std::size_t>(arithmetic)].factor;
  const AttentionConstants& law = constants.attention;
  const double call = constants.memory.call;
  if (constants.attention_share) {
    const double flops = workload::flops_of(op).flop() * (op.causal ? 0.5 : 1) * op.effort;
    const double computing = flops / (*constants.attention_share * peak);
    const double bytes = workload::bytes_of(op).b() /
                         (constants.memory.elementwise * facts.memory_rate.bytes_per_s());
    return {std::max(computing, bytes) + kernels_of(op) * call, OpClass::kAttention,
            Provenance::kDatasheet};
  }
  const AttentionFamily family = family_of(facts, law, constants.attention_kernels);
  const double copied = op.bytes.b(), operands = workload::bytes_of(op).b() - copied;
  const double byte =
      attention_byte(facts, law.memory * facts.memory_rate.bytes_per_s(), operands, timing);
  return {attention_time(facts, law, family, factor * peak, byte * operands, op) + byte * copied +
              (kernels_of(op) - 1) * call,
          constants.attention_kernels ? OpClass::kNamedAttention : OpClass::kAttention,
          Provenance::kDatasheet};
}

/// Rows are read in the format of the op; FP8 rows are read as half precision.
RowKernel rows_of(const Op& op) {
  return {.bytes = workload::bytes_of(op).b(),
          .width = op.width,
          .element = std::max(workload::bytes_of(op.dtype), 2.0)};
}

/// Batch norm with channels first, which is a norm without a row: its kernels take at most this many
/// elements per multiprocessor and clock, in any format. Recorded in FP32: 1.8 on A100 and H100, and
/// on V100, where memory decides, 1.5; whole jobs in half precision show 1.9 to 2.5.
constexpr double kBatchNorm = 2;

Predicted batch_norm(const DeviceFacts& facts, const Constants& constants, const Op& op) {
  const MemoryConstants& memory = constants.memory;
  const double calls = kernels_of(op) * memory.call;
  const double moving = moved(facts, memory, memory.elementwise, op) - calls;
  const double elements = op.bytes.b() / workload::bytes_of(op.dtype);
  const double issuing =
      facts.boost_hz ? elements / (kBatchNorm * facts.multiprocessors * *facts.boost_hz) : 0;
  return {std::max(moving, issuing) + calls, OpClass::kNorm, constants.memory_provenance};
}

/// Without the time of the call.
Predicted alone(const DeviceFacts& facts, const Constants& constants, const Op& op,
                const Timing& timing) {
  const MemoryConstants& memory = constants.memory;
  switch (op.kind) {
    case OpKind::kGemm:
    case OpKind::kConvolution: return matrix(facts, constants, op, timing);
    case OpKind::kAttention: return attention(facts, constants, op, timing);
    case OpKind::kNorm:
      if (!(op.width > 0)) return batch_norm(facts, constants, op);
      return {moved(facts, memory,
                    memory.elementwise * memory.norm / norm_passes(facts, memory, rows_of(op)), op),
              OpClass::kNorm, constants.memory_provenance};
    case OpKind::kSoftmax:
      return {
          moved(facts, memory,
                memory.elementwise * memory.softmax / softmax_passes(facts, memory, rows_of(op)),
                op),
          OpClass::kSoftmax, constants.memory_provenance};
    case OpKind::kElementwise:
    case OpKind::kGather: break;
    case OpKind::kCollective:
    case OpKind::kCopy:
      REHEARSE_CHECK(false, "a {} has no cost on a single device", workload::to_string(op.kind));
  }
  return {moved(facts, memory, memory.elementwise, op), OpClass::kElementwise,
          constants.memory_provenance};
}

}  // namespace

Predicted predict(const DeviceFacts& facts, const Constants& constants, const Op& op,
                  const Timing& timing) {
  Predicted p = alone(facts, constants, op, timing);
  p.seconds += timing.overhead;
  return p;
}

}  // namespace rehearse::compute
