// Matches device names of benchmark tables to the catalog: "NVIDIA A100-PCIE-40GB", "Tesla T4",
// "AMD Instinct MI100".
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {

/// The device of the catalog that a table means: that whose model the name holds (the longest
/// such), and among variants of a model the one that agrees best in memory and form (PCIe, SXM,
/// NVL; HBM3 implies SXM, the H100 with that memory). Fails where no model is in the name.
Result<const cluster::Gpu*> device_named(std::string_view name);

}  // namespace rehearse::cli
