// Matches device names of benchmark tables to the catalog: "NVIDIA A100-PCIE-40GB", "Tesla T4",
// "AMD Instinct MI100".
#pragma once

#include <string_view>

#include "sim/base/result.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {

/// Finds the catalog device that a benchmark table means: the one with the longest model name that
/// `name` contains. Among variants of a model it is the one that agrees best in memory and form
/// factor (PCIe, SXM, NVL; HBM3 implies SXM, the H100 with that memory). Fails if `name` contains
/// no model.
Result<const cluster::Gpu*> device_named(std::string_view name);

}  // namespace rehearse::cli
