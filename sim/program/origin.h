// Origin: the purpose of a program's op, and the source of its duration. It is set when the op is
// created, so that explaining a run needs no second pricing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/ids.h"

namespace rehearse::program {

/// The purpose of a part of a path. Documents name them by kPartKindNames.
enum class PartKind : std::uint8_t {
  kCompute,
  kRecompute,  ///< of earlier forward work
  kOptimizer,
  kCommunication,  ///< also where a rank computes at the same time: the path waits for it
  kMemory,         ///< copies
  kBubble,         ///< other ranks compute, and the rank on which the path ends is idle
  kInput,
  kLaunch,           ///< the device waits for launches
  kHost,             ///< the host works, and the device waits
  kSynchronization,  ///< returns of calls that waited, hand-offs between threads
  kProfiler,
  kIdle,  ///< time that no op accounts for
};
inline constexpr std::array<std::string_view, 12> kPartKindNames = {
    "compute", "recompute", "optimizer", "communication",   "memory",   "bubble",
    "input",   "launch",    "host",      "synchronization", "profiler", "idle"};
constexpr std::string_view to_string(PartKind kind) {
  return kPartKindNames[static_cast<std::size_t>(kind)];
}

/// The 90 % interval of a time, as factors of it.
struct Interval {
  double low = 1, high = 1;

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// A share of an op's time: "matrix products" of "up, forward".
struct Share {
  PartKind kind = PartKind::kIdle;
  NameId part;                            ///< for people: "matrix products"
  std::optional<NameId> what = {};        ///< "up"; absent: the name of the op
  std::optional<NameId> detail = {};      ///< "forward"
  double weight = 1;                      ///< "up"; absent: the name of the op
  std::optional<Interval> interval = {};  ///< absent: that of the run for such parts
  Provenance provenance = Provenance::kExtrapolated;
};

/// Not empty; the weights have a sum above zero.
using Origin = std::vector<Share>;

/// The origin of an op that a recording made: the part of the recording that it represents.
struct Recorded {
  enum class Kind : std::uint8_t {
    kHost,         ///< a thread at work: row is the innermost host op, if any was open
    kCall,         ///< the cost of a call itself that may wait: row is the call
    kReturn,       ///< the return of such a call
    kUnexplained,  ///< the wait of such a call for something that the recording does not show
    kLaunch,       ///< from a launching call to the stream: row is the device op
    kDevice,       ///< a device op, or a part of one
    kHandOff,      ///< between threads
    kWake,         ///< from the end of device work to the return of the call: row is the call
    kInitial,      ///< state before the recording began
    kResidual,     ///< unexplained delay before a device op
    kAdded,        ///< communication that an edit added
    kFeed,         ///< the rank requests and waits for its batches, because of an edit
  };
  Kind kind;
  std::optional<std::uint32_t> row = {};  ///< of the host ops or device ops, as the kind says

  friend bool operator==(const Recorded&, const Recorded&) = default;
};

}  // namespace rehearse::program
