// The passes over a dataflow, each a function from dataflow to dataflow. A pass never changes the
// extents of a result (property test). docs/concepts/symbolic-operations.md has examples.
#pragma once

#include <span>
#include <string_view>

#include "models/dataflow/dataflow.h"

namespace rehearse::dataflow {

/// Operations that run once for each group of rows run once for all rows.
Status compile(Dataflow& flow);
/// Gathers move after operations that work row by row, where the source has fewer rows than the
/// result; a product with concatenated values becomes a sum of products with parts of the weight;
/// and two products in a row become one with the product of their weights, where that takes fewer
/// FLOPs.
Status reorder(Dataflow& flow);
/// Products by gathered weights become segmented products, which do not hold a matrix for each row.
/// They run once for each source row if its type follows from it, or once for each distinct pair of
/// source and type if their number is known and smaller.
Status dedupe(Dataflow& flow);
/// Adds the gradients of all weights. Fails after `fuse`.
Status differentiate(Dataflow& flow);
/// Gathers become part of the elementwise operations and reductions that read them, and an
/// elementwise operation with a gather part of the reduction that follows.
Status fuse(Dataflow& flow);

struct Pass {
  std::string_view name;
  Status (*run)(Dataflow&);
};
/// All passes. A file lists the names of those that run, in their order.
inline constexpr Pass kPasses[] = {{"compile", compile},
                                   {"reorder", reorder},
                                   {"dedupe", dedupe},
                                   {"differentiate", differentiate},
                                   {"fuse", fuse}};

}  // namespace rehearse::dataflow
