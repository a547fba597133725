// LeaseTurns: jobs that take turns on devices. A turn is a lease of one server of the graph: it is
// requested when the ops before it have ended, granted in order of request, and returned when its
// last op has ended.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/graph/graph.h"

namespace rehearse::sharing {

class LeaseTurns {
 public:
  /// REQUIRES: the builder outlives this object.
  LeaseTurns(graph::GraphBuilder& builder, std::string_view server);

  /// These ops run in one turn, which is asked for after `after`.
  void add(std::span<const OpId> ops, std::span<const OpId> after);

 private:
  graph::GraphBuilder& builder_;
  const ServerId server_;
  const NameId name_;
  std::uint32_t leases_ = 0;
};

}  // namespace rehearse::sharing
