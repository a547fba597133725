// StepClock: the device of a stage, its communication streams and its host, as they process the
// priced pieces of layers. The laws of overlap are those of closed_step.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.h"
#include "strategies/layer_run.h"
#include "strategies/stage_groups.h"
#include "strategies/step/closed_step.h"

namespace rehearse::step {

inline constexpr std::size_t kStreams = strategies::kGroupKinds + 1;  // one more for copies

/// A piece whose communication has its price.
struct Priced {
  Picoseconds time;
  std::optional<workload::Issue> issue;  ///< of a communication
  std::uint8_t stream = 0;
};
using PricedRun = std::vector<Priced>;

/// A layer of a chunk: the runs of its passes, and its work in the optimizer step.
struct PricedLayer {
  std::uint32_t count;
  std::array<PricedRun, strategies::kPasses> passes = {};
  std::array<Picoseconds, strategies::kPasses> host = {Picoseconds(0), Picoseconds(0),
                                                       Picoseconds(0), Picoseconds(0)};
  std::array<double, strategies::kPasses> launches = {};
  PricedRun deferred = {}, rest = {};
};

/// The device, its streams and its host, as they process pieces.
class StepClock {
 public:
  /// The host may begin before or after the device.
  StepClock(Picoseconds begin, Picoseconds host, double overlap_loss, Background background)
      : ready_(begin), host_(host), loss_(overlap_loss), background_(background) {
    free_.fill(begin);
  }

  /// Runs the pieces of a layer's pass, which begins when the host has launched those before.
  /// Background communication counts when the layer ends. If it is inline, launches do not hide it
  /// either: its stream may run it during an earlier pass, whose communication waits for it.
  void layer(const PricedRun& run, Picoseconds host) {
    const Picoseconds begin = ready_ = reached();
    host_ += host;
    if (background_ == Background::kInline)
      for (const Priced& piece : run)
        if (is_background(piece)) host_ += piece.time;
    background_times_.fill(Picoseconds(0));
    for (const Priced& piece : run) pass_piece(piece);
    const Picoseconds foreground = ready_ - begin,
                      background =
                          *std::max_element(background_times_.begin(), background_times_.end());
    if (background > Picoseconds(0))
      ready_ = begin + std::max(foreground, background) + std::min(foreground, background) * loss_;
  }
  /// Runs the pieces of the optimizer step, or sums alongside the last backward. Deferred pieces
  /// stay on their stream until they end.
  void step(const PricedRun& run) {
    for (const Priced& piece : run) {
      if (piece.issue == workload::Issue::kDeferred) {
        Picoseconds& free = free_[piece.stream];
        after_ = std::max({ready_, free, after_}) + piece.time;
        free = after_;
      } else {
        in_front(piece);
      }
    }
  }
  void sums(const PricedRun& run, Picoseconds from) {
    after_ = from;
    for (const Priced& piece : run) {
      Picoseconds& free = free_[piece.stream];
      after_ = std::max(after_, free) + piece.time;
      free = after_;
    }
    after_ = Picoseconds(0);
  }

  /// The end of everything that the pass waits for.
  Picoseconds end() {
    ready_ = std::max(reached(), late_);
    late_ = Picoseconds(0);
    return ready_;
  }
  Picoseconds reached() const { return std::max(ready_, host_); }
  Picoseconds host() const { return host_; }
  /// The end of everything that runs.
  Picoseconds all() { return std::max(end(), *std::max_element(free_.begin(), free_.end())); }
  void wait_until(Picoseconds when) { ready_ = std::max(ready_, when); }

 private:
  static bool is_background(const Priced& piece) {
    return piece.issue == workload::Issue::kPrefetched || piece.issue == workload::Issue::kDeferred;
  }
  void pass_piece(const Priced& piece) {
    const bool background = is_background(piece);
    if (background && background_ == Background::kFree) return;
    if (background && background_ == Background::kOverlapped)
      background_times_[piece.stream] += piece.time;
    else
      in_front(piece);
  }

  void in_front(const Priced& piece) {
    after_ = Picoseconds(0);
    Picoseconds begin = ready_;
    if (piece.issue) begin = std::max(begin, free_[piece.stream]);
    const Picoseconds end = begin + piece.time;
    if (piece.issue) free_[piece.stream] = end;
    if (piece.issue == workload::Issue::kOverlapNext) {
      late_ = std::max(late_, end);
    } else {
      ready_ = std::max(end, late_);
      late_ = Picoseconds(0);
    }
  }

  Picoseconds ready_, host_, late_{0}, after_{0};
  std::array<Picoseconds, kStreams> free_ = make(), background_times_ = make();
  double loss_;
  Background background_;

  static constexpr std::array<Picoseconds, kStreams> make() {
    return {Picoseconds(0), Picoseconds(0), Picoseconds(0),
            Picoseconds(0), Picoseconds(0), Picoseconds(0)};
  }
};

}  // namespace rehearse::step
