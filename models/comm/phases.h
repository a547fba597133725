// Phases: what the messages of a schedule take on devices that were measured.
//
// A calibration says how long a collective takes, how much of that is its launch and how fast its
// bytes move on the wire. So each member launches, then each message of the longest chain waits for
// its start-up time and moves at the measured rate. What is left of the measured time after launch
// and wire (flags, copies, start-ups, the filling of pipelines) is divided equally among the
// messages of the chain. Closed forms take the sum; runs send the messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/comm/collective_cost.h"
#include "models/comm/schedule.h"
#include "sim/base/units.h"
#include "sim/graph/lanes.h"

namespace rehearse::comm {

struct Phases {
  Seconds launch;  ///< of each member, before it takes part
  Seconds start;   ///< of each message, before it flows
  ByteRate cap;    ///< of a message that has a port for itself
  Seconds wire;    ///< while messages of the longest chain flow
  Seconds time;    ///< of all of them, where nothing contends

  friend bool operator==(const Phases&, const Phases&) = default;
};

/// `time` is what the price says, or an end of its interval. `links` is the rate of a port as the
/// links of the cluster have it, infinite where there is none: no message moves faster, so that the
/// phases take longer than the price where the price is quicker than the links.
/// REQUIRES: a schedule of one level.
Phases phases_of(const Price& price, Seconds time, const Schedule& schedule, std::uint32_t chunks,
                 Bytes size, ByteRate links);

/// The messages of a collective.
struct Messages {
  std::shared_ptr<const graph::Lanes> lanes;
  std::shared_ptr<const std::vector<double>> parts = {};  ///< as Schedule has them
  /// What they take where they are calibrated; else what the links say.
  std::optional<Phases> phases = {};

  /// Of a message on this lane, while it flows.
  ByteRate cap(std::size_t lane) const;
};

/// Into how many chunks a pipelined buffer is cut: of 256 KiB, about what moves while a message
/// starts; from 8 to 512.
std::uint32_t chunks_of(Bytes size);

}  // namespace rehearse::comm
