// OpPrice: the time of ops on a device under conditions. Jobs are priced with it.
#pragma once

#include <optional>

#include "models/compute/op_cost.h"
#include "strategies/prices.h"
#include "strategies/step/conditions.h"

namespace rehearse::step {

/// From the measured device to another, without `sustained`: the
/// ratio of the laws' times on both.
struct CarriedOver {
  compute::OpCost from, to;
};

class OpPrice {
 public:
  /// Without `cost`, every op runs on the processor of a host.
  /// `nvme_rate`: the share of a rank in that of its node's drives.
  OpPrice(std::optional<compute::OpCost> cost, const Conditions& conditions,
          std::optional<CarriedOver> measured = {}, std::optional<ByteRate> nvme_rate = {})
      : cost_(std::move(cost)),
        conditions_(conditions),
        measured_(std::move(measured)),
        nvme_rate_(nvme_rate) {}

  strategies::OpTime timed(const workload::Op& op) const { return {estimate(op), idle(op)}; }
  Seconds operator()(const workload::Op& op) const { return timed(op).total(); }
  /// Busy time. Measured times have their own interval, others that of the conditions; for
  /// convolutions it is not narrower than that of the laws.
  Estimate<Seconds> estimate(const workload::Op& op) const;
  Seconds idle(const workload::Op& op) const;

 private:
  std::optional<compute::OpCost> cost_;
  Conditions conditions_;
  std::optional<CarriedOver> measured_;
  std::optional<ByteRate> nvme_rate_;
};

}  // namespace rehearse::step
