// What an instance of the catalog is as a node of a cluster.
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
  /// As the catalog counts them; 1 where it gives one rate for all. Of more than devices, those
  /// that stand beside a device are one NIC of their rates together (32 of 100 Gbit/s on 8 devices:
  /// 8 of 400): what is sent from a device is striped over them, as aws-ofi-nccl does.
  std::uint32_t nics;
  std::optional<LinkType> nic;  ///< absent: the catalog does not know its network
};

/// By its name, "p4d.24xlarge". Fails with the nearest name, or where it has part of a device.
Result<InstanceShape> shape_of_instance(std::string_view name);

}  // namespace rehearse::cluster
