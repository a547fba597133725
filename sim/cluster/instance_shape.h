// The shape of a catalog instance as a node of a cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/result.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/templates.h"

namespace rehearse::cluster {

struct InstanceShape {
  std::string device;  ///< model
  std::uint32_t devices;
  std::optional<NodeKind> joined;  ///< absent: as usual for the device
  /// As counted by the catalog, striped; 1 if it gives one rate for all.
  std::uint32_t nics;
  HostStore store = {};              ///< the catalog knows no rate of drives
  std::optional<LinkType> nic = {};  ///< absent: the catalog does not know its network
};

/// By name, such as "p4d.24xlarge". Fails with the nearest name, or if the instance has a fraction
/// of a device.
Result<InstanceShape> shape_of_instance(std::string_view name);

}  // namespace rehearse::cluster
