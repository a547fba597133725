// The law of a slice for a job without measurements: from the FLOPs and bytes of its layers,
// its number of kernels, and the GPU's published peaks.
//
//   w = (FLOPs ÷ peak + bytes ÷ bandwidth) ÷ η      three times that in training
//   A = launches · launch + training: passes · 4 B · parameters ÷ bandwidth
//   H = launches · host                             training: times a share, as calls are queued
//   ahead
//
// α is the part of arithmetic in w, β that of the optimizer in A. Source of the form and the
// constants: the jobs of MIGProfiler (docs/concepts/sharing.md), the counts of launches by hand.
#pragma once

#include <array>

#include "models/sharing/slice_law.h"

namespace rehearse::sharing {

/// A step, of one sample forward.
struct DescribedJob {
  WorkKind kind;
  bool training;
  Flops flops;
  Bytes bytes;        ///< that its kernels read and write
  double launches;    ///< kernels, whatever the batch
  double parameters;  ///< in training: parameters that the optimizer updates
  double parameter_tensors;
};

/// An encoder of transformer blocks of multi-head attention and an MLP four times as wide, in FP32
/// storage: 24 · width² + 4 · width · sequence FLOPs and 60 · width · 4 B per token and layer.
DescribedJob encoder_job(WorkKind kind, double layers, double width, double sequence,
                         double launches_per_layer);

struct UnmeasuredConstants {
  std::array<double, kWorkKinds> efficiency = {};  ///< η
  Seconds launch = Seconds::s(0);                  ///< GPU time per kernel
  double optimizer_passes = 0;                     ///< over 4 bytes of every parameter
  double updates_per_tensor = 0;                   ///< kernels of the optimizer
  Seconds host = Seconds::s(0);                    ///< per kernel; differs by host
  double host_in_training = 0;                     ///< times that
  double spread = 0;                               ///< half of a 90 % interval, relative
};

/// Fitted on 10 jobs. The host's 32 µs are of a host of 2022; another's was 51.
UnmeasuredConstants shipped_unmeasured();

/// Against the whole GPU without MIG: the ratio of a slice is that of ratio_of_gpu. FP32 matmul
/// takes the GPU's FP32 peak, everything else TF32, or FP32 where it has none.
JobLaw describe(const DescribedJob& job, const cluster::Gpu& gpu,
                const UnmeasuredConstants& constants);

/// Of a profile against the GPU without MIG, which may have more multiprocessors than its instances
/// have together.
SliceRatio ratio_of_gpu(const cluster::MigDevice& device, std::uint32_t profile);

}  // namespace rehearse::sharing
