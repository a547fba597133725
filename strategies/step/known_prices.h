// KnownPrices: caches the prices of ops, so that each is computed once.
#pragma once

#include <unordered_map>

#include "models/workload/op.h"
#include "sim/base/names.h"
#include "strategies/prices.h"

namespace rehearse::step {

class KnownPrices {
 public:
  explicit KnownPrices(strategies::Price price) : price_(std::move(price)) {}

  const strategies::OpTime& operator()(const workload::Op& op) {
    if (const auto known = known_.find(op); known != known_.end()) return known->second;
    workload::Op own = op;  // the layout that owns its name may be destroyed before the price
    own.name = names_[names_.intern(op.name)];
    return known_.emplace(own, price_.timed(op)).first->second;
  }

 private:
  strategies::Price price_;
  NamePool names_;
  std::unordered_map<workload::Op, strategies::OpTime, workload::OpHash> known_;
};

}  // namespace rehearse::step
