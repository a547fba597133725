// Ends: for concurrent activities (takes of a stage, threads of a worker, places of a
// queue), waits for any given number of them to have ended.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/rank_builder.h"

namespace rehearse::input {

/// The number of rounds of all activities in progress that one of them may outlast. With
/// exponential times, one activity in four hundred lasts longer.
constexpr std::uint32_t kReach = 6;

using program::OpIndex;
using program::RankBuilder;

/// An op that takes no time.
program::ProgramOp instant(NameId name);

class Ends {
 public:
  /// In the order in which they begin.
  void add(OpIndex end) { ends_.push_back(end); }
  std::size_t size() const { return ends_.size(); }
  OpIndex last() const { return ends_.back(); }

  /// The range of the ends that may be among the first: those before `from` certainly are, those
  /// from `to` on certainly are not.
  struct Reach {
    std::size_t from, to;
  };
  /// Appends to `after` the ops that have ended when `count` have.
  /// REQUIRES: from < count <= to <= size().
  void wait_for(std::size_t count, Reach reach, RankBuilder& builder, NameId name,
                std::vector<OpIndex>& after);

 private:
  /// Ensures that all ends before `from` have ended.
  void cover(std::size_t from, RankBuilder& builder, NameId name);

  auto at(std::size_t number) const { return ends_.begin() + static_cast<std::ptrdiff_t>(number); }

  std::vector<OpIndex> ends_;
  std::size_t covered_ = 0;  // number of ends that `older_` covers
  std::optional<OpIndex> older_;
};

/// Activities with a limited number in progress.
class InHand {
 public:
  explicit InHand(std::uint32_t most) : most_(most) {}

  void ended(OpIndex op) { ends_.add(op); }
  /// Makes the next one wait until all but `most - 1` of the earlier ones have ended.
  void before_next(RankBuilder& builder, NameId name, std::vector<OpIndex>& after);

 private:
  std::uint32_t most_;
  Ends ends_;
};

}  // namespace rehearse::input
