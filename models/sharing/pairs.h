// Two jobs on one GPU, without partitions: what each keeps of its speed.
//
// The share of a job beside another is
//
//   turns · q / (q + q') · exp(family pair + slopes · log2 of both batches
//                              + sensitivity of the job + pressure of the other),   q = step^0.15
//
// The first part is time slicing: turns of the GPU go round, longer steps win, and shares sum to
// 1.05, as K80 has it (22 batches of 7 jobs; sums 0.94 to 1.23). It is all there is where no pair
// was measured on a GPU. The second is what measured pairs of that GPU say: kernels that leave room
// for each other, or fight for memory, host or cache. Its terms are held to 0 (ridge), so that few
// pairs move few of them; the sum of absolute errors is made least.
//
// Validity: training jobs of one GPU each, on the GPU type that the pairs are of. Errors of pairs
// left out: `rehearse validate pairs`. Pairs that space-share (V100) can sum to 0.5 or 1.9, and
// nothing about the jobs alone says which: measure some.
#pragma once

#include <map>
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

class PairLaw {
 public:
  /// Of time slicing alone where no pair is given.
  explicit PairLaw(std::span<const MeasuredPair> pairs = {});

  /// What `job` keeps of its speed beside `other`; 1 at most. Of families that no pair has, what is
  /// known of the others does not speak.
  double share(const Resident& job, const Resident& other) const;

  std::size_t coefficients() const { return coefficients_.size(); }
  double residual() const { return residual_; }  ///< mean |error| on the pairs given

 private:
  using Terms = std::vector<std::pair<std::string, double>>;  // name and value of each
  Terms terms_of(const Resident& job, const Resident& other) const;

  std::map<std::string, double> mean_batch_;  // log2, by family
  std::map<std::string, double> coefficients_;
  double residual_ = 0;
};

/// What time slicing gives `job` beside `other`.
double time_slice_share(const Resident& job, const Resident& other);

}  // namespace rehearse::sharing
