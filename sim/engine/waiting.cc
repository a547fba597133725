#include "sim/engine/waiting.h"

namespace rehearse::engine {

using graph::Policy;

void Waiting::announce(const graph::Demand& demand) {
  if (policy_ == Policy::kLease && demand.lease) ++leases_[*demand.lease].to_end;
}

void Waiting::push(OpId op, const graph::Demand& demand) {
  ++size_;
  switch (policy_) {
    case Policy::kFifo:
      fifo_.push_back(op);
      return;
    case Policy::kPriority:
      ranked_[demand.priority].push_back(op);
      return;
    case Policy::kLease:
      asked_.emplace_back(demand.lease, op);
      if (demand.lease) leases_[*demand.lease].waiting.push_back(op);
      return;
  }
}

std::optional<OpId> Waiting::pop() {
  if (size_ == 0) return std::nullopt;
  if (policy_ == Policy::kFifo) {
    const OpId op = fifo_.front();
    fifo_.pop_front();
    --size_;
    return op;
  }
  if (policy_ == Policy::kPriority) {
    const auto highest = ranked_.begin();
    const OpId op = highest->second.front();
    highest->second.pop_front();
    if (highest->second.empty()) ranked_.erase(highest);
    --size_;
    return op;
  }
  if (single_running_) return std::nullopt;
  if (!holder_) {
    // Entries of ops that were served under their lease are skipped: their lease has ended.
    while (!asked_.empty() && asked_.front().first && !leases_.contains(*asked_.front().first))
      asked_.pop_front();
    const auto [lease, op] = asked_.front();
    if (!lease) {
      asked_.pop_front();
      single_running_ = true;
      --size_;
      return op;
    }
    holder_ = lease;
  }
  Lease& lease = leases_[*holder_];
  if (lease.waiting.empty()) return std::nullopt;
  const OpId op = lease.waiting.front();
  lease.waiting.pop_front();
  --size_;
  return op;
}

void Waiting::ended(const graph::Demand& demand) {
  if (policy_ != Policy::kLease) return;
  if (!demand.lease) {
    single_running_ = false;
    return;
  }
  Lease& lease = leases_[*demand.lease];
  if (--lease.to_end > 0) return;
  leases_.erase(*demand.lease);
  holder_.reset();
}

}  // namespace rehearse::engine
