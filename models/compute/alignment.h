// What products lose if their rows do not begin at multiples of 16 bytes.
#pragma once

#include "models/compute/device_facts.h"
#include "models/workload/op.h"

namespace rehearse::compute {

/// The share of its rate that a product keeps, 1 where nothing is lost. NVIDIA's matrix units load
/// 16 bytes at once. A row of a matrix whose length is a multiple of 4 or 8 bytes takes narrower
/// loads, one of 2 bytes the narrowest; Hopper and later run Ampere's kernels then. AMD's wide loads
/// need only multiples of 4 bytes; other rows take single elements. The extent that counts samples
/// is not the length of a row. Frameworks pad formats of 8 bits, and extents that they divide
/// unevenly. Source: docs/concepts/op-cost.md. REQUIRES: a product.
double aligned_share(const DeviceFacts& facts, Arithmetic arithmetic, const workload::Op& op);

}  // namespace rehearse::compute
