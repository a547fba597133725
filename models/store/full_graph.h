// Training on a partitioned graph with all keys in each step: from the exchange between workers to
// a program for each of them. A layer sums the values of a key's neighbours and
// multiplies the sum by a matrix.
//
// Forward of layer l: each worker sends each other the values of the keys that it needs;
// when all have arrived, it sums over neighbours and multiplies. Backward is the reverse: the
// gradients of remote values return to their holder, except in the first layer, whose inputs are
// data. The matrices' gradients are summed over all workers once per step. Messages do not overlap
// computing. docs/concepts/partition.md.
#pragma once

#include <vector>

#include "models/store/graph.h"
#include "sim/base/units.h"
#include "sim/program/program.h"

namespace rehearse::store {

struct GraphNetwork {
  std::vector<std::uint32_t> widths;  ///< values of a key: data, then after each layer
  Bytes value = Bytes::b(4);
};

/// Total data of keys exchanged between all workers in a step.
Bytes exchanged(const Halo& halo, const GraphNetwork& network);

/// A rank for each worker; lengths follow from work (models/job/roofline.h). REQUIRES: two widths
/// at least.
program::Program full_graph_step(const Halo& halo, const GraphNetwork& network);

}  // namespace rehearse::store
