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
/// catalog begin) with so many NICs of another nominal rate each, in one direction: one of them as
/// in the row with the nearest rate, and of the nominal rate the same part. A row that is of all
/// NICs of a node ("per node") is compared with all of them. REQUIRES: a NIC or more.
Result<LinkType> network_link(std::string_view kind, ByteRate nominal, std::uint32_t nics);

}  // namespace rehearse::cluster
