// Phases: the time of a schedule's messages on calibrated devices.
//
// A calibration gives the time of a collective, its launch, and the rate of its bytes on the wire.
// So each member launches; then each message of the longest chain waits for its start-up time and
// moves at the measured rate. The rest of the measured time after launch and wire (flags, copies,
// start-ups, the filling of pipelines) is divided equally among the messages of the chain. Closed
// forms take the sum; runs send the messages.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/comm/collective_cost.h"
#include "models/comm/schedule.h"
#include "sim/base/units.h"
#include "sim/graph/message_flows.h"

namespace rehearse::comm {

struct LevelPhase {
  Seconds start = Seconds::s(0);  ///< of each message, before it flows
  ByteRate cap = kUnlimited;      ///< of a message that has a port for itself

  friend bool operator==(const LevelPhase&, const LevelPhase&) = default;
};

struct Phases {
  Seconds launch = Seconds::s(0);    ///< of each member, before it takes part
  std::array<LevelPhase, 2> levels;  ///< within nodes or everywhere; between nodes
  Seconds wire = Seconds::s(0);      ///< while messages of the longest chain flow
  Seconds time = Seconds::s(0);      ///< of all, where nothing contends

  friend bool operator==(const Phases&, const Phases&) = default;
};

/// The steps of a schedule of one level if its buffer is divided into `chunks` chunks.
Steps steps_in(const Schedule& schedule, std::uint32_t chunks);

/// The phases of a schedule's messages that together cost that price, or an end of its interval.
/// `links` is the port rate of the cluster's links, by level. No message moves faster, so the
/// phases take longer than the price where the price is faster than the links allow.
Phases phases_of(const Price& price, Seconds Estimate<Seconds>::*end, const Schedule& schedule,
                 std::uint32_t chunks, Bytes size, const std::array<ByteRate, 2>& links);

/// The messages of a collective.
struct Messages {
  std::shared_ptr<const graph::MessageFlows> flows;
  std::shared_ptr<const std::vector<double>> parts = {};  ///< as Schedule has them
  std::shared_ptr<const std::vector<char>> across = {};   ///< likewise
  /// The phases where the messages are calibrated; otherwise the links determine their time.
  std::optional<Phases> phases = {};
  /// Without phases: the rate of a port whose driver is slower than its links (TCP).
  ByteRate most = kUnlimited;

  /// The start-up time and the rate cap of a message on this flow. `start` REQUIRES phases.
  Seconds start(std::size_t flow) const;
  ByteRate cap(std::size_t flow) const;

 private:
  const LevelPhase& phase(std::size_t flow) const {
    return phases->levels[across && (*across)[flow] ? 1 : 0];
  }
};

/// The number of chunks that a pipelined buffer is cut into, from 8 to 512. A chunk has 256 KiB,
/// about as much as moves while a message starts.
std::uint32_t chunks_of(Bytes size);

}  // namespace rehearse::comm
