#include "sim/engine/event_queue.h"

#include <bit>

namespace rehearse::engine {

/// Makes the next events, one bucket of this year or the next, the run. REQUIRES: the heap is empty
/// and the run is used up.
void EventQueue::take_bucket() {
  run_.clear();
  taken_ = 0;
  if (in_buckets_ == 0) begin_year();
  if (in_buckets_ == 0) return;
  while (buckets_[next_bucket_].empty()) ++next_bucket_;
  std::swap(run_, buckets_[next_bucket_++]);
  in_buckets_ -= run_.size();
  horizon_ = year_ + (static_cast<std::uint64_t>(next_bucket_) << span_);
  if (!std::ranges::is_sorted(run_, before)) std::ranges::sort(run_, before);
}

/// Distributes the later events over buckets. REQUIRES: nothing is in the heap, the run or a
/// bucket.
void EventQueue::begin_year() {
  spread_at_ = sequence_;
  next_bucket_ = 0;
  const auto earlier = [](const Entry& a, const Entry& b) { return a.time < b.time; };
  const auto [first, last] = std::ranges::minmax_element(beyond_, earlier);
  year_ = first->time;
  // Few events need no buckets, and ranks in step have all their events at one instant.
  if (beyond_.size() <= kMany || last->time == year_) {
    horizon_ = beyond_.size() <= kMany ? UINT64_MAX : year_ + 1;
    span_ = 0;
    buckets_.clear();
    std::swap(run_, beyond_);
    if (!std::ranges::is_sorted(run_, before)) std::ranges::sort(run_, before);
    return;
  }
  horizon_ = year_;
  std::swap(dealt_, beyond_);
  const auto middle = dealt_.begin() + static_cast<std::ptrdiff_t>(dealt_.size() / 2);
  std::nth_element(dealt_.begin(), middle, dealt_.end(), earlier);
  span_ = static_cast<std::uint32_t>(
      std::bit_width((middle->time - year_) / (dealt_.size() / 2 / kPerBucket)));
  const std::size_t count = std::bit_ceil(dealt_.size()) / 4;
  if (buckets_.size() < count) buckets_.resize(count);
  for (const Entry& entry : dealt_) put_far(entry);
  dealt_.clear();
}

/// Puts all events into buckets.
void EventQueue::spread() {
  beyond_.insert(beyond_.end(), heap_.begin(), heap_.end());
  beyond_.insert(beyond_.end(), run_.begin() + static_cast<std::ptrdiff_t>(taken_), run_.end());
  for (std::vector<Entry>& bucket : buckets_) {
    beyond_.insert(beyond_.end(), bucket.begin(), bucket.end());
    bucket.clear();
  }
  heap_.clear();
  run_.clear();
  taken_ = 0;
  in_buckets_ = 0;
  begin_year();
}

}  // namespace rehearse::engine
