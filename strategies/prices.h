// Prices: the time of ops on the devices of the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/workload/layout.h"
#include "sim/base/estimate.h"
#include "sim/base/units.h"

namespace rehearse::strategies {

/// The price of an op that does not communicate.
struct OpTime {
  Estimate<Seconds> busy;
  Seconds idle = Seconds::s(0);  ///< idle time of the device around the op

  Seconds total() const { return busy.value + idle; }
};

class Price {
 public:
  /// From a function that returns an OpTime, or Seconds if the interval is unknown.
  template <class Function>
  requires(!std::is_same_v<Function, Price> &&
           std::is_invocable_v<const Function&, const workload::Op&>)
      Price(Function of)  // NOLINT: a function is a price
      : of_([of = std::move(of)](const workload::Op& op) { return op_time(of(op)); }) {}

  Seconds operator()(const workload::Op& op) const { return of_(op).total(); }
  OpTime timed(const workload::Op& op) const { return of_(op); }

 private:
  static OpTime op_time(const OpTime& time) { return time; }
  static OpTime op_time(Seconds time) { return {{time, time, time, Provenance::kRecorded}}; }

  std::function<OpTime(const workload::Op&)> of_;
};

struct KindPrice {
  Price op;
  /// The rate between device and host, for copies. Required if the layout has copies.
  std::optional<ByteRate> host_rate = {};
  /// The share of a rank in the rate of its node's NVMe drives. Absent: they take no time.
  std::optional<ByteRate> nvme_rate = {};
  /// The provenance of launch times and of the fixed time per step.
  Provenance conditions = Provenance::kExtrapolated;
};

/// Fails without the rate of the link. REQUIRES: a copy between device and host.
Result<Seconds> copy_time(const workload::Op& copy, const KindPrice& price);

class Prices {
 public:
  /// For ranks that are all on one kind of device.
  template <class Function>
  requires std::is_invocable_r_v<Seconds, const Function&, const workload::Op&> Prices(
      Function op, std::optional<ByteRate> host_rate = {})  // NOLINT: a price is one for all
      : kinds_{{Price(std::move(op)), host_rate}} {}
  /// `kind_of` by rank, an index of `kinds`.
  Prices(std::vector<KindPrice> kinds, std::vector<std::uint32_t> kind_of)
      : kinds_(std::move(kinds)), kind_of_(std::move(kind_of)) {}

  std::uint32_t kind_of(std::uint32_t rank) const { return kind_of_.empty() ? 0 : kind_of_[rank]; }
  const KindPrice& of_kind(std::uint32_t kind) const { return kinds_[kind]; }

 private:
  std::vector<KindPrice> kinds_;
  std::vector<std::uint32_t> kind_of_;
};

/// The ranks of a stage by their number in it, and the ranks of the servers.
std::vector<std::uint32_t> ranks_of(const workload::Stage& stage);
std::vector<std::uint32_t> ranks_of(const workload::Servers& servers);

/// The kinds of devices of these ranks, in the order of their first rank.
std::vector<std::uint32_t> kinds_of(const Prices& prices, std::span<const std::uint32_t> ranks);

}  // namespace rehearse::strategies
