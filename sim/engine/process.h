// Process: makes decisions during the run that cannot be unrolled into a graph beforehand (a
// scheduler of many jobs, a controller, stragglers carried over to the next batch).
#pragma once

#include <span>

#include "sim/graph/graph.h"

namespace rehearse::engine {

/// The actions of a process while the loop calls it.
class Injector {
 public:
  virtual Picoseconds now() const = 0;
  /// Adds an op that waits for `after`; some of them may have ended. Its name, demand and
  /// resources must be among those of the graph. When it ends, `on_end` of the adding process is
  /// called.
  virtual OpId add(const graph::Op& op, std::span<const OpId> after) = 0;

 protected:
  ~Injector() = default;
};

class Process {
 public:
  virtual ~Process() = default;
  /// Called once before time begins.
  virtual void on_start(Injector& injector) = 0;
  /// Called when an op that this process added or watches ends, before its successors start.
  virtual void on_end(OpId op, Injector& injector) = 0;
  /// The ops of the graph whose ends it watches.
  virtual std::span<const OpId> watches() const = 0;
};

}  // namespace rehearse::engine
