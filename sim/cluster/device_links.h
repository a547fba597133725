// The usual structure of nodes with devices of a model: the default where a cluster file states
// no more.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/result.h"
#include "sim/cluster/templates.h"

namespace rehearse::cluster {

struct DeviceLinks {
  std::string_view model;
  NodeKind joined;                ///< a node of up to 8
  std::string_view link;          ///< between devices, by its name in the catalog; may be empty
  std::string_view pcie;          ///< as `link`
  std::string_view nic;           ///< as `link`
  std::uint32_t devices_per_nic;  ///< 0: one NIC per node
};

/// The links of a device model. A partition ("a100_sxm4_80:3g.20gb") has the links of its GPU
/// without NVLink, which partitions cannot use. Fails with the nearest name.
Result<DeviceLinks> links_of_device(std::string_view model);

/// The catalog's name of the link between such devices in a node of another kind than the usual
/// one; empty if there is none.
std::string_view link_of_device(const DeviceLinks&, NodeKind kind);

/// Whether some pairs of a hybrid cube mesh have two links (V100, which has six; P100 has four).
bool has_double_links(const DeviceLinks&);

}  // namespace rehearse::cluster
