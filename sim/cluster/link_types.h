// Link types from the catalog: the achieved rate of each type.
#pragma once

#include <string_view>

#include "sim/base/result.h"
#include "sim/cluster/cluster.h"

namespace rehearse::cluster {

/// "nvlink4_h100_nvswitch", "ib_ndr_400", …: the rate that long messages achieve in one direction,
/// and the latency from end to end. Fails with the nearest name.
Result<LinkType> link_type_named(std::string_view name);

/// A network of this kind ("ib", "roce", "efa", "tcp", "gpudirect_tcpx", …: prefixes of names in
/// the catalog) with a number of NICs of another nominal rate, in one direction. A NIC achieves
/// the same fraction of its nominal rate as the row with the nearest rate. A row for all
/// NICs of a node ("per node") is compared with all of them. REQUIRES: at least one NIC.
Result<LinkType> network_link(std::string_view kind, ByteRate nominal, std::uint32_t nics);

/// What messages take on NICs of a network of that kind.
MessageTimes message_times(NetworkKind kind);

}  // namespace rehearse::cluster
