// Link types by name: what each make of link achieves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

/// "nvlink4_h100_nvswitch", "ib_ndr_400", …: the rate that long messages achieve in one direction,
/// and the latency from end to end. Fails with the nearest name.
Result<LinkType> link_type_named(std::string_view name);

}  // namespace rehearse::cluster
