// Waiting: the ops that wait for a server, in the order that its policy serves them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/graph/graph.h"

namespace rehearse::engine {

class Waiting {
 public:
  explicit Waiting(graph::Policy policy) : policy_(policy) {}

  /// Announces that an op with this lease will come (kLease only), before or during the run.
  void announce(const graph::Demand& demand);
  void push(OpId op, const graph::Demand& demand);
  /// Removes and returns the op to serve now; nothing if none waits or none may start before the
  /// lease ends.
  std::optional<OpId> pop();
  /// An op that was served has ended.
  void ended(const graph::Demand& demand);

  bool empty() const { return size_ == 0; }
  /// The op that pop() would return now, if it is known without a search.
  std::optional<OpId> first() const {
    if (policy_ == graph::Policy::kFifo && !fifo_.empty()) return fifo_.front();
    if (policy_ == graph::Policy::kPriority && !ranked_.empty())
      return ranked_.begin()->second.front();
    return std::nullopt;
  }
  /// The lease that is being served.
  std::optional<LeaseId> holder() const { return holder_; }

 private:
  graph::Policy policy_;
  std::size_t size_ = 0;
  std::deque<OpId> fifo_;  // kFifo
  /// kPriority: in order of request, the highest priority first. There are few priorities with many
  /// ops.
  std::map<std::int32_t, std::deque<OpId>, std::greater<>> ranked_;

  // kLease. An op without a lease is a lease of its own, kept under no id.
  struct Lease {
    std::size_t to_end = 0;  // announced ops that have not ended
    std::deque<OpId> waiting;
  };
  std::map<LeaseId, Lease> leases_;
  std::deque<std::pair<std::optional<LeaseId>, OpId>> asked_;  // in order of asking
  std::optional<LeaseId> holder_;
  bool single_running_ = false;  // an op without a lease holds the server
};

}  // namespace rehearse::engine
