// Attention whose keys and values messages pass around the ranks of a ring (Liu et al., Ring
// Attention, arXiv 2310.01889).
#pragma once

#include "models/workload/lift_units.h"

namespace rehearse::workload::lifting {

/// Finds the messages of a ring by their size and the attention next to them, and joins the parts in
/// which a rank computes attention, one for the keys of each rank, to one unit. Changes nothing if
/// no message in the forward pass holds the keys, the values or both of an attention next to it.
void join_ring(const Recording& recording, StepUnits& step);

}  // namespace rehearse::workload::lifting
