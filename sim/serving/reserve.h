// Blocks that an admission leaves free for what the admitted requests will still take: a share of these,
// which rises to what the requests had generated when one was preempted, and falls with each decode step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/serving/rules.h"

namespace rehearse::serving {

class Reserve {
 public:
  explicit Reserve(const Rules& rules)
      : kept_(rules.reserve > 0),
        least_(rules.least_reserve),
        decay_(rules.reserve_decay),
        raised_(rules.reserve) {}

  /// A request was admitted, or blocks were promised to it: it holds so many at its end.
  void admit(std::int64_t at_end) { at_ends_ += at_end; }
  void remove(std::int64_t at_end) { at_ends_ -= at_end; }

  bool kept() const { return kept_; }
  /// Whether so many free blocks are enough if the admitted requests hold `held` now. REQUIRES: kept().
  bool allows(std::int64_t free, std::int64_t held) const {
    return static_cast<double>(free) >= share() * static_cast<double>(at_ends_ - held);
  }
  /// A request was preempted when those that ran had generated so many tokens of their whole outputs.
  void preempt(std::int64_t generated, std::int64_t outputs) {
    if (!kept_) return;
    raised_ = std::min(1.0, static_cast<double>(generated) / static_cast<double>(outputs));
    decodes_since_ = 0;
  }
  void decode(std::int64_t steps) { decodes_since_ += steps; }
  /// Whether the next decode step lowers the share.
  bool falls() const { return kept_ && share() > least_; }

 private:
  double share() const {
    return std::max(least_, raised_ - decay_ * static_cast<double>(decodes_since_));
  }

  bool kept_;
  double least_, decay_;
  double raised_;                   ///< the share at the last preemption
  std::int64_t decodes_since_ = 0;  ///< decode steps since then
  std::int64_t at_ends_ = 0;        ///< blocks that the admitted requests hold at their ends
};

}  // namespace rehearse::serving
