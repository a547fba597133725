// PositionSet: a set of numbers below a bound, with its least and its greatest. It has a bit for
// each number, and above every 64 bits one bit that says whether any of them is set, up to one
// word. Every operation takes as many steps as there are levels: four for 16 million positions.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace rehearse::store {

class PositionSet {
 public:
  explicit PositionSet(std::size_t bound) {
    do {
      bound = bound / 64 + 1;
      levels_.emplace_back(bound, 0);
    } while (bound > 1);
  }

  std::size_t size() const { return size_; }

  /// REQUIRES: not in the set.
  void insert(std::uint32_t position) {
    ++size_;
    for (std::vector<std::uint64_t>& level : levels_) {
      std::uint64_t& word = level[position / 64];
      const bool had_any = word != 0;
      word |= std::uint64_t{1} << position % 64;
      if (had_any) return;
      position /= 64;
    }
  }
  /// Whether it was in the set.
  bool erase(std::uint32_t position) {
    if ((levels_[0][position / 64] >> position % 64 & 1) == 0) return false;
    --size_;
    for (std::vector<std::uint64_t>& level : levels_) {
      std::uint64_t& word = level[position / 64];
      word &= ~(std::uint64_t{1} << position % 64);
      if (word != 0) return true;
      position /= 64;
    }
    return true;
  }
  /// REQUIRES of both: not empty.
  std::uint32_t greatest() const {
    return descend([](std::uint64_t word) { return 63 - std::countl_zero(word); });
  }
  std::uint32_t least() const {
    return descend([](std::uint64_t word) { return std::countr_zero(word); });
  }

 private:
  template <class Choose>
  std::uint32_t descend(Choose choose) const {
    std::uint32_t position = 0;
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
      position = position * 64 + static_cast<std::uint32_t>(choose((*level)[position]));
    return position;
  }

  std::vector<std::vector<std::uint64_t>> levels_;  // the lowest first
  std::size_t size_ = 0;
};

}  // namespace rehearse::store
