// Two jobs on one GPU, without partitions: what each keeps of its speed.
//
// The share of a job beside another is
//
//   turns · q / (q + q') · exp(pair of families + both alike + slopes · log2 of both batches
//                              + sensitivity of the job + pressure of the other),   q = step^0.15
//
// The first part is time slicing: turns of the GPU go round, longer steps win, and shares sum to
// 1.05, as K80 has it (22 batches of 7 jobs; sums 0.94 to 1.23). It is all there is where no pair
// was measured on a GPU. The second is what measured pairs of that GPU say: kernels that leave room
// for each other, or fight for memory, host or cache; what two families fight for costs both of
// them, which is the term that both have alike. Terms are held to 0 (ridge), so that few pairs move
// few of them; the sum of absolute errors is made least.
//
// Validity: training jobs of one GPU each, on the GPU type that the pairs are of. Errors of pairs
// left out: docs/accuracy.md. Pairs that space-share (V100) can sum to 0.5 or 1.9, and
// nothing about the jobs alone says which: measure some (pair_choice.h says which), or take what
// was measured of the GPU (shipped_pairs.h).
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
  double share_a, share_b;  ///< of the speed alone; above zero
};

/// The middle of a family's batches, from which slopes count, and their range, beyond which they go
/// no further.
struct FamilyBatches {
  double mean_log2 = 0;
  double from = 1, to = 1;
};

struct PairTerm {
  std::string name;       ///< "LM beside ResNet-50"; `*` is any family
  double value;           ///< what its coefficient is multiplied by
  double held;            ///< how hard it is held to 0, in rows of an error of 10 %
  bool of_job, of_other;  ///< whose family it is about; of neither: of all pairs
};

class PairLaw {
 public:
  /// Of time slicing alone where no pair is given. Terms are held to what `from` says where it is
  /// given, harder where it knows the families: the law of other jobs on this GPU.
  explicit PairLaw(std::span<const MeasuredPair> pairs = {},
                   std::shared_ptr<const PairLaw> from = nullptr);
  /// As it was fitted.
  PairLaw(std::map<std::string, FamilyBatches> families, std::map<std::string, double> coefficients,
          double residual)
      : families_(std::move(families)),
        coefficients_(std::move(coefficients)),
        residual_(residual) {}

  /// What `job` keeps of its speed beside `other`; 1 at most. Of families that no pair has, what is
  /// known of the others does not speak.
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

/// Families of the jobs and their batches.
std::map<std::string, FamilyBatches> families_of(std::span<const MeasuredPair> pairs);
/// What the law adds up for `job` beside `other`.
std::vector<PairTerm> pair_terms(const std::map<std::string, FamilyBatches>& families,
                                 const Resident& job, const Resident& other);

/// What time slicing gives `job` beside `other`.
double time_slice_share(const Resident& job, const Resident& other);

}  // namespace rehearse::sharing
