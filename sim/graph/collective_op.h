// An op of a graph that represents a collective whose time is still unknown.
#pragma once

#include <cstdint>

#include "sim/base/collective.h"
#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace rehearse::graph {

struct CollectiveOp {
  OpId op;
  CollectiveKind kind;
  Bytes size;  ///< as docs/concepts/collectives.md defines it per kind; all-reduce: of the buffer
  std::uint32_t ranks;
};

}  // namespace rehearse::graph
