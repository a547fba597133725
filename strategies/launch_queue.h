// LaunchQueue: how far a host runs ahead of its device.
//
// The queue of an NVIDIA GPU holds about 1,100 launches: a host was blocked with 1,134 to 1,140
// launches that had not begun, each time that a recording on H100 shows (docs/concepts/host.md). The
// host of a step waits before a pass, not within it, so it is up to one pass further ahead.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace rehearse::strategies {

inline constexpr double kLaunchQueue = 1100;

/// The passes of a rank in their order. `End`: what marks the end of a pass on the device.
template <class End>
class LaunchQueue {
 public:
  void add(double launches, End end) {
    launched_ += launches;
    passes_.push_back({launched_, std::move(end)});
  }
  /// The pass that must have ended before the host goes on; null while the queue has room.
  const End* awaited() {
    while (first_ < passes_.size() && launched_ - passes_[first_].launched >= kLaunchQueue)
      ++first_;
    return first_ > 0 ? &passes_[first_ - 1].end : nullptr;
  }

 private:
  struct Pass {
    double launched;  ///< with it and all before
    End end;
  };
  std::vector<Pass> passes_;
  std::size_t first_ = 0;  ///< the passes before have more than a queue of launches after them
  double launched_ = 0;
};

}  // namespace rehearse::strategies
