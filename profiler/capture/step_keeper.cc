#include "profiler/capture/step_keeper.h"

namespace rehearse::capture {

bool StepKeeper::open(const Trigger& trigger, std::uint64_t ring_bytes) {
  trigger_ = trigger;
  known_ = static_cast<KnownStep*>(reserve_memory(kKnown * sizeof(KnownStep)));
  histogram_memory_ =
      static_cast<std::uint32_t*>(reserve_memory(StepHistogram::kBuckets * sizeof(std::uint32_t)));
  histogram_ = StepHistogram(histogram_memory_);
  if (known_ && histogram_memory_ && ring_.open(ring_bytes)) return true;
  close();
  return false;
}

void StepKeeper::close() {
  ring_.close();
  if (known_) ::munmap(known_, kKnown * sizeof(KnownStep));
  if (histogram_memory_)
    ::munmap(histogram_memory_, StepHistogram::kBuckets * sizeof(std::uint32_t));
  known_ = nullptr;
  histogram_memory_ = nullptr;
}

std::uint64_t StepKeeper::step_at(std::uint64_t time) const {
  if (time == 0 || current_ == 0 || known(current_ - 1).step.end < time) return current_;
  std::uint64_t low = oldest(), high = current_ - 1;  // the first that ends late enough is in here
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (known(middle).step.end < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

KnownStep& StepKeeper::end(const Step& step) {
  KnownStep& ended = known(current_);
  const KnownStep* before = current_ > 0 ? &known(current_ - 1) : nullptr;
  const bool anew = before && step.number <= before->step.number;
  ended.round = before ? before->round + anew : 0;
  ended.step = step;
  ++counts_.seen;
  ++current_;
  known(current_) = {};
  const std::uint64_t ns = step.end > step.begin ? step.end - step.begin : 0;
  if (fires(trigger_, histogram_, step.number, ns, ended.limit))
    keep(current_ - 1, KeepCause::kTrigger);
  histogram_.add(ns);
  return ended;
}

void StepKeeper::keep(std::uint64_t ordinal, KeepCause cause) {
  KnownStep& step = known(ordinal);
  step.cause = cause;
  step.noted = false;
  to_write_ = true;
  const std::uint64_t first = ordinal > oldest() ? ordinal - 1 : ordinal;
  to_note_ = std::min(to_note_, first);
  for (const std::uint64_t neighbour : {first, ordinal + 1})
    if (KnownStep& other = known(neighbour); other.cause == KeepCause::kNone)
      other.cause = KeepCause::kNeighbor;
}

bool StepKeeper::announced(std::uint64_t number, std::uint32_t round) {
  // Round and number grow together with the ordinal.
  const auto comes_before = [&](const KnownStep& step) {
    return step.round != round ? step.round < round : step.step.number < number;
  };
  std::uint64_t low = oldest(), high = current_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (comes_before(known(middle)))
      low = middle + 1;
    else
      high = middle;
  }
  if (low == current_) return false;  // it is yet to come here, or never does
  const KnownStep& found = known(low);
  if (found.round != round || found.step.number != number) return false;
  if (found.cause == KeepCause::kTrigger || found.cause == KeepCause::kAnnounced) return false;
  keep(low, KeepCause::kAnnounced);
  return true;
}

void StepKeeper::add(RingBlock block, const void* bytes) {
  block.step = std::max(block.step, oldest());
  known(block.step).added += block.bytes;
  counts_.rows += block.rows;
  if (ring_.add(block, bytes) && is_kept(block.step)) to_write_ = true;
}

void StepKeeper::count(const KnownStep& step) {
  if (step.cause == KeepCause::kNeighbor) return;
  if (step.kept == 0)
    ++counts_.gone;
  else if (step.kept < step.added)
    ++counts_.in_part;
  else
    ++counts_.kept;
}

}  // namespace rehearse::capture
