// MeasuredOps: what operations take on one device, as somebody measured them one by one. Where an
// op has exactly such extents, its time comes from here and not from the laws.
//
// A benchmark runs cool and alone; a recorded step does not. Where both know the same operation,
// the median of their ratio, by kind, carries the others over (learn).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/op.h"
#include "models/workload/workload.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::compute {

/// One measurement: median, with what 10 and 90 % of the samples stayed below.
struct OpSample {
  Seconds median, p10, p90;
  bool cold;  ///< with operands that were not in the cache
};

class MeasuredOps {
 public:
  /// `l2`: of the device; absent: operands are taken to be out of it.
  explicit MeasuredOps(std::optional<Bytes> l2) : l2_(l2) {}

  /// REQUIRES: the op does not communicate.
  void add(const workload::Op& op, const OpSample& sample);
  std::size_t size() const { return count_; }

  /// For the extents that the op has now, whatever it carries as recorded. Of several measurements
  /// (layouts, library versions) the median; the interval spans them. Matrix operations take cold
  /// ones, as weights were last touched a step ago; the rest hot ones where their operands fit in
  /// the cache. Nothing where no measurement is of these extents.
  std::optional<Estimate<Seconds>> find(const workload::Op& op) const;

  struct Learnt {
    std::size_t both = 0;                       ///< operations that both know
    std::vector<workload::OpKind> unlike = {};  ///< kinds that were given up
  };
  /// Takes, for each kind of operation that both know, the median ratio of the recorded to the
  /// measured time for what a job makes of a benchmark. A kind in which that is beyond 3, or below
  /// 1/3, was not the same operation: all of it is forgotten.
  Learnt learn(const workload::Workload& recorded);
  /// Job ÷ benchmark, where `learn` found it.
  std::optional<double> in_job(workload::OpKind kind) const {
    return in_job_[static_cast<std::size_t>(kind)];
  }

 private:
  struct Entry {
    workload::Op op;
    OpSample sample;
  };
  std::optional<Bytes> l2_;
  std::map<std::string, std::vector<Entry>, std::less<>> by_key_;
  std::size_t count_ = 0;
  std::array<std::optional<double>, std::size(workload::kOpKindNames)> in_job_ = {};
};

}  // namespace rehearse::compute
