// MeasuredOps: measured times of single operations on one device. An op with exactly the same
// extents takes its time from here instead of the laws.
//
// A benchmark runs cool and alone; a recorded step does not. If both have the same operation,
// the median of their ratio, by kind, is applied to the others (learn).
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

/// One measurement: median, 10 % and 90 % quantiles.
struct OpSample {
  Seconds median, p10, p90;
  bool cold;  ///< with operands that were not in the cache
};

class MeasuredOps {
 public:
  /// `l2` is the cache of the device; absent: operands count as being outside it.
  explicit MeasuredOps(std::optional<Bytes> l2) : l2_(l2) {}

  /// REQUIRES: the op does not communicate.
  void add(const workload::Op& op, const OpSample& sample);
  std::size_t size() const { return count_; }

  /// For the op's current extents, regardless of its recorded time. Of several measurements
  /// (layouts, library versions) the median; the interval spans them. Matrix operations use cold
  /// measurements, because weights were last touched a step ago; others use hot ones if their
  /// operands fit in the cache. Nothing without a measurement of these extents.
  std::optional<Estimate<Seconds>> find(const workload::Op& op) const;

  struct Learnt {
    std::size_t both = 0;                       ///< operations that both know
    std::vector<workload::OpKind> unlike = {};  ///< kinds that were given up
  };
  /// For each kind of operation in both, takes the median ratio of the recorded to the
  /// measured time as the efficiency of a job. A kind with a ratio beyond 3, or below
  /// 1/3, was not the same operation: all of it is dropped.
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
