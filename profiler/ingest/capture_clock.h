// The clock of the rows of a capture: CLOCK_REALTIME without the jumps that setting it causes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/capture/blocks.h"
#include "sim/base/time.h"

namespace rehearse::ingest {

/// The wall clock of one machine, from pairs with a monotonic clock.
///
/// Between two pairs it may run at its usual rate, within a little noise; run faster or slower for
/// a while (slewed); or be set (stepped). Its gain or loss beyond the usual rate is subtracted, so
/// that distances are correct across such changes and all processes of the machine have one clock.
/// If it is set between two pairs, the exact time of that is unknown.
class MachineClock {
 public:
  MachineClock() = default;  ///< a clock that was never set
  explicit MachineClock(std::vector<capture::ClockPair> pairs);

  bool was_set() const { return !pieces_.empty(); }

  /// `realtime` as it would have read if the clock had never been set. A time that occurred twice,
  /// because the clock was set back, means the latest of the moments before `written_by`
  /// (monotonic).
  std::uint64_t steady(std::uint64_t realtime, std::uint64_t written_by) const;

 private:
  /// A stretch of monotonic time over which the wall clock ran at one rate.
  struct Piece {
    double begin, end;
    double from, ahead, slope;  // realtime - monotonic: `ahead` at `from`
    double gained, gain_slope;  // gain beyond its usual rate: `gained` at `from`
  };
  std::vector<Piece> pieces_;
  std::uint64_t realtime_ = 0;  // of the first pair: doubles are relative to it
  std::uint64_t monotonic_ = 0;
};

/// The times of the rows of one file.
class CaptureClock {
 public:
  /// `own` are the pairs of the file in order; the first is from its first block.
  CaptureClock(const MachineClock* machine, std::vector<capture::ClockPair> own)
      : machine_(machine), own_(std::move(own)) {}
  CaptureClock() = default;

  /// Sets time zero of the rows, as realtime.
  void set_base(std::uint64_t realtime);
  Nanoseconds base() const { return Nanoseconds(base_); }
  /// Tells it that the reader has passed a clock pair of the file.
  void pass() { ++passed_; }

  /// The time from the base; nothing if the time is damaged.
  std::optional<Nanoseconds> at(std::uint64_t realtime) const;

 private:
  std::uint64_t steady(std::uint64_t realtime) const;

  const MachineClock* machine_ = nullptr;
  std::vector<capture::ClockPair> own_;
  std::size_t passed_ = 0;
  std::int64_t base_ = 0;
};

}  // namespace rehearse::ingest
