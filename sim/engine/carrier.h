// Carrier: another simulator instead of flows.h. It carries work through capacities and keeps
// the time. The event loop keeps everything else: readiness, servers, messages, latencies.
#pragma once

#include <optional>

#include "sim/base/result.h"
#include "sim/engine/flows.h"
#include "sim/graph/graph.h"
#include "sim/graph/timeline.h"

namespace rehearse::engine {

/// The event loop, as driven by a carrier.
class Driven {
 public:
  /// The time of the loop's next event; nothing while it only waits for flows.
  virtual std::optional<Picoseconds> next() = 0;
  /// Does everything that is due until `now`. Flows may begin.
  virtual void run_until(Picoseconds now) = 0;
  /// The flow has moved its work. Others may begin.
  virtual void arrived(FlowTag flow, Picoseconds now) = 0;

 protected:
  ~Driven() = default;
};

class Carrier {
 public:
  virtual ~Carrier() = default;
  /// A flow begins now. Only the loop that run() drives calls it.
  virtual void begin(FlowTag flow, DemandId demand, double work) = 0;
  /// Returns when neither the loop nor any flow has anything left to do.
  virtual void run(Driven& loop) = 0;
  /// A capacity that keeps some flow at rate zero, for the message about a run that never ends.
  virtual std::optional<CapacityId> stalled() const = 0;
};

/// engine::run with capacities shared fairly, carried by `carrier`.
Result<graph::Timeline> run(const graph::Graph& graph, Carrier& carrier);

}  // namespace rehearse::engine
