// Two jobs on one GPU, without partitions: the share of its speed that each keeps.
//
// The share of a job with another is
//
//   turns · q / (q + q') · exp(pair of families + both alike + slopes · log2 of both batches
//                              + sensitivity of the job + pressure of the other),   q = step^0.15
//
// The first factor is time slicing: turns rotate, longer steps gain, and shares sum to
// 1.05, as on K80 (22 batches of 7 jobs; sums 0.94 to 1.23). It is the whole law without a measured
// pair of the GPU. The second factor comes from measured pairs of that GPU: kernels that leave room
// for each other, or compete for memory, host or cache; competition of two families costs both of
// them, which is the common term. Terms are regularized towards 0 (ridge), so that few pairs change
// few of them; the fit minimizes the sum of absolute errors.
//
// Validity: training jobs of one GPU each, on the GPU type of the pairs. Errors of pairs
// left out: docs/accuracy.md. Pairs that share space (V100) can sum to 0.5 or 1.9, which
// the jobs alone do not show: measure some (pair_choice.h selects them), or use the shipped
// measurements of the GPU (shipped_pairs.h).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::sharing {

struct Resident {
  std::string family;            ///< "ResNet-18"; jobs of a family differ by their batch
  double batch = 1;              ///< 1 where it has none
  Seconds step = Seconds::s(1);  ///< alone
};

/// Both at once, as measured.
struct MeasuredPair {
  Resident a, b;
  double share_a, share_b;  ///< relative to the speed alone; above zero
};

/// The middle of a family's batches, from which slopes are counted, and their range. Slopes end at
/// the ends of the range.
struct FamilyBatches {
  double mean_log2 = 0;
  double from = 1, to = 1;
};

struct PairTerm {
  std::string name;       ///< "LM with ResNet-50"; `*` is any family
  double value;           ///< factor of its coefficient
  double held;            ///< strength of the regularization to 0, in rows of an error of 10 %
  bool of_job, of_other;  ///< whose family it is about; neither: all pairs
};

class PairLaw {
 public:
  /// Time slicing alone without pairs. Terms are regularized towards those of `from` if it
  /// is given, more strongly for its families: the law of other jobs on this GPU.
  explicit PairLaw(std::span<const MeasuredPair> pairs = {},
                   std::shared_ptr<const PairLaw> from = nullptr);
  /// The law as it was fitted earlier.
  PairLaw(std::map<std::string, FamilyBatches> families, std::map<std::string, double> coefficients,
          double residual)
      : families_(std::move(families)),
        coefficients_(std::move(coefficients)),
        residual_(residual) {}

  /// The share of its speed that `job` keeps with `other`; at most 1. Families without a pair do
  /// not use terms of other families.
  double share(const Resident& job, const Resident& other) const;

  /// Whether pairs with jobs of this family were measured.
  bool knows(const std::string& family) const {
    return families_.contains(family) || (from_ && from_->knows(family));
  }
  const std::map<std::string, FamilyBatches>& families() const { return families_; }
  const std::map<std::string, double>& coefficients() const { return coefficients_; }
  double residual() const { return residual_; }  ///< mean |error| on the pairs given

 private:
  double before(const Resident& job, const Resident& other) const;

  std::shared_ptr<const PairLaw> from_ = {};
  std::map<std::string, FamilyBatches> families_;
  std::map<std::string, double> coefficients_;
  double residual_ = 0;
};

std::map<std::string, FamilyBatches> families_of(std::span<const MeasuredPair> pairs);
std::vector<PairTerm> pair_terms(const std::map<std::string, FamilyBatches>& families,
                                 const Resident& job, const Resident& other);

double time_slice_share(const Resident& job, const Resident& other);

}  // namespace rehearse::sharing
