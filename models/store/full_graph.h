// Training on a partitioned graph, all keys in each step: from what workers need of each other to a
// program for each of them. A layer takes in the sum of the values of a key's neighbours and
// multiplies it by a matrix.
//
// Forward of layer l: each worker sends every other the values of the keys that this one needs;
// when all have come, it sums over neighbours, and multiplies. Backward the other way round: the
// gradients of what was lent come back to its holder, but for the first layer, whose inputs are
// data. The matrices' gradients are summed over all workers once a step. Nothing is sent beside
// computing. docs/concepts/partition.md.
#pragma once

#include <vector>

#include "models/store/graph.h"
#include "sim/base/units.h"
#include "sim/program/program.h"

namespace rehearse::store {

struct GraphNetwork {
  std::vector<std::uint32_t> widths;  ///< values of a key: as data, then behind each layer
  Bytes value = Bytes::b(4);
};

/// What all workers together send each other of keys in a step.
Bytes exchanged(const Halo& halo, const GraphNetwork& network);

/// A rank for each worker; lengths follow from work (models/job/roofline.h). REQUIRES: two widths
/// at least.
program::Program full_graph_step(const Halo& halo, const GraphNetwork& network);

}  // namespace rehearse::store
