// Link types from the catalog: what each make of link achieves.
#pragma once

#include <string_view>

#include "sim/base/result.h"
#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

/// "nvlink4_h100_nvswitch", "ib_ndr_400", …: the rate that long messages achieve in one direction,
/// and the latency from end to end. Fails with the nearest name.
Result<LinkType> link_type_named(std::string_view name);

/// A network of this kind ("ib", "roce", "efa", "tcp", "gpudirect_tcpx", …: how names in the
/// catalog begin) with another nominal rate in one direction: the row with the nearest rate, and of
/// the nominal rate the same part.
Result<LinkType> network_link(std::string_view kind, ByteRate nominal);

}  // namespace rehearse::cluster
