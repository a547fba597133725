// The law of a slice: the step time on an instance of a partitioned GPU, from step times on the
// whole GPU.
//
//   gpu_g(b) = A · [(1 − β) + β · m] + w · b · ρ    m: memory slices of the whole ÷ of the slice
//   ρ        = [α · c + (1 − α) · m] / κ            c: multiprocessors, likewise
//   T_g(b)   = (H^p + gpu_g(b)^p)^(1/p)
//
// H is the host's time, the same on every slice. A is the GPU's work that does not depend on the
// batch (tails of small kernels, the optimizer); the share β of it waits for memory. w is its work
// per sample; the share α of it waits for arithmetic. Host and GPU work at the same time, so the
// longer of the two decides, with a soft knee (p = 8). H, A and w belong to the job. α, β and κ
// come from other jobs; with a measured slice of the job, α, β and p are fitted to it. Source of
// the form and of the shipped constants: runs of 14 jobs on slices of A100-40 and A100-80
// (MIGProfiler and MISO, boringlee24/socc22-miso), docs/concepts/sharing.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/cluster/partition.h"

namespace rehearse::sharing {

/// The factor by which a slice has less of its device than the instance where the job was measured:
/// 7 and 8 for 1g of 7g.
struct SliceRatio {
  double compute = 1;  ///< multiprocessors there ÷ of the slice
  double memory = 1;   ///< memory slices there ÷ of the slice

  bool is_whole() const { return compute == 1 && memory == 1; }
};

/// The ratio of a profile to the instance of all slices.
SliceRatio ratio_of(const cluster::MigDevice& device, std::uint32_t profile);

/// The main work of a job, which determines α.
enum class WorkKind : std::uint8_t { kFp32Matmul, kTensorTransformer, kConvolutional, kUnknown };
inline constexpr std::size_t kWorkKinds = 4;
inline constexpr std::array<std::string_view, kWorkKinds> kWorkKindNames = {
    "fp32_matmul", "transformer", "convolutional", "unknown"};

/// The regime of a prediction, which determines its uncertainty.
enum class Regime : std::uint8_t {
  kFloor,    ///< the host is the bottleneck on the slice and on the whole GPU
  kCrossed,  ///< the host is the bottleneck on the whole GPU, and the GPU on the slice
  kBusy,     ///< the GPU is the bottleneck on both
};
inline constexpr std::size_t kRegimes = 3;

struct SliceConstants {
  std::array<double, kWorkKinds> alpha = {};
  double beta_inference = 0;
  double beta_training = 0;
  double kappa = 1;
  /// Half of a 90 % interval, relative, by Regime.
  std::array<double, kRegimes> spread = {};

  double alpha_of(WorkKind kind) const { return alpha[static_cast<std::size_t>(kind)]; }
  double beta(bool training) const { return training ? beta_training : beta_inference; }
};

/// Fitted on the 13 jobs whose sweep on the whole GPU at least doubles; spreads from predictions of
/// jobs left out.
SliceConstants shipped_constants();

/// A timed step. The GPU's work grows with `size`, the batch.
struct SweepPoint {
  double size;
  Seconds time;
};

struct JobLaw {
  Seconds host = Seconds::s(0);      ///< H
  Seconds fixed = Seconds::s(0);     ///< A
  Seconds per_size = Seconds::s(0);  ///< w
  double alpha;
  double beta;
  double kappa;
  double sharpness = 8;  ///< p
  double residual = 0;   ///< root mean square of relative errors on the measured steps
  /// Whether the sweep determines the GPU's time: its longest step is at least twice its shortest,
  /// or a slice was measured too. Otherwise w and A are almost unknown: time one run on the
  /// smallest slice.
  bool identified = true;
  double smallest = 1, largest = 1;  ///< sizes that were measured
  std::array<double, kRegimes> spread;
  /// The provenance of predictions for slices: extrapolated from measured steps, or datasheet.
  Provenance provenance = Provenance::kExtrapolated;

  Seconds gpu(SliceRatio slice, double size) const;
  Seconds time(SliceRatio slice, double size) const;
  Regime regime(SliceRatio slice, double size) const;
};

/// The law of a job timed on the whole GPU alone. If that does not identify it, A is tied to H
/// (docs/decisions/0189-work-that-the-host-hides.md), and p is the best of four values. Fails
/// with one line on fewer than three sizes, and on sizes and times that are not above zero.
Result<JobLaw> fit_whole(const std::vector<SweepPoint>& whole, WorkKind kind, bool training,
                         const SliceConstants& constants);

/// For a job timed over sequence lengths at one batch: combines the terms linear and quadratic in
/// the sequence (attention) into one size.
struct SequenceLaw {
  JobLaw law;        ///< over size_of(sequence); without fixed work
  double quadratic;  ///< per length

  double size_of(double sequence) const { return sequence * (1 + quadratic * sequence); }
};
/// Sizes are sequence lengths. Fails as fit_whole.
Result<SequenceLaw> fit_sequence(const std::vector<SweepPoint>& whole, WorkKind kind, bool training,
                                 const SliceConstants& constants);

/// As fit_whole, for a job that was also timed on one slice. α, β and p are then its own,
/// regularized towards the constants as far as the measured steps leave them open. Fails likewise;
/// one step on the slice is enough.
Result<JobLaw> fit_with_slice(const std::vector<SweepPoint>& whole, SliceRatio slice,
                              const std::vector<SweepPoint>& on_slice, WorkKind kind, bool training,
                              const SliceConstants& constants);

/// The time with its interval. If the law is not identified, the interval reaches from the time
/// on the whole GPU to that of an always busy GPU. Its provenance is interpolated on the
/// whole GPU within the measured range, and extrapolated elsewhere.
Estimate<Seconds> predict(const JobLaw& law, SliceRatio slice, double size);

/// The throughput gain of `count` equal slices that run steps of this size concurrently, over the
/// whole GPU that runs as many one after another. Below 1 where slices are busy.
double collocation_gain(const JobLaw& law, SliceRatio slice, std::uint32_t count, double size);

}  // namespace rehearse::sharing
