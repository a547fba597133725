// StepKeeper: selects the steps of the ring that are written to the file.
//
// It knows the steps that ended recently, evaluates the trigger for each, marks the step that fired
// and its two neighbours as kept, and returns their blocks: those that the ring still
// has, and those that are yet to come. It has no clock, file or thread; the flusher has all three.
//
// Invariants:
//  1. A block is returned at most once, and blocks in the order in which they came.
//  2. For each step, `added` counts its bytes and `kept` those that were written; the difference
//     was overwritten before the step was selected.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profiler/capture/ring.h"
#include "profiler/capture/steps.h"
#include "profiler/capture/trigger.h"

namespace rehearse::capture {

/// The reason for keeping a step. Numbers as in KeptStepRecord::cause.
enum class KeepCause : std::uint8_t { kNone, kTrigger, kAnnounced, kNeighbor };

struct KnownStep {
  Step step;
  std::uint64_t added;  ///< bytes of blocks
  std::uint64_t kept;
  std::uint64_t limit;  ///< value that the trigger compared with, ns; 0 for none
  std::uint32_t round;  ///< how often the numbering had restarted
  KeepCause cause;
  bool noted;
  bool announced;  ///< by this process
};

class StepKeeper {
 public:
  /// Number of steps whose blocks it can identify; a later announcement of a step by another rank
  /// is ignored.
  static constexpr std::uint32_t kKnown = 16384;

  StepKeeper() = default;
  StepKeeper(const StepKeeper&) = delete;
  StepKeeper& operator=(const StepKeeper&) = delete;

  /// Reserves the memory. False if that fails.
  bool open(const Trigger& trigger, std::uint64_t ring_bytes);
  void close();

  const Trigger& trigger() const { return trigger_; }
  const Ring& ring() const { return ring_; }

  /// The ordinal of the current step, which is the number of those that ended.
  std::uint64_t current() const { return current_; }
  /// The step at a time: the first that ended at it or later. Untimed data (0) belongs to the
  /// current step.
  std::uint64_t step_at(std::uint64_t time) const;

  /// The step that will be forgotten when the next one ends; null if none will be.
  const KnownStep* leaving() const {
    return current_ + 1 >= kKnown ? &known(current_ + 1 - kKnown) : nullptr;
  }
  /// Ends the current step, with this data. Its cause is kTrigger if the trigger fired.
  KnownStep& end(const Step& step);
  /// Another rank keeps this step. True if that was not known yet.
  bool announced(std::uint64_t number, std::uint32_t round);

  /// Adds a block of the step block.step.
  void add(RingBlock block, const void* bytes);

  /// Writes the selected blocks. First calls need(last_text), because the blocks refer to texts
  /// with numbers up to that; then write(block, bytes) for each, which returns whether it was
  /// written.
  template <class Need, class Write>
  void write_kept(Need need, Write write);

  /// Calls note(step) for each step whose data is complete: the next step has ended too, or this is
  /// the `last` call.
  template <class Note>
  void each_note(bool last, Note note);

  const StepCounts& counts() const { return counts_; }

 private:
  KnownStep& known(std::uint64_t ordinal) const { return known_[ordinal % kKnown]; }
  std::uint64_t oldest() const { return current_ < kKnown ? 0 : current_ - kKnown + 1; }
  bool is_kept(std::uint64_t ordinal) const {
    return ordinal >= oldest() && known(ordinal).cause != KeepCause::kNone;
  }
  void keep(std::uint64_t ordinal, KeepCause cause);
  void count(const KnownStep& step);

  Trigger trigger_;
  Ring ring_;
  KnownStep* known_ = nullptr;
  std::uint32_t* histogram_memory_ = nullptr;
  StepHistogram histogram_{nullptr};
  std::uint64_t current_ = 0;
  std::uint64_t to_note_ = 0;  // earlier steps have been noted, as far as they were kept
  bool to_write_ = false;      // the ring may have selected blocks that are not yet written
  StepCounts counts_;
};

template <class Need, class Write>
void StepKeeper::write_kept(Need need, Write write) {
  if (!to_write_) return;
  to_write_ = false;
  std::uint64_t n = 0, last = 0;
  std::uint32_t last_text = 0;
  ring_.each([&](RingBlock& block, const unsigned char*) {
    ++n;
    if (!block.written && is_kept(block.step)) {
      last = n;
      last_text = std::max(last_text, block.last_text);
    }
    return true;
  });
  if (last == 0) return;
  need(last_text);
  n = 0;
  ring_.each([&](RingBlock& block, const unsigned char* bytes) {
    const bool is_due = !block.written && (block.texts || is_kept(block.step));
    if (is_due) {
      block.written = true;
      if (write(block, bytes) && block.step >= oldest()) known(block.step).kept += block.bytes;
    }
    return ++n < last;
  });
}

template <class Note>
void StepKeeper::each_note(bool last, Note note) {
  to_note_ = std::max(to_note_, oldest());
  for (; to_note_ + (last ? 0 : 1) < current_; ++to_note_) {
    KnownStep& step = known(to_note_);
    if (step.cause == KeepCause::kNone || step.noted) continue;
    step.noted = true;
    count(step);
    note(step);
  }
}

}  // namespace rehearse::capture
